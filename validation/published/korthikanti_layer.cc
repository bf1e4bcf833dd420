// One transformer layer, forward and backward, in five variants.

#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr int kLayers = 4;
constexpr int kMeasuredLayer = 1;  // with a layer in front of it and two behind

struct Variant {
  const char* name;
  bool sequence_parallel;
  Plan::Recompute recompute;
};
constexpr Variant kVariants[] = {
    {"baseline", false, Plan::RECOMPUTE_NONE},
    {"sequence_parallel", true, Plan::RECOMPUTE_NONE},
    {"full_recompute", false, Plan::RECOMPUTE_FULL},
    {"selective_recompute", false, Plan::RECOMPUTE_SELECTIVE},
    {"selective_recompute_sequence_parallel", true, Plan::RECOMPUTE_SELECTIVE}};

std::vector<std::string> VariantNames() {
  std::vector<std::string> names;
  for (const Variant& variant : kVariants) names.emplace_back(variant.name);
  return names;
}

step::Experiment ExperimentOf(const Variant& variant) {
  const GptShape shape = {.name = "GPT-22B",
                          .hidden = 6144,
                          .heads = 64,
                          .layers = kLayers,
                          .vocabulary = 51200,
                          .positions = 2048};
  step::Experiment experiment = MegatronJob(shape, {.profile = "a100-80gb",
                                                    .gpus = 8,
                                                    .tensor_parallel = 8,
                                                    .global_batch = 4,
                                                    .micro_batch = 4,
                                                    .sequence = 2048});
  Plan& plan = *experiment.mutable_plan();
  UseSoftwareOf2022(plan);
  plan.set_no_optimizer(true);
  plan.set_no_sequence_parallel(!variant.sequence_parallel);
  plan.set_recompute(variant.recompute);
  return experiment;
}

// When the first operation of the layer starts in the forward or in the backward pass (which
// recomputation begins).
Picoseconds Start(const step::Step& step, const ir::Timeline& timeline, int layer, bool forward) {
  Picoseconds first(std::numeric_limits<std::int64_t>::max());
  const ir::Program& program = step.schedule.programs.front();
  for (const ir::Span& span : timeline.spans) {
    const ir::Operation& op = program.operations[span.operation];
    if (op.tag.layer != layer || (op.tag.phase == Phase::kForward) != forward) continue;
    first = std::min(first, span.start);
  }
  return first;
}

double Milliseconds(Picoseconds time) { return ToSeconds(time) * 1e3; }

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const Variant& variant =
      *std::find_if(std::begin(kVariants), std::end(kVariants),
                    [&](const Variant& one) { return one.name == row.text("variant"); });
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step step, simulator.Build(ExperimentOf(variant)));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, simulator.Run(step, /*with_spans=*/true));
  const auto start = [&](int layer, bool forward) { return Start(step, timeline, layer, forward); };
  RowResult result;
  if (row.has("forward_ms")) {
    const Picoseconds time = start(kMeasuredLayer + 1, true) - start(kMeasuredLayer, true);
    result.figures.push_back({"forward", "ms", "", row.number("forward_ms"), Milliseconds(time)});
  }
  if (row.has("backward_ms")) {
    const Picoseconds time = start(kMeasuredLayer - 1, false) - start(kMeasuredLayer, false);
    result.figures.push_back({"backward", "ms", "", row.number("backward_ms"), Milliseconds(time)});
  }
  return result;
}

}  // namespace

DataSet KorthikantiLayer() {
  return {
      .name = "korthikanti_layer_22b",
      .title = "One layer of the 22B model, forward and backward, A100",
      .source =
          "Korthikanti et al., Reducing Activation Recomputation in Large Transformer "
          "Models, arXiv 2205.05198, Table 4",
      .columns = {TextColumn("variant", VariantNames()), NumberColumn("forward_ms").OrEmpty(),
                  NumberColumn("backward_ms").OrEmpty()},
      .conditions = {"variant"},
      .assumptions = {"profile a100-80gb; hidden 6144, 64 heads, sequence length 2048, micro-batch "
                      "4, tensor parallelism 8 (all published)",
                      kSoftwareOf2022,
                      "a layer lasts from its first operation to the first one of the next layer, "
                      "in a stack of four; recomputation belongs to the backward pass"},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
