#include "schedule/ir/bubbles.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/stall_account.h"
#include "schedule/ir/testing.h"

namespace optimus::ir {
namespace {

using ::testing::ElementsAre;
using testing::HandCosts;
using testing::MakeTag;
using testing::OneForwardOneBackward;
using testing::PhaseTag;
using testing::ScheduleBuilder;

constexpr BubbleClass kAll[] = {BubbleClass::kDpAllGather, BubbleClass::kDpReduceScatter,
                                BubbleClass::kPpWarmup,    BubbleClass::kPpCooldown,
                                BubbleClass::kPpOther,     BubbleClass::kTp};

RankAccount Account(std::int64_t compute, std::int64_t optimizer,
                    std::array<std::int64_t, kBubbleClassCount> bubbles) {
  RankAccount account;
  account.compute = Picoseconds(compute);
  account.optimizer = Picoseconds(optimizer);
  for (int i = 0; i < kBubbleClassCount; ++i) account.bubbles[i] = Picoseconds(bubbles[i]);
  return account;
}

std::string Print(const RankAccount& account) {
  std::string text =
      absl::StrCat("compute ", account.compute.value(), " optimizer ", account.optimizer.value());
  for (const BubbleClass bubble : kAll) {
    absl::StrAppend(&text, " ", ToString(bubble), " ",
                    account.bubbles[static_cast<std::size_t>(bubble)].value());
  }
  return text;
}

std::vector<RankAccount> AccountsOf(const Schedule& schedule) {
  const HandCosts costs;
  const absl::StatusOr<Timeline> timeline = CriticalPathRunner(costs).Run(schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  std::vector<RankAccount> accounts;
  for (const EntityAccount& entity : timeline->entities) accounts.push_back(entity.account);
  return accounts;
}

TEST(BubbleNames, AreThoseOfTheJsonOutput) {
  std::vector<std::string> names;
  for (const BubbleClass bubble : kAll) names.emplace_back(ToString(bubble));
  EXPECT_THAT(names, ElementsAre("dp_all_gather", "dp_reduce_scatter", "pp_warmup", "pp_cooldown",
                                 "pp_other", "tp"));
}

class ClassifyWaitTest : public ::testing::Test {
 protected:
  ClassifyWaitTest() : builder_({2, 2, 2}) {
    dp_ = builder_.AddGroup("dp", true, false, false);
    tp_ = builder_.AddGroup("tp", false, false, true);
    model_ = builder_.AddGroup("model", false, true, true);
    world_ = builder_.AddGroup("world", true, true, true);
  }

  // Class during the steady state.
  BubbleClass Of(CollectiveKind kind, std::int32_t group, Phase phase) {
    return OfPlace(kind, group, phase, false, false);
  }
  BubbleClass OfPlace(CollectiveKind kind, std::int32_t group, Phase phase, bool before_first,
                      bool after_last) {
    Operation op;
    op.kind = OperationKind::kCollective;
    op.stream = Stream::kDataParallel;
    op.tag = PhaseTag(phase);
    op.work = builder_.AddCollectiveWork(kind, 1, group);
    return ClassifyWait(builder_.schedule(), op, before_first, after_last);
  }
  BubbleClass OfKind(OperationKind kind, Stream stream, bool before_first, bool after_last) {
    Operation op;
    op.kind = kind;
    op.stream = stream;
    op.work = 0;
    return ClassifyWait(builder_.schedule(), op, before_first, after_last);
  }

  ScheduleBuilder builder_;
  std::int32_t dp_ = -1, tp_ = -1, model_ = -1, world_ = -1;
};

TEST_F(ClassifyWaitTest, Receives) {
  const auto receive = [&](bool before, bool after) {
    return OfKind(OperationKind::kReceive, Stream::kForwardReceive, before, after);
  };
  EXPECT_EQ(receive(true, false), BubbleClass::kPpWarmup);
  EXPECT_EQ(receive(false, false), BubbleClass::kPpOther);
  EXPECT_EQ(receive(false, true), BubbleClass::kPpCooldown);
  EXPECT_EQ(OfKind(OperationKind::kReceive, Stream::kEncoderReceive, false, false),
            BubbleClass::kPpOther);
}

// Collectives of an encoder beside the LLM. Its replicas are on other stages and blocks of ranks.
TEST_F(ClassifyWaitTest, EncoderCollectives) {
  using K = CollectiveKind;
  const auto block = builder_.AddGroup(Group{"encoder tp", false, false, true, 0, 1, 0});
  EXPECT_EQ(Of(K::kAllGather, block, Phase::kForward), BubbleClass::kTp);
  const auto layers = builder_.AddGroup(Group{"encoder dp", true, true, true, 1, 0, 1});
  const auto blocks = builder_.AddGroup(Group{"one stage", false, false, true, 0, 0, 1});
  for (const std::int32_t group : {layers, blocks}) {
    EXPECT_EQ(Of(K::kAllGather, group, Phase::kParameterSync), BubbleClass::kDpAllGather);
    EXPECT_EQ(OfPlace(K::kReduceScatter, group, Phase::kGradientSync, false, true),
              BubbleClass::kDpReduceScatter);
  }
  // Over all stages without a stride: the module says whose it is.
  Operation op;
  op.kind = OperationKind::kCollective;
  op.stream = Stream::kDataParallel;
  op.tag = MakeTag(1, 3, -1, Phase::kGradientSync);
  op.work = builder_.AddCollectiveWork(K::kReduceScatter, 1, world_);
  EXPECT_EQ(ClassifyWait(builder_.schedule(), op, false, true), BubbleClass::kDpReduceScatter);
  op.tag.module = kLlmModule;
  EXPECT_EQ(ClassifyWait(builder_.schedule(), op, false, true), BubbleClass::kPpCooldown);
}

// The two copies of a layer are replicas; the two ends of a tied embedding are different stages.
TEST_F(ClassifyWaitTest, CollectivesOfAPairOfStages) {
  using K = CollectiveKind;
  Group pair{"copies", true, true, false};
  pair.pp_pair = {0, 1};
  const auto copies = builder_.AddGroup(pair);
  EXPECT_EQ(Of(K::kAllGather, copies, Phase::kParameterSync), BubbleClass::kDpAllGather);
  EXPECT_EQ(OfPlace(K::kReduceScatter, copies, Phase::kGradientSync, false, true),
            BubbleClass::kDpReduceScatter);
  pair.over_dp = false;
  const auto tied = builder_.AddGroup(pair);
  EXPECT_EQ(OfPlace(K::kAllReduce, tied, Phase::kGradientSync, false, true),
            BubbleClass::kPpCooldown);
}

TEST_F(ClassifyWaitTest, DataParallelCollectives) {
  using K = CollectiveKind;
  EXPECT_EQ(Of(K::kAllGather, dp_, Phase::kParameterSync), BubbleClass::kDpAllGather);
  EXPECT_EQ(Of(K::kBroadcast, dp_, Phase::kParameterSync), BubbleClass::kDpAllGather);
  EXPECT_EQ(Of(K::kReduceScatter, dp_, Phase::kGradientSync), BubbleClass::kDpReduceScatter);
  EXPECT_EQ(Of(K::kAllReduce, dp_, Phase::kGradientSync), BubbleClass::kDpReduceScatter);
  // Without a synchronisation phase the kind decides.
  EXPECT_EQ(Of(K::kAllGather, dp_, Phase::kOptimizer), BubbleClass::kDpAllGather);
  EXPECT_EQ(Of(K::kReduceScatter, dp_, Phase::kBackward), BubbleClass::kDpReduceScatter);
  EXPECT_EQ(OfPlace(K::kAllGather, dp_, Phase::kParameterSync, true, false),
            BubbleClass::kDpAllGather);
}

TEST_F(ClassifyWaitTest, TensorParallelAndPipelineCollectives) {
  using K = CollectiveKind;
  EXPECT_EQ(Of(K::kAllGather, tp_, Phase::kForward), BubbleClass::kTp);
  EXPECT_EQ(Of(K::kReduceScatter, tp_, Phase::kBackward), BubbleClass::kTp);
  for (const std::int32_t group : {model_, world_}) {
    EXPECT_EQ(OfPlace(K::kAllReduce, group, Phase::kGradientSync, false, true),
              BubbleClass::kPpCooldown);
    EXPECT_EQ(OfPlace(K::kAllReduce, group, Phase::kGradientSync, false, false),
              BubbleClass::kPpOther);
  }
}

TEST_F(ClassifyWaitTest, SendsAndKernels) {
  EXPECT_EQ(OfKind(OperationKind::kSend, Stream::kForwardSend, true, false), BubbleClass::kPpOther);
  EXPECT_EQ(OfKind(OperationKind::kSend, Stream::kBackwardSend, false, true),
            BubbleClass::kPpCooldown);
  EXPECT_EQ(OfKind(OperationKind::kKernel, Stream::kCompute, false, false), BubbleClass::kPpOther);
}

TEST(Bubbles, TwoStageOneForwardOneBackward) {
  // The spans are in critical_path_test.cc: step 9, stage 0 idle 2-4 and 6-7, stage 1 idle 0-1 and
  // 7-9.
  const auto accounts = AccountsOf(OneForwardOneBackward(2, 2, 1, 2, 0));
  EXPECT_EQ(accounts[0], Account(6, 0, {0, 0, 0, 0, 3, 0})) << Print(accounts[0]);
  EXPECT_EQ(accounts[1], Account(6, 0, {0, 0, 1, 2, 0, 0})) << Print(accounts[1]);
}

// calibration.md, invariant 6.
TEST(Bubbles, FirstStageHasNoWarmUpAndNoCoolDownLastStageHasNoOther) {
  for (int stages = 2; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const auto accounts = AccountsOf(OneForwardOneBackward(stages, micro_batches, 10, 20, 0));
      EXPECT_EQ(accounts.front().bubbles[static_cast<int>(BubbleClass::kPpWarmup)].value(), 0);
      EXPECT_EQ(accounts.front().bubbles[static_cast<int>(BubbleClass::kPpCooldown)].value(), 0);
      EXPECT_EQ(accounts.back().bubbles[static_cast<int>(BubbleClass::kPpOther)].value(), 0);
      for (int s = 0; s < stages; ++s) {
        EXPECT_EQ(accounts[s].bubbles[static_cast<int>(BubbleClass::kPpWarmup)].value(), 10 * s);
        EXPECT_EQ(accounts[s].bubbles[static_cast<int>(BubbleClass::kPpCooldown)].value(), 20 * s);
      }
    }
  }
}

// Two dependencies end at 30 and 50; the listed order decides who is charged with what.
TEST(Bubbles, DependenciesAreChargedInListedOrder) {
  for (const bool gather_first : {true, false}) {
    ScheduleBuilder builder({2, 1, 2});
    const auto dp = builder.AddGroup("dp", true, false, false);
    const auto tp = builder.AddGroup("tp", false, false, true);
    const auto gather =
        builder.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kParameterSync),
                              builder.AddCollectiveWork(CollectiveKind::kAllGather, 30, dp));
    const auto reduce =
        builder.AddCollective(0, Stream::kTensorParallel, PhaseTag(Phase::kForward),
                              builder.AddCollectiveWork(CollectiveKind::kAllReduce, 50, tp));
    builder.AddKernel(0, PhaseTag(Phase::kForward), 7,
                      gather_first ? std::vector<std::uint32_t>{gather, reduce}
                                   : std::vector<std::uint32_t>{reduce, gather});
    const RankAccount account = AccountsOf(builder.Take())[0];
    const std::int64_t charged = gather_first ? 30 : 0;
    EXPECT_EQ(account, Account(7, 0, {charged, 0, 0, 0, 0, 50 - charged})) << Print(account);
  }
}

