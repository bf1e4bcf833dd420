#pragma once
// optimus plan FILE

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct PlanFlags {
  std::string file;
  std::string scheduler;
  std::string schedule;
  std::string profile;
  std::string pipeline;
  bool exhaustive = false;
  bool no_interference = false;
  bool json = false;
  bool search_llm = false;
  // Of --search-llm.
  std::string experiment;
  int jobs = 0;  // 0: as many as there are cores
  int top = 5;
  double search_time_s = 50;
  std::string memory_limit;  // as base/parse_units.h; empty: all that the profile gives
};

// Defines the subcommand; `flags` must outlive `app`.
CLI::App* AddPlanCommand(CLI::App& app, PlanFlags& flags);

// Returns the exit code of a run that came to its end.
absl::StatusOr<int> RunPlan(const PlanFlags& flags);

}  // namespace optimus::tools
