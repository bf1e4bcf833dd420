#pragma once
// optimus simulate FILE...

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct SimulateFlags {
  std::vector<std::string> files;
  std::string fidelity = "auto";
  std::string profile;
  std::string pipeline;
  std::string trace;
  std::string out;
  std::string schedule;
  std::string timeline;
  std::string scheduler;
  bool no_interference = false;
  bool json = false;
  bool require_fit = false;
};

// Defines the subcommand; `flags` must outlive `app`.
CLI::App* AddSimulateCommand(CLI::App& app, SimulateFlags& flags);

// Returns the exit code of a run that came to its end (0, or 2 with --require-fit).
absl::StatusOr<int> RunSimulate(const SimulateFlags& flags);

}  // namespace optimus::tools
