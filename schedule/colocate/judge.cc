#include "schedule/colocate/judge.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "schedule/colocate/emit.h"
#include "schedule/ir/validate.h"

namespace optimus::colocate {
namespace {

bool RanksBefore(const RankedPlan& a, const RankedPlan& b) {
  const auto key = [](const RankedPlan& plan) {
    return std::tuple(!plan.judged.has_value(), plan.judged.value_or(plan.predicted));
  };
  return key(a) < key(b);
}

}  // namespace

absl::Status AddPaperFinalist(EncoderContext context, const std::vector<LlmStep>& llms,
                              bool exhaustive, SearchResult& search) {
  context.scheduler = step::Optimus::PAPER;
  OPTIMUS_ASSIGN_OR_RETURN(SearchResult paper, SearchPlans(context, llms, {exhaustive, 1}));
  search.plan.splits_evaluated += paper.plan.splits_evaluated;
  search.plan.ranked.push_back(std::move(paper.plan.ranked.front()));
  search.best.push_back(std::move(paper.best.front()));
  return absl::OkStatus();
}

absl::StatusOr<step::Step> JudgeFinalists(
    EncoderContext context, const std::vector<LlmStep>& llms,
    const std::function<absl::StatusOr<Picoseconds>(const ir::Schedule&)>& judge,
    SearchResult& search) {
  std::optional<step::Step> shortest;
  Picoseconds shortest_time;
  for (const BestPlan& best : search.best) {
    context.scheduler = best.scheduler;
    OPTIMUS_ASSIGN_OR_RETURN(step::Step step, EmitStep(context, llms[best.llm], best));
    OPTIMUS_RETURN_IF_ERROR(ir::Validate(step.schedule));
    OPTIMUS_ASSIGN_OR_RETURN(const Picoseconds time, judge(step.schedule));
    for (RankedPlan& ranked : search.plan.ranked) {
      if (IsOf(ranked, best, llms)) ranked.judged = time;
    }
    if (shortest.has_value() && shortest_time <= time) continue;
    shortest = std::move(step);
    shortest_time = time;
  }
  std::stable_sort(search.plan.ranked.begin(), search.plan.ranked.end(), RanksBefore);
  return *std::move(shortest);
}

}  // namespace optimus::colocate
