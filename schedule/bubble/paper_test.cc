#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "schedule/bubble/efficiency.h"
#include "schedule/bubble/paper_pipeline.h"
#include "schedule/bubble/paper_twin.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::RandomProblem;
using testing::RandomShape;
using testing::SlowPaper;

Picoseconds Ps(std::int64_t value) { return Picoseconds(value); }

RandomShape ShapeOf(std::uint64_t seed, std::int32_t encoders, std::int32_t most) {
  Random random(seed + 77);
  RandomShape shape;
  shape.seed = seed;
  shape.encoders = encoders;
  constexpr std::int32_t kStages[] = {1, 2, 4};
  shape.stages = kStages[random.Between(0, 2)];
  shape.tensor_parallel = 1 << random.Between(0, 1);
  shape.micro_batches = static_cast<std::int32_t>(random.Between(0, most));
  shape.llm_scale = random.Chance(50) ? 30 : 12;
  shape.encoder_scale = random.Chance(50) ? 9 : 3;
  return shape;
}

void ExpectSameUnit(const PlacedMicroBatch& a, const PlacedMicroBatch& b) {
  EXPECT_EQ(a.micro_batch, b.micro_batch);
  EXPECT_EQ(a.forward_end, b.forward_end);
  EXPECT_EQ(a.backward_start, b.backward_start);
  for (std::size_t p = 0; p < a.forward.size(); ++p) {
    EXPECT_EQ(a.forward[p].starts, b.forward[p].starts);
    EXPECT_EQ(a.backward[p].starts, b.backward[p].starts);
    EXPECT_EQ(a.forward[p].interior, b.forward[p].interior);
    EXPECT_EQ(a.backward[p].interior, b.backward[p].interior);
  }
}

void ExpectSame(const Result& a, const Result& b) {
  EXPECT_EQ(a.delta_f, b.delta_f);
  EXPECT_EQ(a.delta_b, b.delta_b);
  EXPECT_EQ(a.latency, b.latency);
  EXPECT_EQ(a.coarse_latency, b.coarse_latency);
  ASSERT_EQ(a.encoders.size(), b.encoders.size());
  for (std::size_t e = 0; e < a.encoders.size(); ++e) {
    ASSERT_EQ(a.encoders[e].split, b.encoders[e].split);
    EXPECT_EQ(a.encoders[e].gathers, b.encoders[e].gathers);
    EXPECT_EQ(a.encoders[e].reductions, b.encoders[e].reductions);
    for (std::size_t j = 0; j < a.encoders[e].pipelines.size(); ++j) {
      const auto& units = a.encoders[e].pipelines[j].micro_batches;
      for (std::size_t k = 0; k < units.size(); ++k) {
        ExpectSameUnit(units[k], b.encoders[e].pipelines[j].micro_batches[k]);
      }
    }
  }
}

bool AnyInterior(const Result& result, bool forward) {
  for (const PlacedEncoder& encoder : result.encoders) {
    for (const PlacedPipeline& pipeline : encoder.pipelines) {
      for (const PlacedMicroBatch& unit : pipeline.micro_batches) {
        if ((forward ? unit.forward : unit.backward)[0].interior) return true;
      }
    }
  }
  return false;
}

void CompareWithTwin(std::int32_t encoders, std::int32_t most, std::uint64_t seeds,
                     bool exhaustive) {
  int moved_forward = 0;
  int moved_backward = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem = RandomProblem(ShapeOf(seed, encoders, most));
    SearchOptions options;
    options.exhaustive = exhaustive;
    const auto fast = SchedulePaper(problem, options);
    ASSERT_TRUE(fast.ok()) << fast.status();
    ExpectSame(*fast, SlowPaper(problem, options));
    const absl::Status rules = Verify(problem, *fast);
    ASSERT_TRUE(rules.ok()) << rules;
    if (::testing::Test::HasFailure()) return;
    moved_forward += AnyInterior(*fast, true) ? 1 : 0;
    moved_backward += AnyInterior(*fast, false) ? 1 : 0;
  }
  // Otherwise the comparison says little.
  EXPECT_GT(moved_forward, static_cast<int>(seeds / 20));
  EXPECT_GT(moved_backward, static_cast<int>(seeds / 20));
}

