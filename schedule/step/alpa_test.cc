#include "schedule/step/alpa.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/step/layout.h"
#include "schedule/step/memory.h"
#include "schedule/step/testing.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using testing::Parse;
using testing::SmallModel;

constexpr char kAlpa[] = "strategy: ALPA layout: LAYOUT_UNSPECIFIED no_optimizer: false ";

Experiment Alpa(const std::string& plan = "") { return Parse(SmallModel(kAlpa + plan)); }

// Random cuts of the items, one item a stage at least.
ItemRanges RandomRanges(std::mt19937_64& random, int items, int stages) {
  std::vector<int> cuts(items - 1);
  for (int i = 0; i < items - 1; ++i) cuts[i] = i + 1;
  std::shuffle(cuts.begin(), cuts.end(), random);
  ItemRanges ranges(cuts.begin(), cuts.begin() + stages - 1);
  ranges.push_back(0);
  ranges.push_back(items);
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// One stage alone, as the dynamic programme sees it, against all stages of a real order.
TEST(OneFOneBStageMemory, EqualsMemoryByStage) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const int stages = 1 + trial % 5;
    const int micro_batches = stages + trial % 3;
    Experiment experiment = Alpa();
    experiment.mutable_encoders(0)->set_frozen(trial % 4 == 0);
    experiment.mutable_plan()->set_pipeline_parallel(stages);
    experiment.mutable_plan()->set_no_sequence_parallel(trial % 2 == 0);
    const auto stack = BuildStack(experiment);
    ASSERT_TRUE(stack.ok()) << stack.status();
    const auto order = pipeline::OneForwardOneBackward(stages, micro_batches);
    ASSERT_TRUE(order.ok()) << order.status();
    const ItemRanges ranges = RandomRanges(random, static_cast<int>(stack->items.size()), stages);
    const auto expected = MemoryByStage(experiment.plan(), *stack, ranges, *order);
    for (int s = 0; s < stages; ++s) {
      const StageMemory memory = OneFOneBStageMemory(experiment.plan(), *stack, s, ranges[s],
                                                     ranges[s + 1], micro_batches);
      EXPECT_EQ(memory.parameters, expected[s].parameters) << trial << " stage " << s;
      EXPECT_EQ(memory.gradients, expected[s].gradients) << trial << " stage " << s;
      EXPECT_EQ(memory.optimizer_state, expected[s].optimizer_state) << trial << " stage " << s;
      EXPECT_EQ(memory.activations, expected[s].activations) << trial << " stage " << s;
      EXPECT_EQ(memory.workspace, expected[s].workspace) << trial << " stage " << s;
    }
  }
}

struct Layers {
  Stack stack;
  std::vector<Picoseconds> times;
};
Layers LayersOf(const Experiment& experiment) {
  const auto costs = Costs();
  Layers result{*BuildStack(experiment), {}};
  ir::Schedule schedule;
  const Plan& plan = experiment.plan();
  schedule.world = {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
  const BlockTable blocks(result.stack, schedule);
  result.times = LayerTimes(result.stack, blocks, schedule, costs);
  return result;
}

// Two stages: every split there is.
TEST(LayOutInterOperator, IsTheBestOfAllSplitsThatFit) {
  const Experiment experiment = Alpa();
  const Layers layers = LayersOf(experiment);
  const std::vector<LayerItems> items = ItemsByLayer(layers.stack);
  const auto costs = Costs();
  // The tightest capacity that the last one allows, then more and more.
  for (const double gib : {24.0, 26.0, 28.0, 32.0, 80.0}) {
    const Bytes capacity(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024));
    Picoseconds best_largest;
    int best = 0;
    for (int cut = 1; cut < layers.stack.layers(); ++cut) {
      const int item = items[cut].first;
      const auto end = static_cast<int>(layers.stack.items.size());
      const Plan& plan = experiment.plan();
      if (OneFOneBStageMemory(plan, layers.stack, 0, 0, item, 4).total() > capacity) continue;
      if (OneFOneBStageMemory(plan, layers.stack, 1, item, end, 4).total() > capacity) continue;
      Picoseconds first, second;
      for (int i = 0; i < layers.stack.layers(); ++i) (i < cut ? first : second) += layers.times[i];
      const Picoseconds largest = std::max(first, second);
      if (best != 0 && largest >= best_largest) continue;
      best = cut;
      best_largest = largest;
    }
    const auto ranges = LayOutInterOperator(experiment, layers.stack, layers.times, capacity);
    if (best == 0) {
      EXPECT_THAT(std::string(ranges.status().message()), HasSubstr("no split of 128 layers"));
      continue;
    }
    ASSERT_TRUE(ranges.ok()) << ranges.status();
    EXPECT_EQ((*ranges)[1], items[best].first) << gib;
  }
}

TEST(Alpa, IsOneFOneBWithoutSequenceParallelismOrDistributedOptimizer) {
  Experiment experiment = Alpa();
  experiment.mutable_plan()->set_data_parallel(2);
  experiment.mutable_hardware()->set_gpus(32);
  experiment.mutable_hardware()->set_cluster_gpus(32);
  const auto costs = Costs();
  const Step step = Build(experiment, costs);
  for (const ir::Collective& collective : step.schedule.collectives) {
    EXPECT_EQ(collective.work.kind, CollectiveKind::kAllReduce) << collective.work.name;
  }
  // The same as the pipeline that says all this itself.
  Experiment pipeline = experiment;
  Plan& plan = *pipeline.mutable_plan();
  plan.set_strategy(Plan::PIPELINE);
  plan.set_layout(Plan::LAYER_COUNTS);
  const Layers layers = LayersOf(experiment);
  const auto ranges =
      LayOutInterOperator(experiment, layers.stack, layers.times, costs.memory_capacity());
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  const auto is_layer = [](const Item& item) { return item.kind == ItemKind::kLayer; };
  const auto first = static_cast<int>(std::count_if(
      layers.stack.items.begin(), layers.stack.items.begin() + (*ranges)[1], is_layer));
  plan.add_layer_counts(first);
  plan.add_layer_counts(128 - first);
  EXPECT_EQ(Build(pipeline, costs).schedule, step.schedule);
}

TEST(Alpa, RefusesWhatFitsNowhere) {
  Experiment experiment = Alpa();
  experiment.set_llm("gpt-175b");
  const auto step = BuildStep(experiment, Costs());
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(step.status().message()),
              HasSubstr("plan.layout: INTER_OPERATOR: no split of 144 layers over 2 stages"));
}

}  // namespace
}  // namespace optimus::step
