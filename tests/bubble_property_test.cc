// Random problems for both bubble schedulers: every result passes the verifier, and the invariants
// of the scheduler hold one by one. Which of the 24 invariants is tested where:
//    1     schedule/step profiled_test ClosedForm; schedule/pipeline interleaved_test
//    2     schedule/pipeline interleaved_test Figure12
//    3     models accounting_test; schedule/step step_test; schedule/colocate optimus_test
//    4     tests korthikanti_layer_test; hw_profiles published_test
//    5     tests paper_test EveryGpuAccountsForTheWholeStep
//    6     schedule/ir bubbles_test FirstStageHasNoWarmUpAndNoCoolDownLastStageHasNoOther
//    7-12  here, Invariant07 to Invariant12; on real models optimus_property_test
//    13    tests optimus_property_test
//    14    here
//    15    schedule/bubble paper_test ARejectedMoveLeavesEverythingAsItWas
//    16-18 here; 17 also schedule/bubble paper_test
//    19    schedule/planner splits_test
//    20    schedule/partition balanced_test
//    21    schedule/planner encoder_plan_test
//    22    tests optimus_property_test
//    23    here
//    24    schedule/step lower_test ExposedIsOneGatherAndOneReducePerStage (bytes a parameter);
//          hw_profiles cost_model_test (ring)
// RC_PARAMS (the guide of rapidcheck) overrides the seed and the number of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "rapidcheck/gtest.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"
#include "schedule/bubble/verify.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble {
namespace {

using testing::Random;
using testing::RandomProblem;
using testing::RandomShape;
using testing::Scaled;

// The same cases in every run; rapidcheck reads this at the first property.
const bool kCases = setenv("RC_PARAMS", "seed=20240805 max_success=2000", /*overwrite=*/0) == 0;

RandomShape AnyShape() {
  RandomShape shape;
  shape.stages = *rc::gen::inRange(1, 5).as("stages");
  shape.tensor_parallel = 1 << *rc::gen::inRange(0, 3).as("log2 of tensor parallelism");
  shape.encoders = *rc::gen::inRange(1, 4).as("encoders");
  shape.micro_batches = *rc::gen::inRange(0, 7).as("micro-batches");
  shape.encoder_scale = *rc::gen::inRange(1, 40).as("longest encoder op");
  shape.llm_scale = *rc::gen::inRange(1, 60).as("longest LLM op");
  shape.frozen = *rc::gen::weightedElement<bool>({{8, false}, {1, true}}).as("frozen");
  shape.sync = *rc::gen::arbitrary<bool>().as("sync");
  shape.transfers = *rc::gen::arbitrary<bool>().as("transfers");
  shape.skipping = *rc::gen::arbitrary<bool>().as("skipping");
  shape.seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()).as("seed");
  return shape;
}

void Require(const absl::Status& status) {
  if (!status.ok()) RC_FAIL(std::string(status.message()));
}

using Scheduler = absl::StatusOr<Result> (*)(const Problem&, const SearchOptions&);

Result MustSchedule(Scheduler scheduler, const Problem& problem,
                    const SearchOptions& options = {}) {
  absl::StatusOr<Result> result = scheduler(problem, options);
  Require(result.status());
  return *std::move(result);
}

// A rule, on what both schedulers make of one random problem.
void OnBoth(absl::Status (*rule)(const Problem&, const Result&)) {
  const Problem problem = RandomProblem(AnyShape());
  Require(rule(problem, MustSchedule(SchedulePaper, problem)));
  Require(rule(problem, MustSchedule(ScheduleList, problem)));
}

