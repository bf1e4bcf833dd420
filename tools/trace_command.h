#pragma once
// optimus trace convert IN... OUT, optimus trace info TRACE...

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/trace_files.h"

namespace optimus::tools {

struct TraceConvertFlags {
  std::vector<std::string> files;  // inputs, then the output
  std::string to;                  // empty: by the output's name
  TraceInputs inputs;              // without paths
};

struct TraceInfoFlags {
  TraceInputs inputs;
  bool json = false;
};

// The command `trace` that all of these are under; made by the first that asks.
CLI::App& TraceGroup(CLI::App& app);

// Define the subcommands; `flags` must outlive `app`.
CLI::App* AddTraceConvertCommand(CLI::App& app, TraceConvertFlags& flags);
CLI::App* AddTraceInfoCommand(CLI::App& app, TraceInfoFlags& flags);

// Return the exit code of a run that came to its end.
absl::StatusOr<int> RunTraceConvert(const TraceConvertFlags& flags);
absl::StatusOr<int> RunTraceInfo(const TraceInfoFlags& flags);

}  // namespace optimus::tools
