#pragma once
// optimus sweep show DB

#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct SweepShowFlags {
  std::string database;
  std::optional<int> top;  // absent: not given
  std::string sort;
  std::string columns;  // this and the next two: names with commas between
  std::string group_by;
  std::string pareto;
  std::string where;
  bool sensitivity = false;
  bool errors = false;
  bool all = false;
  bool per_seed = false;
  bool json = false;
  std::string csv;  // "-": standard output; empty: not asked for
  std::string plot, x, y, z, series;
  std::vector<std::string> out;
  std::string plot_script;
};

// Defines the subcommand of `sweep`; `flags` must outlive it.
CLI::App* AddSweepShowCommand(CLI::App& sweep, SweepShowFlags& flags);

// Returns the exit code of a run that came to its end. The database may be that of a sweep that
// runs.
absl::StatusOr<int> RunSweepShow(const SweepShowFlags& flags);

}  // namespace optimus::tools
