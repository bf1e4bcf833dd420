#pragma once
// optimus sweep SWEEP.textproto

#include <cstdint>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct SweepFlags {
  std::string file;
  std::string database = "results.sqlite";
  std::string shard;
  std::string csv;
  std::string time_limit;
  std::string memory_limit;
  std::string experiment;
  std::optional<std::int64_t> point;
  int jobs = 0;  // 0: as many as there are cores
  bool resume = false;
  bool dry_run = false;
  bool json = false;
};

// `optimus sweep`, which has subcommands (show, merge) and runs a sweep without them.
CLI::App& SweepGroup(CLI::App& app);

// Defines the command; `flags` must outlive `app`.
CLI::App* AddSweepCommand(CLI::App& app, SweepFlags& flags);

// Returns the exit code of a run that came to its end: 2 where a point failed.
absl::StatusOr<int> RunSweepCommand(const SweepFlags& flags);

}  // namespace optimus::tools