// Backward, reduce-scatter, gradient norm over the pipeline, optimizer; stage 1 is the slower one.
TEST(Bubbles, EndOfStep) {
  ScheduleBuilder builder({2, 2, 1});
  const auto dp = builder.AddGroup("dp", true, false, false);
  const auto pp = builder.AddGroup("pp", false, true, false);
  const auto scatter = builder.AddCollectiveWork(CollectiveKind::kReduceScatter, 100, dp);
  const auto norm = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4, pp);
  for (int stage = 0; stage < 2; ++stage) {
    const auto work = builder.AddKernel(stage, PhaseTag(Phase::kBackward), 10 + 50 * stage);
    const Tag sync = PhaseTag(Phase::kGradientSync);
    const auto reduced = builder.AddCollective(stage, Stream::kDataParallel, sync, scatter, {work});
    const auto agreed = builder.AddCollective(stage, Stream::kDataParallel, sync, norm);
    builder.AddKernel(stage, PhaseTag(Phase::kOptimizer), 3, {reduced, agreed});
  }
  const auto accounts = AccountsOf(builder.Take());  // the norm runs from 160 to 164
  EXPECT_EQ(accounts[0], Account(10, 3, {0, 100, 0, 54, 0, 0})) << Print(accounts[0]);
  EXPECT_EQ(accounts[1], Account(60, 3, {0, 100, 0, 4, 0, 0})) << Print(accounts[1]);
}

