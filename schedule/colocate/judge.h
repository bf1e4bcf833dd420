#pragma once
// The last round of planning for LIST: the best few plans by prediction are emitted and run, and
// the shortest step wins. Predictions know nothing of kernels that slow each other down, and plans
// that are predicted alike overlap by different amounts.

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/colocate/llm_step.h"
#include "schedule/colocate/search.h"
#include "schedule/step/step.h"

namespace optimus::colocate {

// How many plans by prediction are run.
inline constexpr std::size_t kFinalists = 3;

// Adds the best plan of PAPER to `search`, a search by LIST, so that LIST is not slower by the
// judge either. `context` is that of the search.
absl::Status AddPaperFinalist(EncoderContext context, const std::vector<LlmStep>& llms,
                              bool exhaustive, SearchResult& search);

// Emits and runs all of search.best, writes RankedPlan::judged, ranks again, and returns the
// shortest step; of equal ones the one that came first.
absl::StatusOr<step::Step> JudgeFinalists(
    EncoderContext context, const std::vector<LlmStep>& llms,
    const std::function<absl::StatusOr<Picoseconds>(const ir::Schedule&)>& judge,
    SearchResult& search);

}  // namespace optimus::colocate
