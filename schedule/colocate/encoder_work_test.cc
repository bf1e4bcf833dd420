#include "schedule/colocate/encoder_work.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/accounting.h"
#include "schedule/colocate/testing.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/work_tables.h"

namespace optimus::colocate {
namespace {

using bubble::EncoderWork;
using bubble::Resource;
using bubble::StageWork;
using planner::EncoderPlan;
using ::testing::SizeIs;

// Everything that a call of MakeEncoderWork wants, of one experiment.
class Maker {
 public:
  explicit Maker(const step::Experiment& experiment,
                 step::Optimus::Scheduler scheduler = step::Optimus::PAPER)
      : experiment_(experiment), costs_(step::testing::Costs()), scheduler_(scheduler) {
    auto stack = EncoderStack(experiment_);
    EXPECT_TRUE(stack.ok()) << stack.status();
    if (stack.ok()) stack_ = *std::move(stack);
    const step::Plan& plan = experiment_.plan();
    tables.world = {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
  }
  EncoderContext context() const { return {experiment_, stack_, costs_, scheduler_}; }
  EncoderWork Make(const EncoderPlan& plan) {
    tables.lanes = tables.world.tp / plan.tensor_parallel;
    EXPECT_TRUE(CheckPlanFor(context(), 0, plan).ok());
    auto work = MakeEncoderWork(context(), 0, plan, tables);
    EXPECT_TRUE(work.ok()) << work.status();
    return work.ok() ? *std::move(work) : EncoderWork();
  }
  step::Module module(const EncoderPlan& plan) const {
    return planner::UnderPlan(stack_.modules[1], plan);
  }
  const hw::ProfileCostModel& costs() const { return costs_; }
  ir::Schedule tables;

 private:
  step::Experiment experiment_;
  hw::ProfileCostModel costs_;
  step::Stack stack_;
  step::Optimus::Scheduler scheduler_;
};

// As early as dependencies and order within resource and chain allow, nothing else on the GPU.
Picoseconds EndAlone(const StageWork& work) {
  std::vector<Picoseconds> ends;
  std::map<std::pair<Resource, std::int32_t>, Picoseconds> free;
  Picoseconds last;
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const bubble::WorkOp& op = work.ops[i];
    Picoseconds& resource = free[{op.resource, work.chain[i]}];
    Picoseconds start = resource;
    for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
      start = std::max(start, ends[work.dependencies[op.first_dependency + d]]);
    }
    resource = start + op.duration;
    ends.push_back(resource);
    last = std::max(last, resource);
  }
  return last;
}

Picoseconds BlockTime(const models::Block& block, const EncoderPlan& plan, Maker& maker) {
  const step::LoweredBlock lowered =
      step::Lower(block, maker.tables, EncoderTensorGroup("twin", plan, maker.tables.world));
  return step::BlockTime(lowered, maker.tables, maker.costs());
}

TEST(EncoderWork, OneChainLastsAsLongAsItsBlocksOneAfterTheOther) {
  for (const EncoderPlan plan : {EncoderPlan{1, 4}, EncoderPlan{1, 2}, EncoderPlan{1, 1}}) {
    Maker maker(testing::Experiment(testing::Encoder("vit-300m")));
    const EncoderWork work = maker.Make(plan);
    const step::Module module = maker.module(plan);
    const int passes = module.config.num_layers() * module.slices;
    const std::int64_t hidden = maker.context().stack.modules[0].config.hidden_size();
    const auto both = models::Gradients::kBoth;
    EXPECT_EQ(
        EndAlone(work.forward[0]),
        passes * BlockTime(models::LayerForward(module.config, module.slice), plan, maker) +
            BlockTime(models::ProjectorForward(module.config, hidden, module.whole), plan, maker))
        << planner::ToString(plan);
    EXPECT_EQ(
        EndAlone(work.backward[0]),
        passes * BlockTime(models::LayerBackward(module.config, module.slice, both), plan, maker) +
            BlockTime(models::ProjectorBackward(module.config, hidden, module.whole, both), plan,
                      maker))
        << planner::ToString(plan);
  }
}

TEST(EncoderWork, ChainsOfSlicesWaitForTheirOwnLayersOnly) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m")), step::Optimus::LIST);
  const EncoderPlan plan = {1, 4};
  const EncoderWork work = maker.Make(plan);
  const step::Module module = maker.module(plan);
  ASSERT_EQ(module.slices, 2);
  const std::int64_t hidden = maker.context().stack.modules[0].config.hidden_size();
  // Both slices at once, then the projector.
  EXPECT_EQ(
      EndAlone(work.forward[0]),
      module.config.num_layers() *
              BlockTime(models::LayerForward(module.config, module.slice), plan, maker) +
          BlockTime(models::ProjectorForward(module.config, hidden, module.whole), plan, maker));
  for (std::size_t i = 0; i < work.forward[0].ops.size(); ++i) {
    const bubble::WorkOp& op = work.forward[0].ops[i];
    for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
      const std::uint32_t before = work.forward[0].dependencies[op.first_dependency + d];
      if (op.slice >= 0) {
        EXPECT_EQ(work.forward[0].ops[before].slice, op.slice);
      }
    }
  }
}