// Nothing computes behind the reduce-scatter of stage 0, which ends before the step does.
TEST(Bubbles, TailBelongsToTheLastOtherOperationThenToCoolDown) {
  ScheduleBuilder builder({2, 2, 1});
  const auto dp = builder.AddGroup("dp", true, false, false);
  const auto work = builder.AddKernel(0, PhaseTag(Phase::kBackward), 10);
  builder.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kGradientSync),
                        builder.AddCollectiveWork(CollectiveKind::kReduceScatter, 20, dp), {work});
  builder.AddKernel(1, PhaseTag(Phase::kBackward), 100);
  const auto accounts = AccountsOf(builder.Take());
  EXPECT_EQ(accounts[0], Account(10, 0, {0, 20, 0, 70, 0, 0})) << Print(accounts[0]);
  EXPECT_EQ(accounts[1], Account(100, 0, {0, 0, 0, 0, 0, 0})) << Print(accounts[1]);
}

// An encoder kernel in the warm-up and one in the cool-down of a stage leave the rest of them.
TEST(Bubbles, WhatEncodersLeaveOfABubbleKeepsItsName) {
  ScheduleBuilder builder({1, 2, 1});
  builder.schedule().modules = {{"llm", 1, false}, {"vit", 1, false, 2, 0, {}}};
  const auto edge = builder.AddTransfer("edge", 0, 100);
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddSend(0, Stream::kEncoderSend, 1, 1, builder.AddTransfer("edge", 0, 400));
  builder.AddKernel(1, MakeTag(1, 0, 0, Phase::kForward), 10);
  const auto input = builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  builder.AddKernel(1, MakeTag(0, 0, 0, Phase::kForward), 50, {input});
  const auto gradient =
      builder.AddReceive(1, Stream::kEncoderReceive, 0, 1, builder.AddTransfer("edge", 0, 400));
  builder.AddKernel(1, MakeTag(1, 0, 0, Phase::kBackward), 20, {gradient});
  EXPECT_EQ(Print(AccountsOf(builder.schedule())[1]), Print(Account(80, 0, {0, 0, 90, 250, 0, 0})));
  // Without pipelines it is part of the model's own pipeline.
  builder.schedule().modules[1].pipelines = 0;
  EXPECT_EQ(Print(AccountsOf(builder.schedule())[1]), Print(Account(80, 0, {0, 0, 0, 0, 340, 0})));
  // Alone it has nobody's bubbles but its own.
  Schedule alone = builder.schedule();
  alone.modules[1].pipelines = 2;
  for (Operation& op : alone.programs[1].operations) op.tag.module = 1;
  EXPECT_EQ(Print(AccountsOf(alone)[1]), Print(Account(80, 0, {0, 0, 0, 0, 340, 0})));
}

