#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "schedule/bubble/list_slots.h"
#include "schedule/bubble/list_testing.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

using testing::Random;
using testing::RandomProblem;
using testing::RandomShape;
using testing::Scaled;

Picoseconds Ps1(std::int64_t t) { return Picoseconds(t); }

// An op of a hand-made stage: resource, duration, chain; it needs the one before it in its chain.
struct Hand {
  Resource resource;
  std::int64_t duration;
  std::int32_t chain = 0;
};
constexpr Resource kC = Resource::kCompute;
constexpr Resource kL = Resource::kLink;

StageWork Work(const std::vector<Hand>& hands) {
  StageWork work;
  std::vector<std::int64_t> last;  // by chain
  for (const Hand& hand : hands) {
    const auto chain = static_cast<std::size_t>(hand.chain);
    last.resize(std::max(last.size(), chain + 1), -1);
    WorkOp op;
    op.resource = hand.resource;
    op.duration = Ps1(hand.duration);
    op.slice = static_cast<std::int16_t>(hand.chain);
    op.layer = 0;
    op.first_dependency = static_cast<std::uint32_t>(work.dependencies.size());
    if (last[chain] >= 0) {
      op.dependency_count = 1;
      work.dependencies.push_back(static_cast<std::uint32_t>(last[chain]));
    } else {
      op.input_part = static_cast<std::int16_t>(hand.chain);
    }
    last[chain] = static_cast<std::int64_t>(work.ops.size());
    work.ops.push_back(op);
    work.chain.push_back(hand.chain);
    (hand.resource == kC ? work.compute : work.link) += op.duration;
  }
  work.input_parts = std::max<std::int32_t>(1, static_cast<std::int32_t>(last.size()));
  for (const std::int64_t op : last) work.outputs.push_back(static_cast<std::uint32_t>(op));
  return work;
}

// One stage, one lane: the LLM computes in [100, 200], [230, 400] and [430, 500], its collectives
// are in the gaps; F = 100, 230 and B = 400, 500.
Problem OneLane(const StageWork& forward, const StageWork& backward) {
  Problem problem;
  LlmStage stage;
  stage.first_start = Ps1(100);
  stage.last_end = stage.gradients_reduced = Ps1(500);
  stage.compute_idle = {{Ps1(200), Ps1(230)}, {Ps1(400), Ps1(430)}};
  stage.link_idle = {{Ps1(100), Ps1(200)}, {Ps1(230), Ps1(400)}, {Ps1(430), Ps1(500)}};
  stage.compute = Ps1(340);
  problem.llm.stages = {stage};
  problem.llm.forward_needed = {Ps1(100), Ps1(230)};
  problem.llm.backward_made = {Ps1(400), Ps1(500)};
  problem.llm.step = Ps1(500);
  EncoderWork encoder;
  encoder.micro_batches = {0, 1};
  encoder.forward = {forward};
  encoder.backward = {backward};
  encoder.to_llm = encoder.from_llm = {Ps1(0)};
  problem.encoders = {encoder};
  return problem;
}

Result List(const Problem& problem, const SearchOptions& options = {}) {
  absl::StatusOr<Result> result = ScheduleList(problem, options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Verify(problem, *result), absl::OkStatus());
  return *std::move(result);
}

SearchOptions WithoutPaper() {
  SearchOptions options;
  options.paper_fallback = false;
  return options;
}

TEST(List, HidesWhatFits) {
  // Forward 2 x 50 before the first start; the backward of micro-batch 0 in the gap at 400.
  const Problem problem = OneLane(Work({{kC, 50}}), Work({{kC, 30}}));
  const Result result = List(problem, WithoutPaper());
  EXPECT_EQ(result.delta_f, Ps1(0));
  EXPECT_EQ(result.delta_b, Ps1(30));  // micro-batch 1: its gradient comes at 500
}

TEST(List, AChainStraddlesOuterAndInnerSlots) {
  // 60 + 30 a micro-batch: 180 of forward in 100 + 30 idle. Micro-batch 1 puts its first kernel
  // before the LLM starts and its second between its kernels, so that 150 lie before, not 180.
  const Problem problem = OneLane(Work({{kC, 60}, {kC, 30}}), Work({{kC, 0}}));
  EXPECT_EQ(List(problem, WithoutPaper()).delta_f, Ps1(50));
}

