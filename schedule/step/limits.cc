#include "schedule/step/limits.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "schedule/step/check.h"
#include "schedule/step/fsdp.h"
#include "schedule/step/memory.h"

namespace optimus::step {
namespace {

// Sums of bytes and picoseconds in 63 bits, with room for what is added to them later.
constexpr double kMaxSum = 4e18;

double Operations(const LoweredBlock& forward, const LoweredBlock& backward) {
  return static_cast<double>(forward.ops.size() + backward.ops.size());
}

// A send and a receive in either direction.
double MessageOperations(const Placing& placing) { return 4.0 * placing.CrossedBoundaries(); }

// What a step is large in.
struct Factor {
  std::string field, description, hint;
  double count = 0;
};

Factor MicroBatchFactor(const Experiment& experiment) {
  return {"batch.global_batch", "micro-batches",
          "use fewer: a smaller global batch or larger micro-batches",
          static_cast<double>(MicroBatches(experiment))};
}

Factor LargestFactor(const Experiment& experiment, const Stack& stack) {
  Factor largest = MicroBatchFactor(experiment);
  const auto consider = [&largest](Factor factor) {
    if (factor.count > largest.count) largest = std::move(factor);
  };
  for (std::size_t m = 0; m < stack.modules.size(); ++m) {
    const Module& module = stack.modules[m];
    const std::string encoder = absl::StrCat("encoders[", static_cast<int>(m) - 1, "]");
    consider({m == 0 ? "llm" : encoder + ".model", "layers", "use a model of fewer layers",
              static_cast<double>(module.config.num_layers())});
    consider({encoder + ".sequences_per_slice", "slices a micro-batch",
              "use larger slices, or 0 for the whole micro-batch",
              static_cast<double>(module.slices)});
  }
  return largest;
}

absl::Status CheckOperationCount(const Experiment& experiment, double per_micro_batch,
                                 const Factor& largest) {
  const bool two_orders = experiment.plan().warm_up() == Plan::BEST;
  const double limit = two_orders ? kMaxOperations / 2 : kMaxOperations;
  const double count = per_micro_batch * MicroBatches(experiment);
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: the step has %.0f operations (%d micro-batches of %.0f), more than %.0f%s; its largest "
      "factor is %.0f %s: %s",
      largest.field, count, MicroBatches(experiment), per_micro_batch, limit,
      two_orders ? ", the limit with plan.warm_up BEST" : "", largest.count, largest.description,
      largest.hint));
}

// An upper bound of what a stage keeps: all micro-batches at once, of all layers.
absl::Status CheckActivations(const Experiment& experiment, const Stack& stack) {
  double bytes = 0;
  for (int i = 0; i < static_cast<int>(stack.items.size()); ++i) {
    bytes += static_cast<double>(ActivationBytes(stack, i, i + 1).value());
  }
  if (bytes * MicroBatches(experiment) <= kMaxSum) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("batch.micro_batch: ", MicroBatches(experiment), " micro-batches keep up to ",
                   bytes, " bytes of activations each, more than ", kMaxSum,
                   " in all; use smaller micro-batches or shorter sequences"));
}

}  // namespace

double OperationsPerMicroBatch(const Plan& plan, const Placing& placing, const Stack& stack,
                               const BlockTable& blocks) {
  double count = MessageOperations(placing);
  for (const Item& item : stack.items) {
    const int passes = item.kind == ItemKind::kLayer ? stack.modules[item.module].slices : 1;
    const ItemBlocks& work = blocks.Of(item);
    count += passes * Operations(work.forward, work.backward);
  }
  if (plan.strategy() == Plan::FSDP) count += FsdpCollectivesPerMicroBatch(plan, stack);
  return count;
}

double OperationsPerMicroBatch(const Placing& placing, const ProfiledBlocks& blocks) {
  return MessageOperations(placing) +
         placing.virtual_stages() * Operations(blocks.forward, blocks.backward);
}

absl::Status CheckStepSize(const Experiment& experiment, const Placing& placing, const Stack& stack,
                           const BlockTable& blocks) {
  OPTIMUS_RETURN_IF_ERROR(CheckOperationCount(
      experiment, OperationsPerMicroBatch(experiment.plan(), placing, stack, blocks),
      LargestFactor(experiment, stack)));
  return CheckActivations(experiment, stack);
}

absl::Status CheckStepSize(const Experiment& experiment, const Placing& placing,
                           const ProfiledBlocks& blocks) {
  return CheckOperationCount(experiment, OperationsPerMicroBatch(placing, blocks),
                             MicroBatchFactor(experiment));
}

absl::Status CheckLayerTimes(const std::vector<Picoseconds>& layer_times) {
  double sum = 0;
  for (const Picoseconds time : layer_times) sum += static_cast<double>(time.value());
  if (sum <= kMaxSum) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "plan.layout: BALANCED and INTER_OPERATOR add up layer times: one micro-batch takes ",
      sum * 1e-12, " s, more than ", kMaxSum * 1e-12,
      " s; use smaller micro-batches or shorter sequences"));
}

}  // namespace optimus::step
