#include "tools/optimus_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::tools {

double GapLeft(const colocate::RankedPlan& plan) {
  const double whole = ToSeconds(plan.coarse - plan.bounds.fluid);
  return whole > 0 ? ToSeconds(plan.predicted - plan.bounds.fluid) / whole : 0;
}

Picoseconds LeastFluidBound(const colocate::OptimusPlan& plan) {
  Picoseconds least = plan.ranked.front().bounds.fluid;
  for (const colocate::RankedPlan& ranked : plan.ranked) {
    least = std::min(least, ranked.bounds.fluid);
  }
  return least;
}

std::string PlansText(const std::vector<planner::EncoderPlan>& plans) {
  return absl::StrJoin(plans, " + ", [](std::string* out, const planner::EncoderPlan& plan) {
    absl::StrAppend(out, planner::ToString(plan));
  });
}

std::string SplitText(const planner::Split& split) {
  std::string text;
  for (std::size_t first = 0; first < split.size();) {
    std::size_t last = first;
    while (last < split.size() && split[last] == split[first]) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", split[first]);
    if (last - first > 1) absl::StrAppend(&text, "*", last - first);
    first = last;
  }
  return text;
}

std::string WarmUpText(step::Plan::WarmUp warm_up) {
  switch (warm_up) {
    case step::Plan::DEFERRED:
      return "deferred";
    case step::Plan::BEST:
      return "best";
    default:
      return "Megatron";
  }
}

const char* SchedulerName(step::Optimus::Scheduler scheduler) {
  return scheduler == step::Optimus::LIST ? "list" : "paper";
}

}  // namespace optimus::tools