// Everything that must be the same when a run is repeated.
void RequireEqual(const Result& a, const Result& b) {
  RC_ASSERT(a.encoders.size() == b.encoders.size());
  for (std::size_t k = 0; k < a.encoders.size(); ++k) {
    RC_ASSERT(a.encoders[k].split == b.encoders[k].split);
    RC_ASSERT(a.encoders[k].gathers == b.encoders[k].gathers);
    RC_ASSERT(a.encoders[k].reductions == b.encoders[k].reductions);
    for (std::size_t j = 0; j < a.encoders[k].pipelines.size(); ++j) {
      const auto& ours = a.encoders[k].pipelines[j].micro_batches;
      const auto& theirs = b.encoders[k].pipelines[j].micro_batches;
      RC_ASSERT(ours.size() == theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        RC_ASSERT(ours[i].micro_batch == theirs[i].micro_batch);
        for (std::size_t p = 0; p < ours[i].forward.size(); ++p) {
          RC_ASSERT(ours[i].forward[p].starts == theirs[i].forward[p].starts);
          RC_ASSERT(ours[i].backward[p].starts == theirs[i].backward[p].starts);
        }
      }
    }
  }
  RC_ASSERT(a.delta_f == b.delta_f && a.delta_b == b.delta_b);
  RC_ASSERT(a.latency == b.latency && a.coarse_latency == b.coarse_latency);
}

// --- every rule at once: 40,000 results ----------------------------------------------------------

class EveryResult : public ::testing::TestWithParam<int> {};

TEST_P(EveryResult, PassesTheVerifier) {
  // Each parameter has cases of its own.
  const auto check = [](Scheduler scheduler) {
    RandomShape shape = AnyShape();
    shape.seed += static_cast<std::uint64_t>(GetParam()) << 32;
    const Problem problem = RandomProblem(shape);
    const Result result = MustSchedule(scheduler, problem);
    Require(Verify(problem, result));
    if (scheduler == SchedulePaper) Require(VerifyPaperRules(problem, result));
  };
  EXPECT_TRUE(rc::check("paper", [&] { check(SchedulePaper); }));
  EXPECT_TRUE(rc::check("list", [&] { check(ScheduleList); }));
}
INSTANTIATE_TEST_SUITE_P(Property, EveryResult, ::testing::Range(0, 10));

// --- one by one ----------------------------------------------------------------------------------

RC_GTEST_PROP(Invariant07, NothingOverlapsOnALane, ()) { OnBoth(verify::CheckLanes); }
RC_GTEST_PROP(Invariant07, NothingOverlapsOnANetworkCard, ()) { OnBoth(verify::CheckSync); }
RC_GTEST_PROP(Invariant08, EncoderWorkIsWhereTheLlmsIsNot, ()) { OnBoth(verify::CheckSlots); }
RC_GTEST_PROP(Invariant09, EveryKernelIsPlacedOnce, ()) {
  OnBoth(verify::CheckShape);
  OnBoth(verify::CheckMap);
}
RC_GTEST_PROP(Invariant10, OrderIsKept, ()) { OnBoth(verify::CheckOrder); }
RC_GTEST_PROP(Invariant11, DataIsThereWhenItIsNeeded, ()) { OnBoth(verify::CheckLlmEdges); }
RC_GTEST_PROP(Invariant12, OneMapForBothDirections, ()) { OnBoth(verify::CheckMap); }

RC_GTEST_PROP(Invariant14, LatencyLiesBetweenBoundsAndCoarse, ()) {
  const Problem problem = RandomProblem(AnyShape());
  const Bounds bounds = LowerBounds(problem);
  RC_ASSERT(bounds.work >= problem.llm.step);
  RC_ASSERT(bounds.fluid >= problem.llm.step);
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    const Result result = MustSchedule(scheduler, problem);
    RC_ASSERT(result.latency >= std::max(bounds.work, bounds.fluid));
    RC_ASSERT(result.latency <= result.coarse_latency);
  }
}

RC_GTEST_PROP(Invariant14, WhatFitsIsHiddenAndCounted, ()) {
  RandomShape shape = AnyShape();
  shape.encoder_scale = 1;  // many of them fit
  const Problem problem = RandomProblem(shape);
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    const Result result = MustSchedule(scheduler, problem);
    RC_CLASSIFY(result.latency == problem.llm.step, "all hidden");
    if (result.latency != problem.llm.step) continue;
    RC_ASSERT(result.fine.time == 1.0);
    RC_ASSERT(result.fine.work > 1 - 1e-12);
  }
}