TEST(List, CollectivesRunUnderKernelsOfAnotherChain) {
  // The two chains of micro-batch 0: kernels at 0 and 10, their collectives back to back at 10 and
  // 30, the last kernels at 30 and 50: 60 in all, of which 40 lie before the LLM. In a row: 80.
  const std::vector<Hand> one = {{kC, 10, 0}, {kL, 20, 0}, {kC, 10, 0},
                                 {kC, 10, 1}, {kL, 20, 1}, {kC, 10, 1}};
  Problem problem = OneLane(Work(one), Work({{kC, 0}}));
  problem.encoders[0].micro_batches = {0};
  problem.llm.stages[0].first_start = Ps1(40);
  problem.llm.forward_needed = {Ps1(40), Ps1(230)};
  EXPECT_EQ(List(problem, WithoutPaper()).delta_f, Ps1(20));
}

TEST(List, CollectivesKeepOffTheLlmsCollectives) {
  // The collective may not be at 200-230, where the LLM has one: it waits for the LLM's kernel.
  Problem problem = OneLane(Work({{kC, 0}}), Work({{kL, 20}, {kC, 30}}));
  problem.encoders[0].micro_batches = {0};
  problem.llm.backward_made = {Ps1(200), Ps1(500)};
  problem.llm.forward_needed = {Ps1(100), Ps1(230)};
  const Result result = List(problem, WithoutPaper());
  const PlacedStage& placed = result.encoders[0].pipelines[0].micro_batches[0].backward[0];
  EXPECT_EQ(placed.starts, (std::vector<Picoseconds>{Ps1(230), Ps1(400)}));
  EXPECT_EQ(result.latency, Ps1(500));
}

TEST(List, LayersWaitForTheirGathers) {
  Problem problem = OneLane(Work({{kC, 50}}), Work({{kC, 0}}));
  problem.encoders[0].sync.gathers = {{{0, 0, Ps1(40), -1}}};
  // 40 for the gather; the kernels start there. 2 x 50 in [40, 100 + delta_f], or one of them
  // later: the gap at 200 is too short for it.
  EXPECT_EQ(List(problem, WithoutPaper()).delta_f, Ps1(40));
  problem.encoders[0].sync.gathers[0][0].duration = Ps1(70);
  EXPECT_EQ(List(problem, WithoutPaper()).delta_f, Ps1(70));
}

TEST(List, ReductionsComeAfterTheLastBackwardOfTheirLayers) {
  Problem problem = OneLane(Work({{kC, 0}}), Work({{kC, 30}}));
  problem.encoders[0].sync.reductions = {{{0, 0, Ps1(15), -1}}};
  EXPECT_EQ(List(problem, WithoutPaper()).delta_b, Ps1(45));  // 500 + 30 + 15
}

TEST(List, MicroBatchesGoWhereTheyFit) {
  // Two stages, an encoder pipeline on each. Only stage 1 has room before its start, for the early
  // micro-batch; the other fits between the kernels of stage 0.
  Problem problem = OneLane(Work({{kC, 30}}), Work({{kC, 0}}));
  problem.llm.stages.push_back(problem.llm.stages[0]);
  problem.llm.stages[0].first_start = Ps1(0);
  problem.encoders[0].to_llm = problem.encoders[0].from_llm = {Ps1(0), Ps1(0)};
  const Result result = List(problem, WithoutPaper());
  EXPECT_EQ(result.delta_f, Ps1(0));
  EXPECT_EQ(result.encoders[0].split, (planner::Split{1, 1}));
  EXPECT_EQ(result.encoders[0].pipelines[1].micro_batches[0].micro_batch, 0);
  SearchOptions fixed = WithoutPaper();
  fixed.splits = {{2, 0}};
  EXPECT_EQ(List(problem, fixed).delta_f, Ps1(30));
}

TEST(List, KeepsToWhatAPipelineCanHold) {
  // Four micro-batches, all of which fit before the start of stage 1; stage 0 has no room there.
  Problem problem = OneLane(Work({{kC, 20}}), Work({{kC, 0}}));
  problem.llm.stages.push_back(problem.llm.stages[0]);
  problem.llm.stages[0].first_start = Ps1(0);
  problem.encoders[0].to_llm = problem.encoders[0].from_llm = {Ps1(0), Ps1(0)};
  problem.llm.forward_needed = {Ps1(100), Ps1(100), Ps1(100), Ps1(100)};
  problem.llm.backward_made = {Ps1(500), Ps1(500), Ps1(500), Ps1(500)};
  problem.encoders[0].micro_batches = {0, 1, 2, 3};
  EXPECT_EQ(List(problem, WithoutPaper()).encoders[0].split, (planner::Split{1, 3}));
  SearchOptions most = WithoutPaper();
  most.most_micro_batches = {2};
  EXPECT_EQ(List(problem, most).encoders[0].split, (planner::Split{2, 2}));
}

