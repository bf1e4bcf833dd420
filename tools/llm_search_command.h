#pragma once
// optimus plan FILE --search-llm

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/plan_command.h"

namespace optimus::tools {

void AddLlmSearchFlags(CLI::App& command, PlanFlags& flags);

// INVALID_ARGUMENT for flags of the search without --search-llm, and for flags of planning with it.
absl::Status CheckLlmSearchFlags(const PlanFlags& flags);

absl::StatusOr<int> RunLlmSearch(const PlanFlags& flags);

}  // namespace optimus::tools