RC_GTEST_PROP(Invariant16, AnEncoderThatTakesNoTimeCostsNothing, ()) {
  RandomShape shape = AnyShape();
  shape.encoder_scale = 0;
  const Problem problem = RandomProblem(shape);
  RC_ASSERT(MustSchedule(SchedulePaper, problem).latency == problem.llm.step);
  RC_ASSERT(MustSchedule(ScheduleList, problem).latency == problem.llm.step);
}

RC_GTEST_PROP(Invariant16, WithoutABackwardNothingIsAddedBehind, ()) {
  RandomShape shape = AnyShape();
  shape.frozen = true;
  Problem problem = RandomProblem(shape);
  for (EncoderWork& encoder : problem.encoders) {
    for (StageWork& work : encoder.backward) work = StageWork();
    encoder.sync.reductions.assign(encoder.sync.reductions.size(), {});
  }
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    const Result result = MustSchedule(scheduler, problem);
    Require(Verify(problem, result));
    RC_ASSERT(result.delta_b == Picoseconds(0));
  }
}

// One stage of one lane: bubbles of `before` and `after` around an LLM that leaves none inside; an
// encoder of `ops` kernels of 1 ps each way.
Problem OuterBubblesOnly(std::int32_t micro_batches, std::int64_t before, std::int64_t after,
                         std::int64_t ops) {
  Problem problem;
  LlmStage stage;
  stage.first_start = Picoseconds(before);
  stage.last_end = Picoseconds(before + 100);
  stage.compute = Picoseconds(100);
  stage.gradients_reduced = Picoseconds(before + 100 + after);
  problem.llm.stages = {stage};
  problem.llm.step = stage.gradients_reduced;
  EncoderWork encoder;
  for (std::int32_t i = 0; i < micro_batches; ++i) {
    problem.llm.forward_needed.push_back(stage.first_start);
    problem.llm.backward_made.push_back(stage.last_end);
    encoder.micro_batches.push_back(i);
  }
  StageWork work;
  for (std::int64_t i = 0; i < ops; ++i) {
    WorkOp op;
    op.duration = Picoseconds(1);
    op.work = 0;
    op.layer = 0;
    op.first_dependency = static_cast<std::uint32_t>(work.dependencies.size());
    op.dependency_count = i > 0 ? 1 : 0;
    if (i > 0) work.dependencies.push_back(static_cast<std::uint32_t>(i - 1));
    if (i == 0) op.input_part = -1;
    work.ops.push_back(op);
    work.chain.push_back(0);
  }
  work.outputs = {static_cast<std::uint32_t>(ops - 1)};
  work.compute = Picoseconds(ops);
  encoder.forward = {work};
  for (WorkOp& op : work.ops) op.phase = Phase::kBackward;
  work.ops[0].input_part = 0;
  encoder.backward = {work};
  encoder.to_llm = encoder.from_llm = {Picoseconds(0)};
  problem.encoders = {encoder};
  return problem;
}

RC_GTEST_PROP(Invariant17, EfficiencyTimesMicroBatchesIsConstantWhileOuterBubblesAreFull, ()) {
  const std::int64_t before = *rc::gen::inRange<std::int64_t>(0, 30).as("bubble before");
  const std::int64_t after = *rc::gen::inRange<std::int64_t>(0, 30).as("bubble after");
  const std::int64_t ops = *rc::gen::inRange<std::int64_t>(1, 20).as("kernels");
  const std::int64_t full = std::max(before, after) / ops + 1;
  const std::int64_t n = full + *rc::gen::inRange<std::int64_t>(0, 20).as("more micro-batches");
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    const Result result =
        MustSchedule(scheduler, OuterBubblesOnly(static_cast<std::int32_t>(n), before, after, ops));
    const double hidden = result.coarse.work * static_cast<double>(n);
    const double expected = static_cast<double>(before + after) / static_cast<double>(2 * ops);
    RC_ASSERT(std::abs(hidden - expected) < 1e-9);
  }
}

