#pragma once
// optimus sweep merge OUT.sqlite IN.sqlite...

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct SweepMergeFlags {
  std::string out;
  std::vector<std::string> in;
  bool allow_mixed_versions = false;
};

// Defines the subcommand of `sweep`; `flags` must outlive it.
CLI::App* AddSweepMergeCommand(CLI::App& sweep, SweepMergeFlags& flags);

// Returns the exit code of a run that came to its end: 0 also where points are missing or failed,
// which is said.
absl::StatusOr<int> RunSweepMerge(const SweepMergeFlags& flags);

}  // namespace optimus::tools