TEST(List, RefusesSplitsThatDoNotSuit) {
  const Problem problem = OneLane(Work({{kC, 5}}), Work({{kC, 5}}));
  SearchOptions options;
  options.splits = {{1}};
  EXPECT_THAT(std::string(ScheduleList(problem, options).status().message()),
              ::testing::HasSubstr("splits[0]"));
  options.splits = {{2}, {2}};
  EXPECT_FALSE(ScheduleList(problem, options).ok());
  options = {};
  options.most_micro_batches = {1};
  EXPECT_THAT(std::string(ScheduleList(problem, options).status().message()),
              ::testing::HasSubstr("most_micro_batches[0]"));
}

TEST(List, WithoutWorkNothingIsAdded) {
  const Problem problem = OneLane(Work({{kC, 0}, {kL, 0}}), Work({{kC, 0}}));
  EXPECT_EQ(List(problem).latency, problem.llm.step);
  Problem empty = problem;
  empty.encoders[0].micro_batches.clear();
  EXPECT_EQ(List(empty).latency, problem.llm.step);
  empty.encoders.clear();
  EXPECT_EQ(List(empty).latency, problem.llm.step);
}

// ---- Against the best of all schedules, on problems of a few ops.

// Serial placement of the ops of `jobs` copies of `work` in every order that respects chains; each
// op as early as it fits. Among these orders is one of least length.
class AllOrders {
 public:
  AllOrders(const StageWork& work, LaneSlots slots, std::vector<Ps> releases)
      : work_(work), slots_(std::move(slots)), releases_(std::move(releases)) {
    done_.assign(releases_.size() * work.ops.size(), -kForever);
    placed_.assign(done_.size(), false);
  }
  Ps Least() {
    Extend(0, -kForever);
    return least_;
  }

 private:
  bool MayPlace(std::size_t id, Ps& from) const {
    const std::size_t job = id / work_.ops.size(), op = id % work_.ops.size();
    from = releases_[job];
    for (std::size_t before = 0; before < op; ++before) {
      const auto first = work_.dependencies.begin() + work_.ops[op].first_dependency;
      const bool needed = std::find(first, first + work_.ops[op].dependency_count, before) !=
                          first + work_.ops[op].dependency_count;
      const bool in_order = work_.chain[before] == work_.chain[op] &&
                            work_.ops[before].resource == work_.ops[op].resource;
      if (!needed && !in_order) continue;
      const std::size_t other = job * work_.ops.size() + before;
      if (!placed_[other]) return false;
      from = std::max(from, done_[other]);
    }
    return true;
  }

  void Extend(std::size_t count, Ps end) {
    if (end >= least_) return;
    if (count == placed_.size()) {
      least_ = end;
      return;
    }
    for (std::size_t id = 0; id < placed_.size(); ++id) {
      Ps from = 0;
      if (placed_[id] || !MayPlace(id, from)) continue;
      const WorkOp& op = work_.ops[id % work_.ops.size()];
      const LaneSlots saved = slots_;
      Slots& slots = slots_.of(op.resource);
      const Ps start = EarliestFit(slots, from, op.duration.value());
      done_[id] = start + op.duration.value();
      slots = Subtract(slots, {{Ps1(start), Ps1(done_[id])}});
      placed_[id] = true;
      Extend(count + 1, std::max(end, done_[id]));
      placed_[id] = false;
      slots_ = saved;
    }
  }

  static Ps EarliestFit(const Slots& slots, Ps from, Ps duration) {
    for (const Interval& slot : slots) {
      const Ps start = std::max(from, slot.start.value());
      if (start + duration <= slot.end.value()) return start;
    }
    return kForever;
  }

  const StageWork& work_;
  LaneSlots slots_;
  std::vector<Ps> releases_, done_;
  std::vector<bool> placed_;
  Ps least_ = kForever;
};

// The same work with time running backwards.
StageWork Reversed(const StageWork& work) {
  StageWork reversed = work;
  const std::size_t ops = work.ops.size();
  std::reverse(reversed.ops.begin(), reversed.ops.end());
  std::reverse(reversed.chain.begin(), reversed.chain.end());
  std::vector<std::vector<std::uint32_t>> needs(ops);
  for (std::size_t op = 0; op < ops; ++op) {
    for (std::uint32_t d = 0; d < work.ops[op].dependency_count; ++d) {
      const std::uint32_t before = work.dependencies[work.ops[op].first_dependency + d];
      needs[ops - 1 - before].push_back(static_cast<std::uint32_t>(ops - 1 - op));
    }
  }
  reversed.dependencies.clear();
  for (std::size_t op = 0; op < ops; ++op) {
    reversed.ops[op].first_dependency = static_cast<std::uint32_t>(reversed.dependencies.size());
    reversed.ops[op].dependency_count = static_cast<std::uint32_t>(needs[op].size());
    reversed.dependencies.insert(reversed.dependencies.end(), needs[op].begin(), needs[op].end());
  }
  return reversed;
}

