#include "schedule/step/alpa.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schedule/partition/inter_operator.h"
#include "schedule/step/check.h"
#include "schedule/step/layout.h"
#include "schedule/step/memory.h"

namespace optimus::step {

absl::StatusOr<ItemRanges> LayOutInterOperator(const Experiment& experiment, const Stack& stack,
                                               const std::vector<Picoseconds>& layer_times,
                                               Bytes capacity) {
  const Plan& plan = experiment.plan();
  const std::int64_t micro_batches = MicroBatches(experiment);
  const std::vector<LayerItems> items = ItemsByLayer(stack);
  std::vector<Picoseconds> prefix(1);
  for (const Picoseconds time : layer_times) prefix.push_back(prefix.back() + time);
  const auto latency = [&](int first, int last) { return prefix[last] - prefix[first]; };
  const auto fits = [&](int stage, int first, int last) {
    return OneFOneBStageMemory(plan, stack, stage, items[first].first, items[last - 1].last,
                               micro_batches)
               .total() <= capacity;
  };
  const auto boundaries = partition::InterOperator(
      {stack.layers(), plan.pipeline_parallel(), micro_batches, latency, fits});
  if (absl::IsResourceExhausted(boundaries.status())) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "plan.layout: INTER_OPERATOR: no split of %d layers over %d stages of %d GPUs fits in %.1f "
        "GiB a GPU; use more pipeline or tensor parallelism, or recomputation",
        stack.layers(), plan.pipeline_parallel(), plan.data_parallel() * plan.tensor_parallel(),
        ToGib(capacity)));
  }
  if (!boundaries.ok()) {
    return absl::Status(boundaries.status().code(),
                        absl::StrCat("plan.layout: ", std::string(boundaries.status().message())));
  }
  return FromLayerBoundaries(stack, *boundaries);
}

}  // namespace optimus::step
