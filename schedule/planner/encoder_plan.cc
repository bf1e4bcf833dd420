#include "schedule/planner/encoder_plan.h"

#include "absl/strings/str_cat.h"

namespace optimus::planner {

std::int32_t DataParallelOf(const EncoderPlan& plan, const ir::Parallelism& llm) {
  return llm.gpus() / (plan.pipeline_parallel * plan.tensor_parallel);
}

std::int32_t PipelinesOf(const EncoderPlan& plan, const ir::Parallelism& llm) {
  return DataParallelOf(plan, llm) / llm.dp;
}

std::string ToString(const EncoderPlan& plan) {
  return absl::StrCat("PP ", plan.pipeline_parallel, " x TP ", plan.tensor_parallel);
}

std::vector<EncoderPlan> EnumeratePlans(const ir::Parallelism& llm) {
  std::vector<EncoderPlan> plans;
  for (std::int32_t pp = 1; pp <= llm.pp; ++pp) {
    if (llm.pp % pp != 0) continue;
    for (std::int32_t tp = llm.tp; tp >= 1; --tp) {
      if (llm.tp % tp == 0) plans.push_back({pp, tp});
    }
  }
  return plans;
}

}  // namespace optimus::planner
