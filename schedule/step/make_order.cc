#include "schedule/step/make_order.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "schedule/pipeline/dualpipe.h"
#include "schedule/pipeline/dualpipe_v.h"
#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/zb_auto.h"
#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_h2.h"
#include "schedule/pipeline/zb_v.h"
#include "schedule/step/check.h"
#include "schedule/step/check_fields.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/custom_order.h"

namespace optimus::step {
namespace {

// The pipeline's errors begin with the name of its own parameter; the user knows the field that it
// was made from.
absl::Status InField(const absl::Status& status) {
  const std::string message(status.message());
  std::string prefix = "plan.schedule: ";
  if (message.rfind("micro_batch_group: ", 0) == 0) prefix = "plan.";
  if (message.rfind("micro-batches: ", 0) == 0) prefix = "batch.global_batch: ";
  if (message.rfind("pipeline stages: ", 0) == 0) prefix = "plan.pipeline_parallel: ";
  if (message.rfind("plan.", 0) == 0) prefix = "";
  return absl::Status(status.code(), prefix + message);
}

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// What a stage needs for one micro-batch in every chunk, one of them on its way from data to weight
// gradient.
Bytes LeastHeld(const Plan& plan, const MicroBatchBytes& kept) {
  return std::int64_t{plan.model_chunks() - 1} * kept.activations +
         std::max(kept.activations, kept.weight_gradients);
}

absl::Status TooLittle(const Plan& plan, const Kept& kept, std::size_t stage) {
  Bytes least;
  for (const MicroBatchBytes& of_stage : kept.by_stage) {
    least = std::max(least, LeastHeld(plan, of_stage));
  }
  return Bad("plan.activation_limit_gib",
             absl::StrFormat("%.9g, but one micro-batch keeps %.6f GiB on stage %d",
                             plan.activation_limit_gib(),
                             ToGib(LeastHeld(plan, kept.by_stage[stage])), stage),
             // Rounded up, so that what the hint says will do.
             absl::StrFormat("set %.6f or more, or cut what a micro-batch keeps (micro-batch "
                             "size, recomputation, tensor parallelism)",
                             std::ceil(ToGib(least) * 1e6) / 1e6));
}

// What the stages may hold, in micro-batches of a chunk.
struct Limits {
  std::vector<double> by_stage;
  pipeline::ActivationShares shares;
};

// By plan.activation_limit_gib.
absl::StatusOr<Limits> LimitsInBytes(const Plan& plan, const Kept& kept) {
  const double limit = plan.activation_limit_gib() * kGib;
  Limits limits;
  limits.by_stage.reserve(kept.by_stage.size());
  limits.shares.by_stage.reserve(kept.by_stage.size());
  for (std::size_t s = 0; s < kept.by_stage.size(); ++s) {
    if (limit < static_cast<double>(LeastHeld(plan, kept.by_stage[s]).value())) {
      return TooLittle(plan, kept, s);
    }
    const auto one = static_cast<double>(kept.by_stage[s].activations.value());
    const auto for_weights = static_cast<double>(kept.by_stage[s].weight_gradients.value());
    // A stage that keeps nothing is not limited.
    limits.by_stage.push_back(one == 0 ? std::numeric_limits<double>::max() : limit / one);
    limits.shares.by_stage.push_back(one == 0 ? 1 : for_weights / one);
  }
  return limits;
}

absl::StatusOr<Limits> LimitsOf(const Experiment& experiment, const Kept& kept) {
  const Plan& plan = experiment.plan();
  if (plan.activation_limit_gib() > 0) return LimitsInBytes(plan, kept);
  // Counted in micro-batches, as in the papers: where a weight gradient needs more than a forward
  // leaves, a micro-batch counts as one from the forward to the weight gradient.
  const int times_1f1b = plan.schedule() == Plan::ZB_2P ? 2 : 1;
  const double given = experiment.profiled().memory_limit_micro_batches();
  const double held = given > 0 ? given : times_1f1b * plan.pipeline_parallel();
  return Limits{std::vector<double>(plan.pipeline_parallel(), plan.model_chunks() * held),
                {std::min(kept.weight_share, 1.0)}};
}

absl::StatusOr<pipeline::Order> AutomaticOrder(const Experiment& experiment, int micro_batches,
                                               OrderTimes times) {
  const Plan& plan = experiment.plan();
  OPTIMUS_ASSIGN_OR_RETURN(Limits limits, LimitsOf(experiment, times.kept));
  // An optimizer waits for the gradient norm of all stages; without one every stage is for itself.
  const pipeline::ZbObjective objective =
      plan.no_optimizer() ? pipeline::ZbObjective::kStageSpan : pipeline::ZbObjective::kSpan;
  if (plan.schedule() == Plan::ZB_V) {
    return pipeline::ZbVAuto({.stages = plan.pipeline_parallel(),
                              .micro_batches = micro_batches,
                              .times = std::move(times.times),
                              .memory_limit = std::move(limits.by_stage),
                              .shares = std::move(limits.shares),
                              .objective = objective});
  }
  return pipeline::ZbAuto({.stages = plan.pipeline_parallel(),
                           .micro_batches = micro_batches,
                           .times = std::move(times.times),
                           .memory_limit = std::move(limits.by_stage),
                           .shares = std::move(limits.shares),
                           .objective = objective});
}

// All but the automatic ones.
absl::StatusOr<pipeline::Order> FixedOrder(const Plan& plan, int micro_batches,
                                           pipeline::WarmUp warm_up) {
  const int stages = plan.pipeline_parallel();
  switch (plan.schedule()) {
    case Plan::GPIPE:
      return pipeline::GPipe(stages, micro_batches);
    case Plan::ONE_F_ONE_B:
      return pipeline::OneForwardOneBackward(stages, micro_batches);
    case Plan::ZB_H1:
      return pipeline::ZbH1(stages, micro_batches);
    case Plan::ZB_H2:
      return pipeline::ZbH2(stages, micro_batches);
    case Plan::DUALPIPE:
      return pipeline::DualPipe(stages, micro_batches);
    case Plan::DUALPIPE_V:
      return pipeline::DualPipeV(stages, micro_batches);
    default:
      return pipeline::Interleaved({.stages = stages,
                                    .chunks = plan.model_chunks(),
                                    .micro_batches = micro_batches,
                                    .group_size = plan.micro_batch_group(),
                                    .warm_up = warm_up});
  }
}

}  // namespace

absl::StatusOr<pipeline::Order> MakeOrder(const Experiment& experiment, pipeline::WarmUp warm_up,
                                          const std::function<OrderTimes()>& times) {
  const Plan& plan = experiment.plan();
  if (plan.schedule() == Plan::CUSTOM) return ReadCustomOrder(experiment);
  const int micro_batches = MicroBatches(experiment);
  absl::StatusOr<pipeline::Order> order = HasMemoryLimit(plan.schedule())
                                              ? AutomaticOrder(experiment, micro_batches, times())
                                              : FixedOrder(plan, micro_batches, warm_up);
  if (order.ok()) return order;
  return InField(order.status());
}

absl::Status CheckOrder(const Experiment& experiment) {
  // The automatic ones take any number of micro-batches.
  if (HasMemoryLimit(experiment.plan().schedule())) return absl::OkStatus();
  return MakeOrder(experiment, pipeline::WarmUp::kMegatron, [] { return OrderTimes(); }).status();
}

absl::StatusOr<Placing> PlacingOf(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  Placing placing{pipeline::Placement::kLoop, plan.pipeline_parallel(), plan.model_chunks()};
  switch (plan.schedule()) {
    case Plan::ZB_V:
    case Plan::DUALPIPE_V:
      placing.placement = pipeline::Placement::kV;
      break;
    case Plan::DUALPIPE:
      placing.placement = pipeline::Placement::kBidirectional;
      break;
    case Plan::CUSTOM: {
      OPTIMUS_ASSIGN_OR_RETURN(const pipeline::Order order, ReadCustomOrder(experiment));
      return PlacingOf(order);
    }
    default:
      break;
  }
  return placing;
}

}  // namespace optimus::step