TEST(PaperTwin, OneEncoder) { CompareWithTwin(1, 6, 800, false); }
TEST(PaperTwin, OneEncoderAllSplits) { CompareWithTwin(1, 5, 300, true); }
TEST(PaperTwin, TwoEncoders) { CompareWithTwin(2, 4, 400, false); }

// So many that not all slots are kept, and most micro-batches fit between the LLM's kernels.
TEST(PaperTwin, ManyMicroBatches) {
  std::size_t most_moved = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    RandomShape shape;
    shape.seed = seed;
    shape.stages = 2;
    shape.micro_batches = 90;
    shape.encoder_scale = 2;
    shape.llm_scale = 60;
    shape.skipping = false;
    const Problem problem = RandomProblem(shape);
    const std::int32_t pipelines = PipelineCount(problem, problem.encoders[0]);
    const auto count = static_cast<std::int32_t>(problem.encoders[0].micro_batches.size());
    SearchOptions options;
    options.splits = {planner::BalancedSplit(count, pipelines)};
    const auto fast = SchedulePaper(problem, options);
    ASSERT_TRUE(fast.ok()) << fast.status();
    ExpectSame(*fast, SlowPaper(problem, options));
    const absl::Status rules = Verify(problem, *fast);
    EXPECT_TRUE(rules.ok()) << seed << ": " << rules;
    for (const PlacedPipeline& pipeline : fast->encoders[0].pipelines) {
      const auto moved =
          std::count_if(pipeline.micro_batches.begin(), pipeline.micro_batches.end(),
                        [](const PlacedMicroBatch& unit) { return unit.backward[0].interior; });
      most_moved = std::max(most_moved, static_cast<std::size_t>(moved));
    }
  }
  EXPECT_GT(most_moved, 64U);
}

TEST(Paper, AllSplitsAreNeverWorseThanLocalSearch) {
  for (std::uint64_t seed = 1000; seed < 1300; ++seed) {
    const Problem problem = RandomProblem(ShapeOf(seed, 1, 7));
    SearchOptions exhaustive;
    exhaustive.exhaustive = true;
    EXPECT_LE(SchedulePaper(problem, exhaustive)->latency, SchedulePaper(problem, {})->latency)
        << "seed " << seed;
  }
}