TEST(EncoderWork, LayersOutsideSlicesInside) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m")));
  const EncoderWork work = maker.Make({2, 4});
  const auto order = [](const StageWork& stage) {
    std::vector<std::pair<int, int>> passes;  // layer, slice
    for (const bubble::WorkOp& op : stage.ops) {
      const std::pair<int, int> pass = {op.layer, op.slice};
      if (passes.empty() || passes.back() != pass) passes.push_back(pass);
    }
    return passes;
  };
  const auto forward = order(work.forward[1]);
  const int layers = maker.module({2, 4}).config.num_layers();
  ASSERT_THAT(forward, SizeIs(layers + 1));
  EXPECT_EQ(forward[0], std::make_pair(layers / 2, 0));
  EXPECT_EQ(forward[1], std::make_pair(layers / 2, 1));
  EXPECT_EQ(forward[2], std::make_pair(layers / 2 + 1, 0));
  EXPECT_EQ(forward.back().first, ir::kProjectorLayer);
  auto mirrored = order(work.backward[1]);
  std::reverse(mirrored.begin(), mirrored.end());
  EXPECT_EQ(mirrored, forward);
}

// Splitting an encoder over stages or tensor-parallel ranks keeps the work; TP 1 needs no links.
TEST(EncoderWork, StagesShareTheLayers) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m")));
  const EncoderWork whole = maker.Make({1, 4});
  const EncoderWork halves = maker.Make({2, 4});
  EXPECT_EQ(halves.forward[0].compute + halves.forward[1].compute, whole.forward[0].compute);
  EXPECT_EQ(halves.backward[0].link + halves.backward[1].link, whole.backward[0].link);
  EXPECT_EQ(maker.Make({1, 1}).forward[0].link, Picoseconds(0));
  EXPECT_EQ(halves.forward[0].outputs.size(), 1U);
  EXPECT_THAT(halves.forward_hop, SizeIs(2));  // two blocks of two stages
  EXPECT_GT(halves.forward_hop[0], Picoseconds(0));
}

TEST(EncoderWork, WeightGradientsHideUnderCollectives) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m")));
  const EncoderWork work = maker.Make({1, 4});
  const StageWork& backward = work.backward[0];
  EXPECT_LT(EndAlone(backward), backward.compute + backward.link);
}

TEST(EncoderWork, FrozenEncoderHasOnlyTheProjectorsBackward) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m", "frozen: true")));
  const EncoderWork work = maker.Make({2, 4});
  EXPECT_TRUE(work.backward[0].ops.empty());
  ASSERT_THAT(work.backward[1].ops, SizeIs(1));
  EXPECT_EQ(work.backward[1].ops[0].phase, Phase::kWeightGradient);
  EXPECT_EQ(work.backward[1].ops[0].input_part, 0);
  // Of data-parallel communication the projector's alone is left.
  EXPECT_TRUE(work.sync.gathers[0].empty());
  EXPECT_THAT(work.sync.gathers[1], SizeIs(1));
}

