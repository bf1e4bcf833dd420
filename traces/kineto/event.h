#pragma once
// Events of a Kineto file: what of their fields is of use here.

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/units.h"
#include "simdjson.h"
#include "traces/kineto/file_time.h"

namespace optimus::traces {

// By "cat".
enum class EventClass : std::uint8_t {
  kUnknown,  // no "cat" so far
  kIgnored,  // CPU operators, flows, counters, metadata, ...
  kKernel,
  kCopy,        // gpu_memcpy, gpu_memset
  kDevice,      // an operation of another accelerator: mtia_ccp_events, hpu_op
  kCall,        // of a runtime or driver
  kSync,        // cuda_sync
  kAnnotation,  // user_annotation: a range that the user or the profiler named
};
EventClass ClassOf(absl::string_view category);
bool IsOnDevice(EventClass event_class);  // kernel, copy, device

// -1 and empty: not said.
struct EventArgs {
  std::int64_t correlation = -1, stream = -1, device = -1, bytes = -1;
  // cuda_sync
  absl::string_view sync_kind;
  std::int64_t wait_stream = -1, record_correlation = -1;
  // NCCL
  absl::string_view collective, dtype, group, group_description, group_ranks;
  std::int64_t elements_in = -1, elements_out = -1, group_size = -1;
  std::int64_t source = -1, destination = -1, sequence = -1;
};

// Texts live as long as the batch.
struct KinetoEvent {
  EventClass event_class = EventClass::kUnknown;
  absl::string_view name;
  absl::string_view start, duration;  // as they are written; empty: not there
  std::int64_t pid = -1, tid = -1;
  EventArgs args;
};

// `read` for each object of `batch`, a JSON array; it says what it read or that it was no JSON.
// Errors: INVALID_ARGUMENT with the byte (`offset` is that of the batch); the status that `read`
// sets, with the event's byte before it.
absl::Status ForEachEvent(
    simdjson::ondemand::parser& parser, absl::string_view batch, std::int64_t offset,
    absl::FunctionRef<simdjson::error_code(simdjson::ondemand::object, absl::Status&)> read);

class EventParser {
 public:
  EventParser() = default;
  // Calls `take` for each event of `batch` with ph "X" and a class for which `wants` is true.
  // Errors as above.
  absl::Status Parse(absl::string_view batch, std::int64_t offset,
                     absl::FunctionRef<bool(EventClass)> wants,
                     absl::FunctionRef<absl::Status(const KinetoEvent&)> take);

 private:
  simdjson::ondemand::parser parser_;
};

// "byte 123: what": where in `batch` JSON is not right, as near as the event.
absl::Status JsonError(absl::string_view batch, std::int64_t offset, simdjson::error_code error);

}  // namespace optimus::traces
