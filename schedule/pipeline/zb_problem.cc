#include "schedule/pipeline/zb_problem.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {
namespace {

absl::Status CheckLimits(const ZbProblem& problem) {
  if (problem.memory_limit.size() != static_cast<std::size_t>(problem.stages)) {
    return absl::InvalidArgumentError(absl::StrCat("memory_limit: ", problem.memory_limit.size(),
                                                   " limits for ", problem.stages,
                                                   " pipeline stages; needs one for each"));
  }
  for (int s = 0; s < problem.stages; ++s) {
    const double limit = problem.memory_limit[s];
    const double least = problem.chunks + AddedByData(problem.shares.Of(s));
    if (!(limit >= least)) {  // NaN as well
      return absl::InvalidArgumentError(absl::StrCat(
          "memory_limit of stage ", s, ": ", limit, " micro-batches of a chunk; needs at least ",
          least, ", one for each chunk, or no micro-batch could pass"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckZbProblem(const ZbProblem& problem) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(problem.stages, problem.chunks, problem.micro_batches));
  Order shape{problem.stages, problem.chunks, problem.micro_batches, {}, problem.placement};
  OPTIMUS_RETURN_IF_ERROR(CheckTimes(shape, problem.times));
  if (!problem.times.together.empty()) {
    return absl::InvalidArgumentError(
        "together: schedules of the zero-bubble family share no slots; leave it empty");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckShares(problem.shares, problem.stages));
  return CheckLimits(problem);
}

ZbScore ScoreOf(const std::vector<Picoseconds>& first_start,
                const std::vector<Picoseconds>& last_end, ZbObjective objective) {
  Picoseconds stage_span, span;
  for (std::size_t s = 0; s < first_start.size(); ++s) {
    stage_span = std::max(stage_span, last_end[s] - first_start[s]);
    span = std::max(span, last_end[s]);
  }
  if (objective == ZbObjective::kStageSpan) return {stage_span, span};
  return {span, stage_span};
}

bool FitsMemory(const ZbProblem& problem, const Order& order) {
  for (std::size_t s = 0; s < order.slots.size(); ++s) {
    Held held;
    for (const Slot& slot : order.slots[s]) {
      held.Add(slot.kind);
      if (!Fits(held, problem.shares.Of(s), problem.memory_limit[s])) return false;
    }
  }
  return true;
}

}  // namespace optimus::pipeline