TEST(Paper, FineIsNeverWorseThanCoarse) {
  for (std::uint64_t seed = 2000; seed < 2500; ++seed) {
    const Problem problem = RandomProblem(ShapeOf(seed, 1 + static_cast<int>(seed % 2), 8));
    const auto result = SchedulePaper(problem, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LE(result->latency, result->coarse_latency) << "seed " << seed;
    EXPECT_GE(result->latency, problem.llm.step) << "seed " << seed;
    EXPECT_GE(result->fine.work, 0);
    EXPECT_LE(result->fine.work, 1);
  }
}

TEST(Paper, ScalesWithAllDurations) {
  for (std::uint64_t seed = 3000; seed < 3200; ++seed) {
    const Problem problem = RandomProblem(ShapeOf(seed, 1 + static_cast<int>(seed % 2), 6));
    const auto result = SchedulePaper(problem, {});
    const auto scaled = SchedulePaper(testing::Scaled(problem, 7), {});
    ASSERT_TRUE(result.ok() && scaled.ok());
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ExpectSame(*scaled, testing::Scaled(*result, 7));
    EXPECT_NEAR(scaled->fine.work, result->fine.work, 1e-12);
    EXPECT_NEAR(scaled->coarse.time, result->coarse.time, 1e-12);
  }
}

// --- made by hand -------------------------------------------------------------------------------

// One kernel of `compute`, then one collective of `link`.
StageWork Work(std::int64_t compute, std::int64_t link) {
  StageWork work;
  work.ops.resize(2);
  work.ops[0].duration = work.compute = Ps(compute);
  work.ops[1].duration = work.link = Ps(link);
  work.ops[1].resource = Resource::kLink;
  for (WorkOp& op : work.ops) op.layer = 0;
  work.dependencies = {0};
  work.ops[1].dependency_count = 1;
  work.chain = {0, 0};
  work.outputs = {1};
  return work;
}

// One stage, two micro-batches, one encoder pipeline on the same ranks: forward of 4 + 1, backward
// of 6 + 2. The LLM: computes from 10 to 60, idle at [20, 26), [30, 34) and [40, 50).
Problem ByHand() {
  Problem problem;
  LlmStage stage;
  stage.first_start = Ps(10);
  stage.last_end = Ps(60);
  stage.compute_idle = {{Ps(20), Ps(26)}, {Ps(30), Ps(34)}, {Ps(40), Ps(50)}};
  stage.link_idle = {{Ps(10), Ps(20)}, {Ps(26), Ps(30)}, {Ps(34), Ps(40)}, {Ps(50), Ps(60)}};
  stage.compute = Ps(30);
  stage.gradients_reduced = Ps(65);
  problem.llm.stages = {stage};
  problem.llm.forward_needed = {Ps(10), Ps(30)};
  problem.llm.backward_made = {Ps(36), Ps(60)};
  problem.llm.after_reduction = Ps(5);
  problem.llm.step = Ps(70);
  EncoderWork encoder;
  encoder.micro_batches = {0, 1};
  encoder.forward = {Work(4, 1)};
  encoder.backward = {Work(6, 2)};
  encoder.to_llm = encoder.from_llm = {Ps(0)};
  problem.encoders = {encoder};
  return problem;
}

std::vector<Picoseconds> Starts(std::initializer_list<std::int64_t> starts) {
  std::vector<Picoseconds> times;
  for (const std::int64_t start : starts) times.push_back(Ps(start));
  return times;
}

TEST(Paper, ByHand) {
  // In line: forwards [0, 4) [4, 8) with collectives [4, 5) and [8, 9), all before 10: no shift.
  // Backwards in line: [60, 66) [66, 72), collectives [66, 68) [72, 74): 9 after 65. The first
  // gradient is there at 36: its backward goes to [40, 46) with the collective at [50, 52), which
  // leaves [60, 66) and [66, 68) for the second: 3 after 65.
  const auto result = SchedulePaper(ByHand(), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->delta_f, Ps(0));
  EXPECT_EQ(result->delta_b, Ps(3));
  EXPECT_EQ(result->latency, Ps(73));
  EXPECT_EQ(result->coarse_latency, Ps(79));
  const auto& units = result->encoders[0].pipelines[0].micro_batches;
  EXPECT_EQ(units[0].forward[0].starts, Starts({0, 4}));
  EXPECT_EQ(units[1].forward[0].starts, Starts({4, 8}));
  EXPECT_EQ(units[0].backward[0].starts, Starts({40, 50}));
  EXPECT_TRUE(units[0].backward[0].interior);
  EXPECT_EQ(units[1].backward[0].starts, Starts({60, 66}));
  // Coarse: of 2 x (5 + 8) two forwards (8 busy with the hidden collective: 9) are inside 10, and
  // 5 of 14 after 60 are inside: 9 outside of 26. Fine: 3 of 26 outside.
  EXPECT_DOUBLE_EQ(result->coarse.work, 1 - 9.0 / 26);
  EXPECT_DOUBLE_EQ(result->fine.work, 1 - 3.0 / 26);
  EXPECT_DOUBLE_EQ(result->coarse.time, 1 - 9.0 / 26);
  EXPECT_DOUBLE_EQ(result->fine.time, 1 - 3.0 / 26);
}

TEST(Paper, ForwardMovesIntoSlotsUntilNoShiftIsLeft) {
  Problem problem = ByHand();
  problem.encoders[0].forward = {Work(6, 1)};
  // In line [0, 6) [6, 12), collective [12, 13): 3 too late. The last one moves to [20, 26) and
  // [26, 27), in time for 30.
  const auto result = SchedulePaper(problem, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->delta_f, Ps(0));
  const auto& units = result->encoders[0].pipelines[0].micro_batches;
  EXPECT_EQ(units[1].forward[0].starts, Starts({20, 26}));
  EXPECT_EQ(units[1].forward_end, Ps(27));
  EXPECT_EQ(units[1].micro_batch, 1);
}

TEST(Paper, ARejectedMoveLeavesEverythingAsItWas) {
  Problem problem = ByHand();
  problem.encoders[0].forward = {Work(6, 1)};
  problem.encoders[0].backward = {StageWork()};
  // It would have a place, but the LLM needs it before that.
  problem.llm.forward_needed[1] = Ps(26);
  const auto result = SchedulePaper(problem, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->delta_f, Ps(3));
  EXPECT_EQ(result->latency, result->coarse_latency);
  const auto& units = result->encoders[0].pipelines[0].micro_batches;
  EXPECT_EQ(units[1].forward[0].starts, Starts({6, 12}));
  EXPECT_FALSE(units[1].forward[0].interior);
}

TEST(Paper, AFailedPlacementLeavesTheSlotsAsTheyWere) {
  const Problem problem = ByHand();
  paper::EncoderFlows flows;
  flows.forward = paper::ForwardFlow(problem.encoders[0]);
  flows.backward = paper::BackwardFlow(problem.encoders[0]);
  flows.gathers = flows.no_gathers = {{paper::kNever}};
  flows.shortest = paper::ShortestOps(problem.encoders[0]);
  paper::PipelineLanes lanes;
  const LlmStage& stage = problem.llm.stages[0];
  lanes.slots = {{stage.compute_idle, stage.link_idle}};
  lanes.before = {{}};
  lanes.after = {{{60, 60}}};
  lanes.first_start = {10};
  paper::PipelineModel model(flows, lanes);
  // Two of 6 fit ([20, 26), [40, 46)), then there is none: in vain however often it is asked.
  const std::int32_t root = model.SlotRoot(0, 10);
  const std::int32_t first = model.SlotNext(root, 10);
  const std::int32_t second = model.SlotNext(first, 10);
  ASSERT_GE(second, 0);
  EXPECT_LT(model.SlotNext(second, 10), 0);
  EXPECT_LT(model.SlotNext(second, 11), 0);
  // After the failures all is as before them: a later gradient after the first finds its place.
  const std::int32_t other = model.SlotNext(first, 27);
  ASSERT_GE(other, 0);
  EXPECT_EQ(model.SlotTail(other), model.SlotTail(second));
  EXPECT_EQ(model.lanes().slots, lanes.slots);
}

TEST(Paper, PipelinesWithoutMicroBatches) {
  Problem problem = ByHand();
  problem.tensor_parallel = problem.lanes = 4;
  problem.encoders[0].to_llm = problem.encoders[0].from_llm = {Ps(0), Ps(0), Ps(0), Ps(0)};
  const auto result = SchedulePaper(problem, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->encoders[0].split, (planner::Split{1, 1, 0, 0}));
  EXPECT_TRUE(Verify(problem, *result).ok());
}

TEST(Paper, NothingToDo) {
  Problem problem = ByHand();
  problem.encoders[0].micro_batches = {};
  EXPECT_EQ(SchedulePaper(problem, {})->latency, problem.llm.step);
  problem.llm.forward_needed = problem.llm.backward_made = {};
  EXPECT_EQ(SchedulePaper(problem, {})->latency, problem.llm.step);
  problem.encoders = {};
  const auto result = SchedulePaper(problem, {});
  EXPECT_EQ(result->latency, problem.llm.step);
  EXPECT_EQ(result->fine.work, 1);
}

TEST(Paper, AnEncoderThatCostsNothingDelaysNothing) {
  for (std::uint64_t seed = 4000; seed < 4100; ++seed) {
    RandomShape shape = ShapeOf(seed, 2, 6);
    shape.encoder_scale = 0;
    const Problem problem = RandomProblem(shape);
    const auto result = SchedulePaper(problem, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->latency, problem.llm.step) << "seed " << seed;
  }
}

TEST(Paper, AFrozenEncoderHasNothingBehindTheLlm) {
  for (std::uint64_t seed = 5000; seed < 5100; ++seed) {
    Problem problem = RandomProblem(ShapeOf(seed, 1, 6));
    for (StageWork& work : problem.encoders[0].backward) work = StageWork();
    problem.encoders[0].sync = {};
    const auto result = SchedulePaper(problem, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->delta_b, Ps(0)) << "seed " << seed;
  }
}

TEST(Paper, WithoutIdleSlotsNothingMoves) {
  for (std::uint64_t seed = 6000; seed < 6100; ++seed) {
    RandomShape shape = ShapeOf(seed, 1, 6);
    shape.encoder_scale = 30;
    Problem problem = RandomProblem(shape);
    for (LlmStage& stage : problem.llm.stages) stage.compute_idle = stage.link_idle = {};
    const auto result = SchedulePaper(problem, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->latency, result->coarse_latency) << "seed " << seed;
    EXPECT_EQ(result->fine.work, result->coarse.work);
  }
}

// As long as the bubbles before and after the LLM are full, what is in them does not change.
TEST(Paper, CoarseEfficiencyTimesMicroBatchesIsConstant) {
  for (const std::int32_t count : {8, 16, 32, 64}) {
    Problem problem = ByHand();
    problem.llm.forward_needed.assign(static_cast<std::size_t>(count), Ps(10));
    problem.llm.backward_made.assign(static_cast<std::size_t>(count), Ps(40));
    problem.encoders[0].micro_batches.resize(static_cast<std::size_t>(count));
    std::iota(problem.encoders[0].micro_batches.begin(), problem.encoders[0].micro_batches.end(),
              0);
    // No collectives: kernels back to back, so that the bubbles of 10 and 5 are full.
    problem.encoders[0].forward = {Work(4, 0)};
    problem.encoders[0].backward = {Work(6, 0)};
    const auto result = SchedulePaper(problem, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(result->coarse.work * count, 15.0 / 10, 1e-9) << count;
  }
}

TEST(Paper, ALastStageThatIsLateInItsGradientsKeepsItsOwnMap) {
  // Two pipelines: the one that runs micro-batch 1 cannot start its backward before B of 1, though
  // micro-batch 0's gradient is there long before.
  Problem problem = ByHand();
  problem.tensor_parallel = problem.lanes = 2;
  problem.encoders[0].to_llm = problem.encoders[0].from_llm = {Ps(0), Ps(0)};
  problem.llm.backward_made = {Ps(30), Ps(60)};
  problem.llm.stages[0].gradients_reduced = Ps(60);
  problem.llm.step = Ps(65);
  const auto result = SchedulePaper(problem, {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const PlacedPipeline& pipeline : result->encoders[0].pipelines) {
    ASSERT_EQ(pipeline.micro_batches.size(), 1U);
    const PlacedMicroBatch& unit = pipeline.micro_batches[0];
    EXPECT_GE(unit.backward_start,
              problem.llm.backward_made[static_cast<std::size_t>(unit.micro_batch)]);
  }
  EXPECT_EQ(result->delta_b, Ps(8));
}

TEST(Paper, ReductionsHideUnderWhatIsLeft) {
  Problem problem = ByHand();
  problem.encoders[0].sync.gathers = {{{0, 0, Ps(2), 0}}};
  problem.encoders[0].sync.reductions = {{{0, 0, Ps(20), 0}}};
  // The gather takes 2 before the LLM's own: everything starts 2 later. The forwards in line then
  // end at 10 and 11, before 12. The reduction waits for the collective that ends at 68.
  const auto result = SchedulePaper(problem, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->delta_f, Ps(2));
  EXPECT_EQ(result->delta_b, Ps(23));
  EXPECT_EQ(result->encoders[0].reductions[0][0], (Interval{Ps(70), Ps(90)}));
  EXPECT_TRUE(Verify(problem, *result).ok());
}

// --- what is refused ----------------------------------------------------------------------------

std::string Refusal(const Problem& problem, const SearchOptions& options) {
  return std::string(SchedulePaper(problem, options).status().message());
}

TEST(Paper, RefusesOptionsThatDoNotSuit) {
  SearchOptions options;
  options.splits = {{2}, {2}};
  EXPECT_THAT(Refusal(ByHand(), options), HasSubstr("splits: 2 for 1 encoders"));
  options.splits = {{3}};
  EXPECT_THAT(Refusal(ByHand(), options), HasSubstr("sums to 3"));
  options.splits = {};
  options.most_micro_batches = {1};
  EXPECT_THAT(Refusal(ByHand(), options), HasSubstr("cannot take 2"));
}

TEST(Paper, NoPipelineTakesMoreThanItMay) {
  for (std::uint64_t seed = 7000; seed < 7100; ++seed) {
    const Problem problem = RandomProblem(ShapeOf(seed, 1, 7));
    const auto pipelines = PipelineCount(problem, problem.encoders[0]);
    const auto count = static_cast<std::int32_t>(problem.encoders[0].micro_batches.size());
    SearchOptions options;
    options.most_micro_batches = {(count + pipelines - 1) / pipelines};
    const auto result = SchedulePaper(problem, options);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const std::int32_t part : result->encoders[0].split) {
      EXPECT_LE(part, options.most_micro_batches[0]);
    }
  }
}

}  // namespace
}  // namespace optimus::bubble
