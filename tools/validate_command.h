#pragma once
// optimus validate run EXPERIMENT..., optimus validate timelines SIMULATED MEASURED

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/command.h"

namespace optimus::tools {

struct ValidateRunFlags {
  std::vector<std::string> files;
  std::string backend;
  int rounds = 6;
  int iterations = 30;   // in all rounds together
  int warm_up = 3;       // at the begin of every round
  int repetitions = 30;  // of every kernel and transfer, in all rounds together
  double tolerance = 0.10;
  double least_difference = 0.05;
  double time_scale = 1;
  std::string pipeline;
  std::string out;
  std::string timeout = "60s";
  bool bf16 = false;
  bool no_pin = false;
  bool all_work = false;
  bool json = false;
};

struct ValidateTimelinesFlags {
  std::string simulated, measured, schedule;
  double tolerance = 0.10;
  bool all_work = false;
  bool json = false;
};

// The command that run, timelines and published are under; made at its first use.
CLI::App& ValidateGroup(CLI::App& app);
// Define the subcommands of `validate`; `flags` must outlive `app`.
CLI::App* AddValidateRunCommand(CLI::App& app, ValidateRunFlags& flags);
CLI::App* AddValidateTimelinesCommand(CLI::App& app, ValidateTimelinesFlags& flags);

// Return the exit code: 0, or 2 outside the tolerance.
// Called by every rank, or by one process alone, which then starts the ranks.
absl::StatusOr<int> RunValidateRun(const ValidateRunFlags& flags, Arguments& arguments);
absl::StatusOr<int> RunValidateTimelines(const ValidateTimelinesFlags& flags);

}  // namespace optimus::tools