TEST(EncoderWork, MicroBatchesWithoutInputAreLeftOut) {
  Maker maker(
      testing::Experiment(testing::Encoder("vit-300m", "micro_batches_without_input: [1, 4]")));
  EXPECT_THAT(maker.Make({1, 4}).micro_batches, ::testing::ElementsAre(0, 2, 3, 5, 6, 7));
}

// The same ranks: nothing moves. Others: the LLM's part of the micro-batch over the network.
TEST(EncoderWork, OutputsMoveUnlessTheyAreAlreadyThere) {
  Maker maker(testing::Experiment(testing::Encoder("vit-300m")));
  const EncoderWork same = maker.Make({1, 4});
  ASSERT_THAT(same.to_llm, SizeIs(4));
  EXPECT_EQ(same.to_llm[0], Picoseconds(0));
  EXPECT_EQ(same.from_llm[0], Picoseconds(0));
  EXPECT_GT(same.to_llm[1], Picoseconds(0));
  EXPECT_EQ(same.to_llm[1], same.from_llm[1]);
  const EncoderWork narrow = maker.Make({1, 2});
  ASSERT_THAT(narrow.to_llm, SizeIs(8));
  // Half the LLM's ranks have it; the others are sent theirs.
  EXPECT_GT(narrow.to_llm[0], Picoseconds(0));
  // Two messages one after the other, of the size of one of the encoder with TP 4.
  EXPECT_EQ(narrow.to_llm[2], 2 * same.to_llm[1]);
}

// bf16 gathers, fp32 reductions, every trained parameter once, over DP_enc ranks.
TEST(EncoderSync, EveryParameterOnce) {
  for (const EncoderPlan plan : {EncoderPlan{1, 4}, EncoderPlan{2, 2}, EncoderPlan{4, 1}}) {
    for (const char* kind : {"ENCODER_DP_LAYERWISE", "ENCODER_DP_EXPOSED"}) {
      Maker maker(
          testing::Experiment(testing::Encoder("vit-300m"),
                              std::string("optimus { encoder_data_parallel: ") + kind + " }"));
      const EncoderWork work = maker.Make(plan);
      std::int64_t gathered = 0;
      std::int64_t reduced = 0;
      for (int p = 0; p < plan.pipeline_parallel; ++p) {
        for (const auto& bucket : work.sync.gathers[p]) {
          gathered += maker.tables.collectives[bucket.work].work.bytes.value();
        }
        for (const auto& bucket : work.sync.reductions[p]) {
          reduced += maker.tables.collectives[bucket.work].work.bytes.value();
          const ir::Collective& collective = maker.tables.collectives[bucket.work];
          EXPECT_EQ(ir::ShapeOf(maker.tables, maker.tables.groups[collective.group]).ranks,
                    planner::DataParallelOf(plan, maker.tables.world));
        }
      }
      const step::Module module = maker.module(plan);
      const std::int64_t parameters =
          module.config.num_layers() *
              models::LayerParametersPerGpu(module.config, plan.tensor_parallel) +
          models::ProjectorParametersPerGpu(module.config,
                                            maker.context().stack.modules[0].config.hidden_size(),
                                            plan.tensor_parallel);
      EXPECT_EQ(gathered, 2 * parameters) << planner::ToString(plan) << kind;
      EXPECT_EQ(reduced, 4 * parameters) << planner::ToString(plan) << kind;
    }
  }
}

TEST(EncoderSync, NoneWhereSaidSoOrWithoutOptimizer) {
  for (const char* plan :
       {"optimus { encoder_data_parallel: ENCODER_DP_NONE }", "no_optimizer: true"}) {
    Maker maker(testing::Experiment(testing::Encoder("vit-300m"), plan));
    const EncoderWork work = maker.Make({1, 4});
    EXPECT_TRUE(work.sync.gathers[0].empty());
    EXPECT_TRUE(work.sync.reductions[0].empty());
  }
}

}  // namespace
}  // namespace optimus::colocate