TEST(Bubbles, OnlyEntriesOfComputeOperationsAreClassified) {
  const Schedule schedule = OneForwardOneBackward(2, 1, 1, 2, 0);
  // Stage 1: receive, forward after it, backward, send after it.
  const Program& program = schedule.programs[1];
  ASSERT_EQ(program.dependencies.size(), 2u);
  EXPECT_EQ(ClassifyDependencies(schedule, program)[0], BubbleClass::kPpWarmup);
}

TEST(StallAccount, GapsWithoutACauseArePpOther) {
  StallAccount account;
  account.WaitUntil(Picoseconds(10), BubbleClass::kTp);
  account.WaitUntil(Picoseconds(5), BubbleClass::kDpAllGather);  // ended before: charged nothing
  account.Run(Picoseconds(12), Picoseconds(20), false);
  account.Run(Picoseconds(20), Picoseconds(21), true);
  EXPECT_EQ(account.Finish(Picoseconds(21)), Account(8, 1, {0, 0, 0, 0, 2, 10}));
}

TEST(StallAccount, OfOperationsThatEndTogetherTheHighestIdIsTheTail) {
  for (const bool low_first : {true, false}) {
    StallAccount account;
    const auto low = [&] { account.OtherEnded(3, Picoseconds(9), BubbleClass::kDpReduceScatter); };
    if (low_first) low();
    account.OtherEnded(4, Picoseconds(9), BubbleClass::kTp);
    if (!low_first) low();
    account.OtherEnded(8, Picoseconds(7), BubbleClass::kDpAllGather);
    EXPECT_EQ(account.Finish(Picoseconds(10)), Account(0, 0, {0, 0, 0, 1, 0, 9}));
  }
}

TEST(StallAccount, FinishLeavesTheAccountAsItIs) {
  StallAccount account;
  account.Run(Picoseconds(0), Picoseconds(4), false);
  EXPECT_EQ(account.Finish(Picoseconds(10)), account.Finish(Picoseconds(10)));
  EXPECT_EQ(account.Finish(Picoseconds(4)).total(), Picoseconds(4));
}

}  // namespace
}  // namespace optimus::ir
