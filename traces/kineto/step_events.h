#pragma once
// The events of one step, as they stand in the file: what the second pass collects.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/units.h"
#include "traces/kineto/file_time.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

enum class CallKind : std::uint8_t {
  kOther,
  kEventRecord,
  kStreamWait,
  kStreamSync,
  kDeviceSync,
  kEventSync,
  kQuery,  // asks and does not wait
};
// Of "cudaEventRecordWithFlags", "hipStreamSynchronize", "cuCtxSynchronize", ...
CallKind CallKindOf(absl::string_view name);

// Times are on the clock of StepEvents::reference. `order`: position in the file.
struct FileCall {
  Picoseconds start, end;
  std::int64_t correlation = -1;
  std::uint32_t order = 0;
  std::int32_t name = 0;
  std::int32_t thread = 0;
  CallKind kind = CallKind::kOther;
};

struct FileOp {
  Picoseconds start, end;
  std::int64_t correlation = -1;
  std::int64_t bytes = -1;
  std::uint32_t order = 0;
  std::int32_t name = 0;
  std::int32_t stream = 0;
  std::int32_t communication = -1;
  OpKind kind = OpKind::kCompute;
  bool outside = false;  // it starts outside of the step and was launched in it
};

enum class SyncKind : std::uint8_t { kStreamWait, kEvent, kStream, kContext };
struct FileSync {
  Picoseconds start;
  std::int64_t correlation = -1;         // of the call
  std::int64_t record_correlation = -1;  // of the call that recorded the event
  std::int64_t device = 0;
  std::int64_t stream = -1, wait_stream = -1;  // numbers of the file
  std::uint32_t order = 0;
  SyncKind kind = SyncKind::kStream;
};

// (device, stream) or (process, thread), numbered as they come.
using LaneKey = std::pair<std::int64_t, std::int64_t>;
class LaneNumbers {
 public:
  std::int32_t Of(LaneKey key) {
    const auto [found, inserted] =
        numbers_.try_emplace(key, static_cast<std::int32_t>(keys_.size()));
    if (inserted) keys_.push_back(key);
    return found->second;
  }
  std::optional<std::int32_t> Find(LaneKey key) const {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? std::nullopt : std::make_optional(found->second);
  }
  const std::vector<LaneKey>& keys() const { return keys_; }

 private:
  absl::flat_hash_map<LaneKey, std::int32_t> numbers_;
  std::vector<LaneKey> keys_;
};

struct StepEvents {
  std::optional<FileTime> reference;  // what times count from; none: no event was kept
  std::vector<FileCall> calls;
  std::vector<FileOp> ops;
  std::vector<FileSync> syncs;
  std::vector<Communication> communications;
  std::vector<std::string> names;
  LaneNumbers threads, streams;
  std::vector<bool> foreign_stream;  // by stream: of another accelerator than a GPU
  bool fraction_seen = false;        // a time with a fraction of a microsecond
};

}  // namespace optimus::traces
