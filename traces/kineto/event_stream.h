#pragma once
// The frame of a trace file: header values, and the events of "traceEvents" (or of a bare array) in
// batches, each a JSON array of whole events. What lies in memory is one window, or one event that
// is longer.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "traces/kineto/json_blocks.h"
#include "traces/kineto/kineto.h"
#include "traces/source/byte_source.h"

namespace optimus::traces {

// Bytes that may be read (not: used) behind a batch and a header value.
inline constexpr std::size_t kBatchPadding = 128;

class EventVisitor {
 public:
  EventVisitor() = default;
  EventVisitor(const EventVisitor&) = delete;
  EventVisitor& operator=(const EventVisitor&) = delete;
  virtual ~EventVisitor() = default;
  // Whether Header is to be called for this key of the file's object.
  virtual bool WantsHeader(absl::string_view key) = 0;
  // `json`: the value as it stands in the file.
  virtual absl::Status Header(absl::string_view key, const std::string& json) = 0;
  // `json`: "[{...},{...}]". `offset`: of its first byte in the (unzipped) file.
  virtual absl::Status Batch(absl::string_view json, std::int64_t offset) = 0;
};

// Errors: INVALID_ARGUMENT with the byte, not the file's name; the source's; the visitor's.
class EventStream {
 public:
  EventStream(ByteSource& source, const KinetoLimits& limits);
  // Reads the file once, from the front. `whole`: to its end; else up to the end of the events.
  absl::Status Read(EventVisitor& visitor, bool whole);

 private:
  enum class Next : std::uint8_t { kMore, kArrayEnd };

  absl::Status ReadObject(EventVisitor& visitor, bool whole);
  absl::Status ReadMember(EventVisitor& visitor, bool& events_seen);
  absl::Status ReadEvents(EventVisitor& visitor);
  absl::StatusOr<Next> ScanBlocks();
  absl::StatusOr<Next> ScanBlock(const char* block, std::size_t size);
  absl::Status Deliver(EventVisitor& visitor);
  absl::Status CheckTail(std::size_t from, std::size_t to) const;
  absl::Status MoreEvents();
  absl::Status ReadKey(std::string& key);
  absl::Status ReadValue(std::string* copy);
  absl::Status ReadNested(std::string* copy);
  absl::Status ReadString(std::string* copy);
  absl::Status Append(std::string* copy, char c) const;
  absl::Status ExpectEnd();

  // The next byte, taken or not; -1: the end. A failed read becomes `failure_`.
  int Peek();
  int Take();
  int PeekText();  // the next that is not blank
  bool Refill();
  std::int64_t OffsetOf(std::size_t position) const {
    return base_ + static_cast<std::int64_t>(position);
  }
  absl::Status Bad(absl::string_view what, std::size_t position) const;
  absl::Status CutOff(absl::string_view where) const;

  ByteSource& source_;
  KinetoLimits limits_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not taken yet
  std::size_t end_ = 0;
  std::int64_t base_ = 0;  // offset of the buffer's first byte
  bool at_end_ = false;
  absl::Status failure_;

  // Of the array of events: `begin_` is at its '[' or behind the last event that was delivered.
  JsonBlocks blocks_;
  std::size_t scanned_ = 0;     // up to where the blocks have been looked at
  std::size_t event_ = 0;       // where the event that is open begins
  std::size_t last_event_ = 0;  // end of the last whole event of the batch; 0: there is none
  std::size_t array_end_ = 0;
  std::int64_t depth_ = 0;
};

}  // namespace optimus::traces
