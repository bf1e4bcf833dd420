// Missing and duplicated layers and micro-batches.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using ::testing::HasSubstr;
using testing::MakeTag;
using testing::ScheduleBuilder;

// What to leave out of, or add to, a complete schedule.
struct Change {
  int layer = -1, micro_batch = -1, slice = -1;
  Phase phase = Phase::kForward;
  int times = 0;  // how often it runs there instead of once
};

// Two layers of "vit" in two slices and two layers of "llm", three micro-batches, one stage.
ScheduleBuilder Make(bool frozen_vit, const Change& vit, const Change& llm) {
  ScheduleBuilder builder({1, 1, 1});
  builder.schedule().micro_batches = 3;
  builder.schedule().modules = {{"llm", 2, false}, {"vit", 2, frozen_vit}};
  const auto add = [&](int module, int layer, int micro_batch, int slice, Phase phase) {
    const Change& change = module == 0 ? llm : vit;
    const bool changed = change.layer == layer && change.micro_batch == micro_batch &&
                         change.phase == phase && (module == 0 || change.slice == slice);
    for (int i = 0; i < (changed ? change.times : 1); ++i) {
      builder.AddKernel(0, MakeTag(module, layer, micro_batch, phase, slice, 0), 1);
    }
  };
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    for (int layer = 0; layer < 2; ++layer) {
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        add(0, layer, micro_batch, -1, phase);
        if (frozen_vit && phase == Phase::kBackward) continue;
        for (int slice = 0; slice < 2; ++slice) add(1, layer, micro_batch, slice, phase);
      }
    }
  }
  return builder;
}

std::string Refusal(const Schedule& schedule) {
  const absl::Status status = Validate(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(Coverage, CompleteSchedulesAreAccepted) {
  for (const bool frozen : {false, true}) {
    const Schedule schedule = Make(frozen, {}, {}).Take();
    EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  }
}

TEST(Coverage, OneMissingPass) {
  EXPECT_THAT(Refusal(Make(false, {}, {1, 2, -1, Phase::kForward, 0}).Take()),
              HasSubstr("module 'llm' layer 1 micro-batch 2 forward: is missing (other work of the "
                        "layer is at stage 0 (rank 0), operation"));
  EXPECT_THAT(Refusal(Make(false, {}, {1, 2, -1, Phase::kBackward, 0}).Take()),
              HasSubstr("module 'llm' layer 1 micro-batch 2 backward: is missing"));
  EXPECT_THAT(Refusal(Make(false, {0, 1, 1, Phase::kForward, 0}, {}).Take()),
              HasSubstr("module 'vit' layer 0 micro-batch 1 slice 1 forward: is missing"));
  EXPECT_THAT(Refusal(Make(true, {0, 1, 1, Phase::kForward, 0}, {}).Take()),
              HasSubstr("module 'vit' layer 0 micro-batch 1 slice 1 forward: is missing"));
}

TEST(Coverage, MissingBackwardOfAModuleThatIsNotFrozen) {
  ScheduleBuilder builder = Make(true, {}, {});
  builder.schedule().modules[1].frozen = false;
  EXPECT_THAT(Refusal(builder.Take()),
              ::testing::AllOf(HasSubstr("module 'vit' layer 0 micro-batch 0 slice 0 backward: is "
                                         "missing"),
                               HasSubstr("a module without backward is marked frozen")));
}

TEST(Coverage, MissingLayerMicroBatchOrModule) {
  ScheduleBuilder builder = Make(false, {}, {});
  builder.schedule().modules[0].layers = 3;
  EXPECT_THAT(
      Refusal(builder.Take()),
      HasSubstr("module 'llm' layer 2 micro-batch 0 forward: is missing (the layer is on no "
                "stage)"));
  builder = Make(false, {}, {});
  builder.schedule().micro_batches = 4;
  EXPECT_THAT(Refusal(builder.Take()), HasSubstr("module 'llm' layer 0 micro-batch 3 forward: is "
                                                 "missing"));
  builder = Make(false, {}, {});
  builder.schedule().modules.push_back({"audio", 5, false});
  EXPECT_THAT(Refusal(builder.Take()),
              HasSubstr("module 'audio': no operation belongs to it, but it has 5 layers"));
}

// A wrong count in a file must not make the check slow or big.
TEST(Coverage, AbsurdCountsAreRefusedAtTheFirstMiss) {
  ScheduleBuilder builder = Make(false, {}, {});
  builder.schedule().micro_batches = 2'000'000'000;
  EXPECT_THAT(Refusal(builder.Take()), HasSubstr("micro-batch 3 forward: is missing"));
  builder = Make(false, {}, {});
  builder.schedule().modules[1].layers = 2'000'000'000;
  EXPECT_THAT(Refusal(builder.Take()), HasSubstr("module 'vit' layer 2 micro-batch 0 slice 0"));
}

TEST(Coverage, ASecondRunIsRefused) {
  EXPECT_THAT(Refusal(Make(false, {}, {1, 2, -1, Phase::kForward, 2}).Take()),
              HasSubstr("module 'llm' layer 1 micro-batch 2 forward: has 2 kernels, micro-batch 0 "
                        "has 1 (from stage 0 (rank 0), operation"));
  EXPECT_THAT(Refusal(Make(false, {}, {1, 0, -1, Phase::kBackward, 2}).Take()),
              HasSubstr("module 'llm' layer 1 micro-batch 1 backward: has 1 kernels, micro-batch 0 "
                        "has 2"));
}

// Phases that need not be there (recomputation) must be there for all micro-batches or none.
TEST(Coverage, OptionalPhasesMustBeEven) {
  ScheduleBuilder builder = Make(false, {}, {});
  builder.AddKernel(0, MakeTag(0, 1, 1, Phase::kRecompute, -1, 0), 1);
  EXPECT_THAT(
      Refusal(builder.schedule()),
      HasSubstr("module 'llm' layer 1 micro-batch 0 recompute: has 0 kernels, micro-batch 1 "
                "has 1"));
  builder.AddKernel(0, MakeTag(0, 1, 0, Phase::kRecompute, -1, 0), 1);
  EXPECT_THAT(
      Refusal(builder.schedule()),
      HasSubstr("module 'llm' layer 1 micro-batch 2 recompute: has 0 kernels, micro-batch 0 "
                "has 1"));
  builder.AddKernel(0, MakeTag(0, 1, 2, Phase::kRecompute, -1, 0), 1);
  EXPECT_TRUE(Validate(builder.schedule()).ok()) << Validate(builder.schedule());
}

TEST(Coverage, CollectivesCountToo) {
  ScheduleBuilder builder = Make(false, {}, {});
  const auto tp = builder.AddCollectiveWork(CollectiveKind::kAllGather, 4,
                                            builder.AddGroup("tp", false, false, true));
  builder.AddCollective(0, Stream::kTensorParallel, MakeTag(0, 0, 0, Phase::kForward, -1, 0), tp);
  EXPECT_THAT(Refusal(builder.Take()),
              HasSubstr("module 'llm' layer 0 micro-batch 1 forward: has 0 "
                        "collectives, micro-batch 0 has 1"));
}

TEST(Coverage, ALayerHasOneStageAndOneChunk) {
  ScheduleBuilder builder = Make(false, {}, {});
  builder.AddKernel(0, MakeTag(0, 1, 1, Phase::kForward, -1, 1), 1);
  EXPECT_THAT(
      Refusal(builder.Take()),
      HasSubstr("operation 36 (llm layer 1 micro-batch 1 chunk 1 forward work1): tag.layer: "
                "this layer also runs at stage 0 (rank 0), operation"));
}

TEST(Coverage, NothingIsExpectedWithoutModules) {
  ScheduleBuilder builder = Make(false, {}, {1, 2, -1, Phase::kForward, 0});
  builder.schedule().modules.clear();
  EXPECT_TRUE(Validate(builder.schedule()).ok()) << Validate(builder.schedule());
}

// A module of two layers on two stages, both ways: micro-batches 0 and 1 go down the stages by
// chunk 0, 2 and 3 up them by chunk 1.
ScheduleBuilder BothWays(const Change& change = {}) {
  ScheduleBuilder builder({1, 2, 1});
  builder.schedule().micro_batches = 4;
  builder.schedule().modules = {{"llm", 2}};
  builder.schedule().modules[0].both_directions = true;
  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    const int chunk = micro_batch / 2;
    for (int layer = 0; layer < 2; ++layer) {
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        const bool changed = change.layer == layer && change.micro_batch == micro_batch;
        for (int i = 0; i < (changed ? change.times : 1); ++i) {
          builder.AddKernel(chunk == 0 ? layer : 1 - layer,
                            MakeTag(0, layer, micro_batch, phase, -1, chunk), 1);
        }
      }
    }
  }
  return builder;
}

