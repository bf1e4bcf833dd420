#pragma once
// Our Chrome trace: a Recording as the JSON that chrome://tracing, Perfetto and tools for Kineto
// traces read, and from which ReadKineto makes the same Recording again.
//
// One file for all ranks: process = rank, thread = lane. Times are microseconds with six decimals,
// which is exact. Communication has the arguments of NCCL kernels in Kineto traces; what Kineto has
// no word for stands in arguments of our own ("op", "after", ...) and in the header key "optimus".

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/kineto/event_stream.h"
#include "traces/kineto/trace_header.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

inline constexpr int kChromeJsonVersion = 1;

// Gives the text to `sink` piece by piece. INVALID_ARGUMENT where `recording` does not pass
// CheckRecording or has a number that JSON has not (an infinite count of FLOPs); the sink's errors.
// Bytes of names that are not UTF-8 become U+FFFD.
absl::Status WriteChromeJson(const Recording& recording,
                             absl::FunctionRef<absl::Status(absl::string_view)> sink);
absl::StatusOr<std::string> ChromeJsonText(const Recording& recording);

// Reads such a file: `header.ours` is what its "optimus" says. INVALID_ARGUMENT for another
// format_version. The Recording equals the one written, but for RecordedRank::source, which is
// `name`. For ReadKineto.
absl::StatusOr<Recording> ReadChromeJson(ByteSource& source, const std::string& name,
                                         const TraceHeader& header, const KinetoLimits& limits);

}  // namespace optimus::traces