// The least latency of a problem of one encoder with one stage, no transfers and no data-parallel
// communication, in which no forward deadline is later than the first gradient: the directions then
// share no slot. Micro-batches go to pipelines in every way.
Ps LeastLatency(const Problem& problem) {
  const EncoderWork& encoder = problem.encoders[0];
  const StageWork reversed = Reversed(encoder.forward[0]);
  const auto pipelines = static_cast<std::size_t>(PipelineCount(problem, encoder));
  const std::size_t jobs = encoder.micro_batches.size();
  std::size_t ways = 1;
  for (std::size_t i = 0; i < jobs; ++i) ways *= pipelines;
  Ps least = kForever;
  for (std::size_t way = 0; way < ways; ++way) {
    Ps shift = 0, end = problem.llm.step.value();
    for (std::size_t j = 0; j < pipelines; ++j) {
      std::vector<Ps> deadlines, releases;
      for (std::size_t i = 0, rest = way; i < jobs; ++i, rest /= pipelines) {
        if (rest % pipelines != j) continue;
        deadlines.push_back(-problem.llm.forward_needed[i].value());
        releases.push_back(problem.llm.backward_made[i].value());
      }
      if (deadlines.empty()) continue;
      const PipelinePlace place = PlaceOf(problem, encoder, static_cast<std::int32_t>(j), 0);
      const LaneSlots slots = AllSlots(problem.llm.stages[static_cast<std::size_t>(place.stage)]);
      const LaneSlots mirrored = {Mirror(slots.compute), Mirror(slots.link)};
      shift = std::max(shift, AllOrders(reversed, mirrored, deadlines).Least());
      end = std::max(end, AllOrders(encoder.backward[0], slots, releases).Least());
    }
    least = std::min(least, shift + end);
  }
  return least;
}

StageWork RandomWork(Random& random) {
  std::vector<Hand> hands;
  const std::int64_t count = random.Between(1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    hands.push_back({random.Chance(60) ? kC : kL, random.Between(1, 20), 0});
  }
  StageWork work = Work(hands);
  if (count > 1 && random.Chance(40)) work = Work({{kC, 7, 0}, {kL, 5, 0}, {kC, 9, 1}});
  return work;
}

// One or two stages; gaps at 200-230 and so on, made wider and narrower by chance.
Problem RandomTiny(std::uint64_t seed) {
  Random random(seed);
  Problem problem = OneLane(RandomWork(random), RandomWork(random));
  LlmStage& stage = problem.llm.stages[0];
  stage.first_start = Ps1(random.Between(0, 60));
  Picoseconds at = stage.first_start;
  stage.compute_idle.clear();
  stage.link_idle.clear();
  for (int gap = 0; gap < 5; ++gap) {
    const Picoseconds start = at + Ps1(random.Between(1, 25));
    at = start + Ps1(random.Between(1, 25));
    (random.Chance(60) ? stage.compute_idle : stage.link_idle).push_back({start, at});
  }
  stage.last_end = stage.gradients_reduced = problem.llm.step = at + Ps1(10);
  stage.compute = stage.last_end - stage.first_start;
  for (const Interval& idle : stage.compute_idle) stage.compute -= idle.length();
  const Picoseconds middle = Ps1((stage.first_start + stage.last_end).value() / 2);
  problem.llm.forward_needed = {stage.first_start, middle};
  problem.llm.backward_made = {middle, stage.last_end};
  if (random.Chance(50)) {
    problem.llm.stages.push_back(stage);
    problem.encoders[0].to_llm = problem.encoders[0].from_llm = {Ps1(0), Ps1(0)};
  }
  return problem;
}

TEST(List, IsNearTheBestOfAllSchedulesAndNeverBelow) {
  constexpr int kProblems = 300;
  int best = 0;
  double worst = 1, sum = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Problem problem = RandomTiny(static_cast<std::uint64_t>(seed));
    const Ps least = LeastLatency(problem);
    const Ps list = List(problem, WithoutPaper()).latency.value();
    ASSERT_GE(list, least) << "seed " << seed;
    ASSERT_LE(LowerBounds(problem).fluid.value(), least) << "seed " << seed;
    const double ratio = static_cast<double>(list) / static_cast<double>(least);
    worst = std::max(worst, ratio);
    sum += ratio;
    if (list == least) ++best;
  }
  // On such problems a single op is a large part of the step.
  RecordProperty("optimal", best);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(sum / kProblems));
  EXPECT_GE(best, kProblems * 7 / 10);
  EXPECT_LE(worst, 1.35);
  EXPECT_LE(sum / kProblems, 1.03);
}

