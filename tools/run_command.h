#pragma once
// optimus run FILE

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/command.h"

namespace optimus::tools {

struct RunFlags {
  std::string file;
  std::string backend;
  int iterations = 10;
  int warm_up = 2;
  std::string profile;
  std::string scheduler;
  std::string pipeline;
  std::string timeline, schedule, trace;
  std::string timeout = "60s";
  bool numerics = false;
  double tolerance = 1e-4;
  bool tolerance_given = false;
  bool bf16 = false;
  double time_scale = 1;
  bool cuda_graph = false;
  bool no_pin = false;
  bool json = false;
};

// Defines the subcommand; `flags` must outlive `app`.
CLI::App* AddRunCommand(CLI::App& app, RunFlags& flags);

// Called by every rank. Returns the exit code of a run that came to its end, the same at all ranks:
// 0, or 2 where --numerics found more than the tolerance.
absl::StatusOr<int> RunRun(const RunFlags& flags, Arguments& arguments);

}  // namespace optimus::tools
