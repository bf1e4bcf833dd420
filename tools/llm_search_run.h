#pragma once
// The search of `optimus plan --search-llm`: examine every combination, then simulate best bound
// first, each in a process of its own, until no bound that is left is below the best step.

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "schedule/step/step.h"
#include "tools/llm_search_report.h"
#include "tools/simulation.h"

namespace optimus::tools {

struct LlmSearchOptions {
  std::string file;
  std::string profile;                                // instead of the experiment's; may be empty
  std::optional<step::Optimus::Scheduler> scheduler;  // likewise
  bool no_interference = false;
  std::optional<Bytes> memory_limit;  // of a GPU, where the profile gives more
  int jobs = 1;
  double search_time_s = 0;  // from the start of the command to the end of the last simulation
  std::function<void(const std::string&)> progress;  // may be empty
};

struct LlmSearchResult {
  LlmSearchReport report;
  step::Experiment best;  // complete
};

// INVALID_ARGUMENT for an experiment that cannot be searched (measured stages, micro-batches
// without input), FAILED_PRECONDITION with the smallest need where nothing fits. DEADLINE_EXCEEDED
// where the time was over before any plan that fits was simulated.
absl::StatusOr<LlmSearchResult> SearchLlm(const LlmSearchOptions& options);

// Plans and simulates `experiment` (complete) as optimus plan and optimus simulate do, with the
// same step. Nothing is simulated twice to tell apart what makes it longer than predicted.
// `in_this_process`: for one that ends with it (sim::Options).
absl::StatusOr<Simulation> SimulatePlan(const step::Experiment& experiment,
                                        const LlmSearchOptions& options, bool in_this_process);

}  // namespace optimus::tools
