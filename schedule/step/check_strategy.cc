#include "schedule/step/check_strategy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/step/check.h"
#include "schedule/step/check_fields.h"

namespace optimus::step {
namespace {

// More would never be reached: the largest models have some hundred layers.
constexpr int kMaxPrefetch = 1000;

absl::Status CheckDivides(const std::string& field, int value, const std::string& of, int whole) {
  OPTIMUS_RETURN_IF_ERROR(CheckPositive(field, value));
  if (whole % value == 0) return absl::OkStatus();
  return Bad(field, absl::StrCat(value, " does not divide ", of, " = ", whole),
             "an encoder pipeline uses whole parts of the LLM's GPUs: use a divisor");
}

absl::Status CheckEncoderPlan(const Plan& plan, int index) {
  const Optimus::EncoderPlan& encoder = plan.optimus().encoder_plans(index);
  const std::string field = absl::StrCat("plan.optimus.encoder_plans[", index, "]");
  OPTIMUS_RETURN_IF_ERROR(CheckDivides(field + ".pipeline_parallel", encoder.pipeline_parallel(),
                                       "plan.pipeline_parallel", plan.pipeline_parallel()));
  OPTIMUS_RETURN_IF_ERROR(CheckDivides(field + ".tensor_parallel", encoder.tensor_parallel(),
                                       "plan.tensor_parallel", plan.tensor_parallel()));
  for (int i = 0; i < encoder.split_size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(
        CheckNotNegative(absl::StrCat(field, ".split[", i, "]"), encoder.split(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckOptimus(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  const Optimus& optimus = plan.optimus();
  if (experiment.encoders_size() == 0) {
    return Bad("plan.strategy", "OPTIMUS without an encoder",
               "add encoders, or use strategy PIPELINE for the LLM alone");
  }
  if (plan.layout() == Plan::ENCODER_IN_STAGE_0) {
    return Bad("plan.layout", "ENCODER_IN_STAGE_0 under strategy OPTIMUS",
               "the layout is that of the LLM alone, for example EQUAL_LAYERS");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckKnown("plan.optimus.scheduler", optimus.scheduler(),
                                     Optimus::Scheduler_IsValid(optimus.scheduler()),
                                     "PAPER or LIST"));
  OPTIMUS_RETURN_IF_ERROR(
      CheckKnown("plan.optimus.encoder_data_parallel", optimus.encoder_data_parallel(),
                 Optimus::EncoderDataParallel_IsValid(optimus.encoder_data_parallel()),
                 "ENCODER_DP_LAYERWISE, ENCODER_DP_EXPOSED or ENCODER_DP_NONE"));
  if (optimus.encoder_plans_size() != 0 &&
      optimus.encoder_plans_size() != experiment.encoders_size()) {
    return Bad("plan.optimus.encoder_plans",
               absl::StrCat(optimus.encoder_plans_size(), " plans for ", experiment.encoders_size(),
                            " encoders"),
               "give one for each encoder, or none to have them searched");
  }
  for (int i = 0; i < optimus.encoder_plans_size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(CheckEncoderPlan(plan, i));
  }
  return absl::OkStatus();
}

// A field that the strategy decides: only `allowed` may stand there.
absl::Status CheckDecided(const std::string& field, const std::string& value,
                          const std::string& allowed, const std::string& strategy) {
  if (value == allowed) return absl::OkStatus();
  return Bad(field, absl::StrCat(value, " under strategy ", strategy),
             absl::StrCat("it is always ", allowed,
                          " there; leave it out, in the file and among the flags"));
}

absl::Status CheckOneFOneB(const Plan& plan, const std::string& strategy) {
  OPTIMUS_RETURN_IF_ERROR(
      CheckDecided("plan.model_chunks", absl::StrCat(plan.model_chunks()), "1", strategy));
  // Other numbers are refused, with those that are allowed, by the check of the field alone.
  if (!Plan::PipelineSchedule_IsValid(plan.schedule())) return absl::OkStatus();
  return CheckDecided("plan.schedule", Plan::PipelineSchedule_Name(plan.schedule()), "ONE_F_ONE_B",
                      strategy);
}

absl::Status CheckLayoutIs(const Plan& plan, Plan::Layout layout, const std::string& strategy) {
  if (!Plan::Layout_IsValid(plan.layout())) return absl::OkStatus();
  return CheckDecided("plan.layout", Plan::Layout_Name(plan.layout()), Plan::Layout_Name(layout),
                      strategy);
}

absl::Status CheckFsdp(const Plan& plan) {
  const std::string name = "FSDP";
  OPTIMUS_RETURN_IF_ERROR(
      CheckDecided("plan.pipeline_parallel", absl::StrCat(plan.pipeline_parallel()), "1", name));
  OPTIMUS_RETURN_IF_ERROR(
      CheckDecided("plan.tensor_parallel", absl::StrCat(plan.tensor_parallel()), "1", name));
  OPTIMUS_RETURN_IF_ERROR(CheckOneFOneB(plan, name));
  OPTIMUS_RETURN_IF_ERROR(CheckLayoutIs(plan, Plan::EQUAL_LAYERS, name));
  if (plan.no_distributed_optimizer()) {
    return Bad("plan.no_distributed_optimizer", "is set under strategy FSDP",
               "remove it: FSDP shards the optimizer as well");
  }
  if (plan.grad_reduce_in_bf16()) {
    return Bad("plan.grad_reduce_in_bf16", "is set under strategy FSDP",
               "remove it: FSDP reduces in bf16 unless plan.fsdp.reduce_in_fp32 is set");
  }
  if (plan.no_optimizer()) {
    return Bad("plan.no_optimizer", "is set under strategy FSDP",
               "remove it: gathers and reductions belong to every layer");
  }
  if (plan.dp_communication() == Plan::DP_OVERLAPPED) {
    return Bad("plan.dp_communication", "DP_OVERLAPPED under strategy FSDP",
               "remove it: plan.fsdp.prefetch says what overlaps");
  }
  if (plan.fsdp().prefetch() >= 1 && plan.fsdp().prefetch() <= kMaxPrefetch) {
    return absl::OkStatus();
  }
  return Bad("plan.fsdp.prefetch", absl::StrCat("is ", plan.fsdp().prefetch()),
             absl::StrCat("it must be from 1 to ", kMaxPrefetch, " layers, or 0 for 1"));
}

absl::Status CheckAlpa(const Plan& plan) {
  OPTIMUS_RETURN_IF_ERROR(CheckOneFOneB(plan, "ALPA"));
  return CheckLayoutIs(plan, Plan::INTER_OPERATOR, "ALPA");
}

absl::Status CheckForeignFields(const Plan& plan) {
  const std::string name = Plan::Strategy_Name(plan.strategy());
  if (plan.has_optimus() && plan.strategy() != Plan::OPTIMUS) {
    return Bad("plan.optimus", absl::StrCat("is set under strategy ", name),
               "remove it, or set strategy: OPTIMUS");
  }
  if (plan.has_fsdp() && plan.strategy() != Plan::FSDP) {
    return Bad("plan.fsdp", absl::StrCat("is set under strategy ", name),
               "remove it, or set strategy: FSDP");
  }
  if (plan.layout() == Plan::INTER_OPERATOR && plan.strategy() != Plan::ALPA) {
    return Bad("plan.layout", absl::StrCat("INTER_OPERATOR under strategy ", name),
               "use BALANCED, or set strategy: ALPA");
  }
  return absl::OkStatus();
}

}  // namespace

void FillStrategyDefaults(Plan& plan) {
  const auto fill_layout = [&plan](Plan::Layout layout) {
    if (plan.layout() == Plan::LAYOUT_UNSPECIFIED) plan.set_layout(layout);
  };
  const bool one_f_one_b = plan.strategy() == Plan::FSDP || plan.strategy() == Plan::ALPA;
  if (one_f_one_b && plan.schedule() == Plan::PIPELINE_SCHEDULE_UNSPECIFIED) {
    plan.set_schedule(Plan::ONE_F_ONE_B);
  }
  switch (plan.strategy()) {
    case Plan::OPTIMUS:
      fill_layout(Plan::EQUAL_LAYERS);
      break;
    case Plan::FSDP:
      fill_layout(Plan::EQUAL_LAYERS);
      if (plan.fsdp().prefetch() == 0) plan.mutable_fsdp()->set_prefetch(1);
      break;
    case Plan::ALPA:
      fill_layout(Plan::INTER_OPERATOR);
      plan.set_no_sequence_parallel(true);
      plan.set_no_distributed_optimizer(true);
      break;
    default:
      break;
  }
}

absl::Status CheckStrategy(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  OPTIMUS_RETURN_IF_ERROR(CheckKnown("plan.strategy", plan.strategy(),
                                     Plan::Strategy_IsValid(plan.strategy()),
                                     "PIPELINE, OPTIMUS, FSDP or ALPA"));
  if (experiment.has_profiled() && plan.strategy() != Plan::PIPELINE) {
    return Bad("plan.strategy",
               absl::StrCat(Plan::Strategy_Name(plan.strategy()), " for profiled stages"),
               "it needs models: give llm and encoders, or use strategy PIPELINE");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckForeignFields(plan));
  switch (plan.strategy()) {
    case Plan::OPTIMUS:
      return CheckOptimus(experiment);
    case Plan::FSDP:
      return CheckFsdp(plan);
    case Plan::ALPA:
      return CheckAlpa(plan);
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckMicroBatchesWithoutInput(const Experiment& experiment, int encoder) {
  const auto& skipped = experiment.encoders(encoder).micro_batches_without_input();
  const std::string field = absl::StrCat("encoders[", encoder, "].micro_batches_without_input");
  if (skipped.empty()) return absl::OkStatus();
  if (experiment.plan().strategy() != Plan::OPTIMUS) {
    return absl::UnimplementedError(absl::StrCat(
        field, ": is set under strategy ", Plan::Strategy_Name(experiment.plan().strategy()),
        ", where every micro-batch passes all layers; remove it, or use OPTIMUS"));
  }
  const int micro_batches = MicroBatches(experiment);
  for (int i = 0; i < skipped.size(); ++i) {
    const std::string entry = absl::StrCat(field, "[", i, "]");
    if (skipped[i] < 0 || skipped[i] >= micro_batches) {
      return Bad(entry, absl::StrCat("is ", skipped[i]),
                 absl::StrCat("the micro-batches of a pipeline go from 0 to ", micro_batches - 1));
    }
    if (i > 0 && skipped[i] <= skipped[i - 1]) {
      return Bad(entry, absl::StrCat(skipped[i], " comes after ", skipped[i - 1]),
                 "list every micro-batch once, in ascending order");
    }
  }
  if (skipped.size() < micro_batches) return absl::OkStatus();
  return Bad(field, "lists every micro-batch", "remove the encoder: it would have no work");
}

Experiment LlmAlone(const Experiment& experiment) {
  Experiment alone = experiment;
  alone.clear_encoders();
  alone.mutable_plan()->set_strategy(Plan::PIPELINE);
  alone.mutable_plan()->clear_optimus();
  return alone;
}

}  // namespace optimus::step