// ---- Larger problems.

std::vector<Picoseconds> AllTimes(const Result& result) {
  std::vector<Picoseconds> times = {result.latency, result.delta_f, result.delta_b};
  for (const PlacedEncoder& encoder : result.encoders) {
    for (const PlacedPipeline& pipeline : encoder.pipelines) {
      for (const PlacedMicroBatch& unit : pipeline.micro_batches) {
        for (const auto* stages : {&unit.forward, &unit.backward}) {
          for (const PlacedStage& stage : *stages) {
            times.insert(times.end(), stage.starts.begin(), stage.starts.end());
          }
        }
      }
    }
  }
  return times;
}

PipelineShape Small() {
  PipelineShape shape;
  shape.stages = 4;
  shape.chunks = 3;
  shape.micro_batches = 8;
  shape.encoder_layers = 8;
  shape.encoder_pipeline = 2;
  shape.slices = 2;
  return shape;
}

TEST(List, RepeatsItselfAndScales) {
  const Problem problem = RealisticProblem(Small());
  const Result first = List(problem), again = List(problem);
  EXPECT_EQ(AllTimes(first), AllTimes(again));
  const Result scaled = List(Scaled(problem, 7));
  std::vector<Picoseconds> times = AllTimes(first);
  for (Picoseconds& time : times) time = time * 7;
  EXPECT_EQ(AllTimes(scaled), times);
}

TEST(List, SchedulesEveryKindOfPlan) {
  for (const std::int32_t pipeline : {1, 2, 4}) {
    for (const std::int32_t tensor : {8, 2, 1}) {
      PipelineShape shape = Small();
      shape.encoder_pipeline = pipeline;
      shape.encoder_tensor = tensor;
      const Problem problem = RealisticProblem(shape);
      const Result list = List(problem);
      const absl::StatusOr<Result> paper = SchedulePaper(problem, {});
      ASSERT_TRUE(paper.ok());
      EXPECT_LE(list.latency, paper->latency);
      EXPECT_GE(list.latency, LowerBounds(problem).fluid);
    }
  }
}

TEST(List, TwoEncodersShareTheSlots) {
  PipelineShape shape = Small();
  Problem problem = RealisticProblem(shape);
  shape.encoder_tensor = 4;
  shape.encoder_layers = 4;
  shape.encoder_pipeline = 1;
  problem.encoders.push_back(RealisticProblem(shape).encoders[0]);
  const Result both = List(problem);
  problem.encoders.pop_back();
  EXPECT_GE(both.latency, List(problem).latency);
}

TEST(List, AFrozenEncoderAddsNothingBehind) {
  Problem problem = RealisticProblem(Small());
  EncoderWork& encoder = problem.encoders[0];
  encoder.frozen = true;
  encoder.backward.assign(encoder.backward.size(), StageWork());
  for (auto& buckets : encoder.sync.reductions) buckets.clear();
  EXPECT_EQ(List(problem).delta_b, Ps1(0));
}

// The target for the largest experiment of the paper, by far the most important one.
TEST(List, IsWithinATenthOfTheFluidBoundAt3072Gpus) {
  PipelineShape shape;
  shape.data_parallel = false;
  shape.encoder_pipeline = 1;
  shape.lanes = 1;
  const Problem without = RealisticProblem(shape);
  EXPECT_LE(ToSeconds(List(without).latency), 1.05 * ToSeconds(LowerBounds(without).fluid));
  shape.data_parallel = true;
  const Problem with = RealisticProblem(shape);
  EXPECT_LE(ToSeconds(List(with).latency), 1.02 * ToSeconds(LowerBounds(with).fluid));
}

TEST(List, IsValidOnRandomProblems) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomShape shape;
    shape.seed = seed;
    shape.stages = 1 + static_cast<std::int32_t>(seed % 4);
    shape.tensor_parallel = 1 << (seed / 4 % 3);
    shape.encoders = 1 + static_cast<std::int32_t>(seed / 16 % 2);
    const Problem problem = RandomProblem(shape);
    const Result list = List(problem);
    EXPECT_GE(list.latency, LowerBounds(problem).fluid) << "seed " << seed;
  }
}

}  // namespace
}  // namespace optimus::bubble
