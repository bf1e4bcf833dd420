#pragma once
// optimus reproduce

#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct ReproduceFlags {
  std::optional<int> table;  // absent: all
  std::string experiments, figures;
  bool no_interference = false;
  bool json = false;
};

// Defines the subcommand; `flags` must outlive `app`.
CLI::App* AddReproduceCommand(CLI::App& app, ReproduceFlags& flags);

// Returns the exit code of a run that came to its end.
absl::StatusOr<int> RunReproduce(const ReproduceFlags& flags);

}  // namespace optimus::tools
