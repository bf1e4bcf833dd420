#pragma once
// Kineto (PyTorch profiler) and Chrome traces: one JSON file a rank, plain or gzip. The file is
// read twice through a window of some MiB (first which steps there are, then one step's events), so
// that memory is bounded by the step, not by the file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/recording/recording.h"
#include "traces/source/byte_source.h"

namespace optimus::traces {

// Bounds of the reader. The defaults are for files of people; tests use smaller ones.
struct KinetoLimits {
  std::size_t window = std::size_t{1} << 20;      // bytes in memory at a time
  std::size_t longest = std::size_t{32} << 20;    // bytes of one event or header value
  std::int64_t most_ops = std::int64_t{1} << 26;  // operations kept of a step
};

struct KinetoOptions {
  // Number of the step ("ProfilerStep#551"). Not given: the last one that lies whole in the file,
  // or the whole file where there are no steps. A file of ours (chrome_json.h) is always read
  // whole.
  std::optional<std::int64_t> step;
  // Where distributedInfo does not say it.
  std::optional<std::int32_t> rank;
  KinetoLimits limits;
};

// Errors name the file: those of opening it (NOT_FOUND, INVALID_ARGUMENT for what is no regular
// file), INVALID_ARGUMENT with the byte for what is no JSON, is cut off, has another schemaVersion,
// is an execution trace (another format), has times that do not fit 106 days, or more than the
// limits; NOT_FOUND where the step is not in the file, naming those that are.
absl::StatusOr<Recording> ReadKineto(const std::string& path, const KinetoOptions& options);
// The same of text in memory, plain or gzip; `name` stands for the file.
absl::StatusOr<Recording> ReadKinetoText(absl::string_view text, const std::string& name,
                                         const KinetoOptions& options);
// The same of any source; it is rewound before each pass.
absl::StatusOr<Recording> ReadKinetoSource(ByteSource& source, const std::string& name,
                                           const KinetoOptions& options);

}  // namespace optimus::traces
