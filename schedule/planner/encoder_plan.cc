#include "schedule/planner/encoder_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "models/accounting.h"

namespace optimus::planner {
namespace {

std::vector<std::int32_t> DivisorsOf(std::int32_t number) {
  std::vector<std::int32_t> divisors;
  for (std::int32_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

absl::Status MustDivide(const EncoderPlan& plan, absl::string_view axis, std::int32_t own,
                        std::int32_t llm) {
  if (own >= 1 && own <= llm && llm % own == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "encoder plan ", ToString(plan), ": ", axis, " parallelism ", own,
      " does not divide the LLM's ", llm, "; use one of ", absl::StrJoin(DivisorsOf(llm), ", ")));
}

}  // namespace

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

absl::Status ValidatePlan(const EncoderPlan& plan, const ir::Parallelism& llm) {
  OPTIMUS_RETURN_IF_ERROR(MustDivide(plan, "pipeline", plan.pipeline_parallel, llm.pp));
  return MustDivide(plan, "tensor", plan.tensor_parallel, llm.tp);
}

absl::Status ValidatePlanFor(const EncoderPlan& plan, const ir::Parallelism& llm,
                             const models::ModelConfig& encoder) {
  OPTIMUS_RETURN_IF_ERROR(ValidatePlan(plan, llm));
  if (encoder.num_layers() < plan.pipeline_parallel) {
    return absl::InvalidArgumentError(absl::StrCat("encoder plan ", ToString(plan), ": ",
                                                   encoder.name(), " has ", encoder.num_layers(),
                                                   " layers, one stage or more would have none"));
  }
  if (absl::Status status = models::ValidateModel(encoder, plan.tensor_parallel); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("encoder plan ", ToString(plan), ": ",
                                                    std::string(status.message())));
  }
  return absl::OkStatus();
}

}  // namespace optimus::planner