RC_GTEST_PROP(Invariant18, ExhaustiveSearchIsTheBestOfAllSplits, ()) {
  RandomShape shape = AnyShape();
  shape.encoders = 1;
  shape.micro_batches = std::min(shape.micro_batches, 4);
  const Problem problem = RandomProblem(shape);
  const EncoderWork& encoder = problem.encoders[0];
  std::vector<planner::Split> splits;
  planner::ForEachSplit(static_cast<std::int32_t>(encoder.micro_batches.size()),
                        PipelineCount(problem, encoder), [&](const planner::Split& split) {
                          splits.push_back(split);
                          return true;
                        });
  RC_PRE(splits.size() <= 100U);
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    SearchOptions exhaustive;
    exhaustive.exhaustive = true;
    const Result local = MustSchedule(scheduler, problem);
    const Result all = MustSchedule(scheduler, problem, exhaustive);
    RC_ASSERT(all.latency <= local.latency);
    // Each by itself, in the opposite order.
    Picoseconds best = all.latency + Picoseconds(1);
    for (auto split = splits.rbegin(); split != splits.rend(); ++split) {
      SearchOptions given;
      given.splits = {*split};
      const Result one = MustSchedule(scheduler, problem, given);
      RC_ASSERT(one.encoders[0].split == *split);
      best = std::min(best, one.latency);
    }
    RC_ASSERT(all.latency == best);
  }
}

RC_GTEST_PROP(Invariant23, TimesScale, ()) {
  const Problem problem = RandomProblem(AnyShape());
  const std::int64_t factor = *rc::gen::element<std::int64_t>(2, 7, 1000, 1'000'000).as("factor");
  const Problem larger = Scaled(problem, factor);
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    RequireEqual(MustSchedule(scheduler, larger), Scaled(MustSchedule(scheduler, problem), factor));
  }
}

// --- beyond the list -----------------------------------------------------------------------------

RC_GTEST_PROP(Scheduler, RepeatsItself, ()) {
  const Problem problem = RandomProblem(AnyShape());
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    RequireEqual(MustSchedule(scheduler, problem), MustSchedule(scheduler, problem));
  }
}

RC_GTEST_PROP(Scheduler, KeepsToWhatMemoryAllows, ()) {
  const Problem problem = RandomProblem(AnyShape());
  SearchOptions options;
  for (const EncoderWork& encoder : problem.encoders) {
    const std::int32_t pipelines = PipelineCount(problem, encoder);
    const auto count = static_cast<std::int32_t>(encoder.micro_batches.size());
    options.most_micro_batches.push_back((count + pipelines - 1) / pipelines +
                                         *rc::gen::inRange(0, 2).as("spare"));
  }
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    const Result result = MustSchedule(scheduler, problem, options);
    Require(Verify(problem, result));
    for (std::size_t k = 0; k < problem.encoders.size(); ++k) {
      for (const std::int32_t part : result.encoders[k].split) {
        RC_ASSERT(part <= options.most_micro_batches[k]);
      }
    }
  }
}

