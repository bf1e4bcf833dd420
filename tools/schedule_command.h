#pragma once
// optimus schedule export FILE

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct ScheduleExportFlags {
  std::string file;
  std::string csv;
  std::string profile;
  std::string pipeline;
};

// Defines the subcommand, and the command `schedule` that it is under; `flags` must outlive `app`.
CLI::App* AddScheduleExportCommand(CLI::App& app, ScheduleExportFlags& flags);

// Returns the exit code of a run that came to its end.
absl::StatusOr<int> RunScheduleExport(const ScheduleExportFlags& flags);

}  // namespace optimus::tools
