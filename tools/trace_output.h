#pragma once
// Which files a trace is written to, and writing all of them or none.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/outputs.h"
#include "traces/recording/recording.h"

namespace optimus::tools {

enum class TraceFormat : std::uint8_t { kPerfetto, kChrome, kChakra, kCsv };
inline constexpr char kTraceFormats[] = "perfetto|chrome|chakra|csv";

struct TraceOutput {
  TraceFormat kind = TraceFormat::kPerfetto;
  std::string path;            // kChakra: the prefix of its files
  std::string origin = "OUT";  // what messages call it: the argument or flag that names it
};

// By `to` (of kTraceFormats) or, where it is empty, by the end of `path`. INVALID_ARGUMENT also for
// names that are none, or that of a Chakra trace's groups.
absl::StatusOr<TraceOutput> OutputOf(const std::string& path, const std::string& to);

// Refuses, before anything is written, files that cannot be written, and those that are one of
// `inputs`.
absl::Status CheckOutput(const traces::Recording& recording, const TraceOutput& output,
                         const std::vector<NamedFile>& inputs);

// "a.pftrace", "a.0.et to a.7.et, a.groups.json".
std::string DescribeOutput(const traces::Recording& recording, const TraceOutput& output);

// Errors of the writers, and where a file cannot be written. After an error no file has changed.
absl::Status WriteTrace(const traces::Recording& recording, const TraceOutput& output);

}  // namespace optimus::tools