RC_GTEST_PROP(Scheduler, RefusesSplitsThatDoNotSuit, ()) {
  const Problem problem = RandomProblem(AnyShape());
  SearchOptions options;
  for (const EncoderWork& encoder : problem.encoders) {
    options.splits.push_back(planner::BalancedSplit(
        static_cast<std::int32_t>(encoder.micro_batches.size()), PipelineCount(problem, encoder)));
  }
  SearchOptions more = options;
  ++more.splits.back()[0];
  SearchOptions negative = options;
  negative.splits.back()[0] = -1;
  SearchOptions longer = options;
  longer.splits.back().push_back(0);
  SearchOptions fewer = options;
  fewer.splits.pop_back();
  for (const Scheduler scheduler : {SchedulePaper, ScheduleList}) {
    Require(Verify(problem, MustSchedule(scheduler, problem, options)));
    for (const SearchOptions& wrong : {more, negative, longer}) {
      RC_ASSERT(scheduler(problem, wrong).status().code() == absl::StatusCode::kInvalidArgument);
    }
    if (!fewer.splits.empty()) {
      RC_ASSERT(scheduler(problem, fewer).status().code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

// --- the verifier against a count, picosecond by picosecond --------------------------------------

// True if at some picosecond a resource of a lane has two ops, or an op where the LLM is.
bool ClashByCounting(const Problem& problem, const Result& result) {
  std::int64_t end = 1;
  const auto each = [&](auto body) {
    verify::ForEach(problem, result, [&](const verify::PlacedWork& at) {
      for (std::size_t op = 0; op < at.work->ops.size(); ++op) body(at, op);
      return absl::OkStatus();
    }).IgnoreError();
  };
  each([&](const verify::PlacedWork& at, std::size_t op) {
    end = std::max(end, at.end(op).value());
  });
  using Line = std::vector<int>;
  std::vector<std::vector<Line>> taken(2);  // by resource and lane
  for (std::size_t r = 0; r < 2; ++r) {
    for (const LlmStage& stage : problem.llm.stages) {
      Line line(end, 0);
      const auto fill = [&](Picoseconds from, Picoseconds to, int value) {
        for (std::int64_t t = from.value(); t < to.value(); ++t) {
          const std::int64_t shifted = t + result.delta_f.value();
          if (shifted >= 0 && shifted < end) line[shifted] = value;
        }
      };
      fill(stage.first_start, stage.last_end, 1);
      for (const Interval& slot : r == 0 ? stage.compute_idle : stage.link_idle) {
        fill(slot.start, slot.end, 0);
      }
      taken[r].insert(taken[r].end(), problem.lanes, line);
    }
  }
  bool clash = false;
  each([&](const verify::PlacedWork& at, std::size_t op) {
    const std::size_t r = at.work->ops[op].resource == Resource::kCompute ? 0 : 1;
    for (std::int32_t l = 0; l < at.place.lane_count; ++l) {
      Line& line = taken[r][at.place.stage * problem.lanes + at.place.first_lane + l];
      for (std::int64_t t = at.start(op).value(); t < at.end(op).value(); ++t) {
        clash |= line[t]++ > 0;
      }
    }
  });
  return clash;
}

// Moves some ops to random times.
void Disturb(Random& random, Result& result) {
  for (PlacedEncoder& encoder : result.encoders) {
    for (PlacedPipeline& pipeline : encoder.pipelines) {
      for (PlacedMicroBatch& placed : pipeline.micro_batches) {
        for (auto* stages : {&placed.forward, &placed.backward}) {
          for (PlacedStage& stage : *stages) {
            for (Picoseconds& start : stage.starts) {
              if (!random.Chance(2)) continue;
              start += Picoseconds(random.Between(-3, 3));
              start = std::max(start, Picoseconds(0));
            }
          }
        }
      }
    }
  }
}

bool HasOpsWithoutLength(const Problem& problem) {
  for (const EncoderWork& encoder : problem.encoders) {
    for (const auto* stages : {&encoder.forward, &encoder.backward}) {
      for (const StageWork& work : *stages) {
        for (const WorkOp& op : work.ops) {
          if (op.duration == Picoseconds(0)) return true;
        }
      }
    }
  }
  return false;
}

RC_GTEST_PROP(Verifier, FindsTheClashesThatCountingFinds, ()) {
  RandomShape shape = AnyShape();
  const Problem problem = RandomProblem(shape);
  Random random(shape.seed);
  Result result = MustSchedule(SchedulePaper, problem);
  RC_ASSERT(!ClashByCounting(problem, result));
  Disturb(random, result);
  const bool clash = ClashByCounting(problem, result);
  const bool found =
      !verify::CheckLanes(problem, result).ok() || !verify::CheckSlots(problem, result).ok();
  RC_CLASSIFY(clash, "clash");
  if (clash) RC_ASSERT(found);
  // The verifier is stricter about ops without length.
  if (found && !HasOpsWithoutLength(problem)) RC_ASSERT(clash);
}

// An op that takes time.
struct Chosen {
  PlacedStage* placed = nullptr;
  std::size_t op = 0;
  const WorkOp* work = nullptr;
  PipelinePlace place;
};
std::vector<Chosen> AllOps(const Problem& problem, Result& result) {
  std::vector<Chosen> all;
  const auto add = [&all](const StageWork& work, PlacedStage& placed, const PipelinePlace& place) {
    for (std::size_t op = 0; op < work.ops.size(); ++op) {
      if (work.ops[op].duration == Picoseconds(0)) continue;
      all.push_back({&placed, op, &work.ops[op], place});
    }
  };
  for (std::size_t k = 0; k < result.encoders.size(); ++k) {
    const EncoderWork& work = problem.encoders[k];
    auto& pipelines = result.encoders[k].pipelines;
    for (std::size_t j = 0; j < pipelines.size(); ++j) {
      for (PlacedMicroBatch& placed : pipelines[j].micro_batches) {
        for (std::int32_t p = 0; p < work.plan.pipeline_parallel; ++p) {
          const PipelinePlace place = PlaceOf(problem, work, static_cast<std::int32_t>(j), p);
          add(work.forward[p], placed.forward[p], place);
          add(work.backward[p], placed.backward[p], place);
        }
      }
    }
  }
  return all;
}

RC_GTEST_PROP(Verifier, FindsAnyTwoOpsThatAreMadeToOverlap, ()) {
  const Problem problem = RandomProblem(AnyShape());
  Result result = MustSchedule(ScheduleList, problem);
  const std::vector<Chosen> all = AllOps(problem, result);
  if (all.empty()) return;
  const Chosen& a = all[*rc::gen::inRange<std::size_t>(0, all.size()).as("moved")];
  std::vector<const Chosen*> others;  // that share a lane and the resource
  for (const Chosen& b : all) {
    const bool same_lane = a.place.stage == b.place.stage &&
                           a.place.first_lane < b.place.first_lane + b.place.lane_count &&
                           b.place.first_lane < a.place.first_lane + a.place.lane_count;
    if (&a != &b && same_lane && a.work->resource == b.work->resource) others.push_back(&b);
  }
  if (others.empty()) return;
  const Chosen& b = *others[*rc::gen::inRange<std::size_t>(0, others.size()).as("onto")];
  a.placed->starts[a.op] = b.placed->starts[b.op];
  const absl::Status status = verify::CheckLanes(problem, result);
  RC_ASSERT(!status.ok());
  RC_ASSERT(std::string(status.message()).find("overlaps on lane") != std::string::npos);
  RC_ASSERT(!Verify(problem, result).ok());
}

RC_GTEST_PROP(Verifier, FindsAnyTwoMicroBatchesOfOneName, ()) {
  RandomShape shape = AnyShape();
  shape.micro_batches += 2;
  shape.skipping = false;
  const Problem problem = RandomProblem(shape);
  Result result = MustSchedule(SchedulePaper, problem);
  std::vector<PlacedMicroBatch*> all;
  for (PlacedPipeline& pipeline : result.encoders[0].pipelines) {
    for (PlacedMicroBatch& placed : pipeline.micro_batches) all.push_back(&placed);
  }
  const std::size_t a = *rc::gen::inRange<std::size_t>(0, all.size()).as("renamed");
  const std::size_t step = *rc::gen::inRange<std::size_t>(1, all.size()).as("to, from there");
  const std::size_t b = (a + step) % all.size();
  all[a]->micro_batch = all[b]->micro_batch;
  RC_ASSERT(!verify::CheckMap(problem, result).ok());
  RC_ASSERT(!Verify(problem, result).ok());
}

// The LLM cannot wait: a picosecond less shift than is needed must be noticed.
RC_GTEST_PROP(Verifier, FindsAShiftThatIsTooSmall, ()) {
  const Problem problem = RandomProblem(AnyShape());
  Result result = MustSchedule(SchedulePaper, problem);
  if (result.delta_f == Picoseconds(0)) return;
  result.delta_f -= Picoseconds(1);
  RC_ASSERT(!Verify(problem, result).ok());
}

}  // namespace
}  // namespace optimus::bubble