TEST(CoverageOfTwoCopies, EveryMicroBatchPassesOneOfThem) {
  ScheduleBuilder complete = BothWays();
  EXPECT_TRUE(Validate(complete.schedule()).ok()) << Validate(complete.schedule());
  EXPECT_THAT(Refusal(BothWays({1, 3, -1, Phase::kForward, 0}).Take()),
              HasSubstr("layer 1 micro-batch 3 forward: is missing"));
  complete.schedule().modules[0].both_directions = false;
  EXPECT_THAT(Refusal(complete.schedule()), HasSubstr("a layer has one stage and one model chunk"));

  ScheduleBuilder both = BothWays();
  both.AddKernel(1, MakeTag(0, 0, 0, Phase::kForward, -1, 1), 1);
  EXPECT_THAT(Refusal(both.Take()), HasSubstr("a micro-batch passes through one copy"));
}

TEST(CoverageOfTwoCopies, MirrorEachOther) {
  ScheduleBuilder beside({1, 3, 1});
  beside.schedule().micro_batches = 2;
  beside.schedule().modules = {{"llm", 1}};
  beside.schedule().modules[0].both_directions = true;
  beside.AddKernel(0, MakeTag(0, 0, 0, Phase::kForward, -1, 0), 1);
  beside.AddKernel(1, MakeTag(0, 0, 1, Phase::kForward, -1, 1), 1);
  EXPECT_THAT(Refusal(beside.Take()), HasSubstr("not on stage 1; hint: chunk 0 of stage s"));

  ScheduleBuilder third = BothWays();
  third.AddKernel(0, MakeTag(0, 0, 0, Phase::kForward, -1, 2), 1);
  EXPECT_THAT(Refusal(third.Take()), HasSubstr("tag.chunk: is 2 of a module in both directions"));

  Schedule pipelines = BothWays().Take();
  pipelines.modules[0].pipelines = 1;
  EXPECT_THAT(Refusal(pipelines), HasSubstr("both_directions: is set for a module with pipelines"));
}

}  // namespace
}  // namespace optimus::ir
