#include "sim/simgrid_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/critical_path.h"
#include "sim/fidelity.h"
#include "sim/outcome_bytes.h"
#include "sim/testing.h"

namespace optimus::sim {
namespace {

using ir::Stream;
using ir::testing::HandCosts;
using ir::testing::OneForwardOneBackward;
using ir::testing::PhaseTag;
using ir::testing::RandomSchedule;
using ir::testing::ScheduleBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Simulate;
using testing::WireCosts;
using testing::With;

constexpr int kSeeds = 60;
constexpr int kOperations = 150;

void ExpectAccountsAddUp(const ir::Timeline& timeline) {
  for (const ir::EntityAccount& entity : timeline.entities) {
    EXPECT_EQ(entity.account.total(), timeline.step) << "rank " << entity.rank;
  }
}

// Accounts are those of `expected`, which has one entity per program, on every entity.
void ExpectEveryEntityLike(const ir::Schedule& schedule, const ir::Timeline& expected,
                           const ir::Timeline& timeline, int entities) {
  EXPECT_EQ(timeline.step, expected.step);
  ASSERT_EQ(static_cast<int>(timeline.entities.size()), entities);
  for (const ir::EntityAccount& entity : timeline.entities) {
    const int program = ir::ProgramIndex(schedule, entity.stage, entity.lane);
    EXPECT_EQ(entity.account, expected.entities[program].account) << "rank " << entity.rank;
  }
  EXPECT_EQ(timeline.spans, expected.spans);
}

int EntityCount(const ir::Schedule& schedule, Fidelity fidelity) {
  const ir::Parallelism& world = schedule.world;
  const int programs = world.pp * schedule.lanes;
  if (fidelity == Fidelity::kFolded) return programs;
  return fidelity == Fidelity::kGroup ? programs * world.dp : world.gpus();
}

// Odd seeds: with encoders on lanes.
ir::Schedule RandomOf(std::uint32_t seed, bool pairs = false) {
  return RandomSchedule(seed, /*encoders=*/seed % 2 == 1, pairs).Build(kOperations);
}

// Wherever a fidelity is exact and nothing contends, it is the critical path, to the picosecond.
TEST(SimGridRunnerTest, EqualsTheCriticalPathWhereNothingContends) {
  const HandCosts costs;
  int exact = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Schedule schedule = RandomOf(seed, /*pairs=*/seed % 3 == 0);
    if (!WhyFoldedIsNotExact(schedule, {}).empty()) continue;
    ++exact;
    const auto expected = ir::CriticalPathRunner(costs).Run(schedule);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
      const auto timeline = Simulate(schedule, costs, With(fidelity));
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      ExpectEveryEntityLike(schedule, *expected, *timeline, EntityCount(schedule, fidelity));
      EXPECT_EQ(timeline->operations * schedule.world.pp * schedule.lanes,
                expected->operations * static_cast<std::int64_t>(timeline->entities.size()));
    }
  }
  EXPECT_GT(exact, kSeeds / 4);
}

// Also with links that contend. The last run has the whole network of single GPUs, as a GPU that
// is slower by less than a rounding makes every GPU count.
TEST(SimGridRunnerTest, FoldedGroupAndGpuAreTheSameUnderContention) {
  int exact = 0;
  std::int64_t shared = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ir::Schedule schedule = RandomOf(seed);
    schedule.gpus_per_node = schedule.world.tp * static_cast<int>(1 + seed / 2 % 2);
    if (!WhyFoldedIsNotExact(schedule, {}).empty()) continue;
    ++exact;
    const WireCosts costs(seed % 3 == 0 ? 0 : 5);
    SimGridRunner folded_runner(costs, With(Fidelity::kFolded));
    const auto folded = folded_runner.Run(schedule);
    ASSERT_TRUE(folded.ok()) << folded.status();
    shared += folded_runner.stats().shared_flows;
    ExpectAccountsAddUp(*folded);
    Options every_gpu = With(Fidelity::kGpu);
    every_gpu.slow_gpus = {{0, 1.0 + 1e-9}};
    for (const Options& options : {With(Fidelity::kGroup), With(Fidelity::kGpu), every_gpu}) {
      const auto timeline = Simulate(schedule, costs, options);
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      ExpectEveryEntityLike(schedule, *folded, *timeline, EntityCount(schedule, options.fidelity));
    }
  }
  EXPECT_GT(exact, kSeeds / 2);
  EXPECT_GT(shared, kSeeds);
}

// Slow GPUs, shared links and nodes that split groups: the account of the recorded ranks is the one
// that their spans give.
TEST(SimGridRunnerTest, AccountsEqualTheirSpans) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Schedule schedule = RandomOf(seed);
    Options options = With(Fidelity::kAuto);
    if (seed % 2 == 0) options.slow_gpus = {{0, 1.7}};
    const auto timeline = Simulate(schedule, WireCosts(3), options);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    ExpectAccountsAddUp(*timeline);
    std::vector<std::vector<Picoseconds>> starts(schedule.programs.size());
    std::vector<std::vector<Picoseconds>> ends(schedule.programs.size());
    for (const ir::Span& span : timeline->spans) {
      const int stage = span.rank / (schedule.world.dp * schedule.world.tp);
      const int lane = ir::LaneOf(schedule, span.rank % schedule.world.tp);
      const int program = ir::ProgramIndex(schedule, stage, lane);
      ASSERT_EQ(span.operation, starts[program].size());
      EXPECT_LE(span.start, span.end);
      starts[program].push_back(span.start);
      ends[program].push_back(span.end);
    }
    for (const ir::EntityAccount& entity : timeline->entities) {
      const int program = ir::ProgramIndex(schedule, entity.stage, entity.lane);
      if (entity.rank != ir::FirstRankOf(schedule, schedule.programs[program])) continue;
      EXPECT_EQ(entity.account,
                ir::AccountFromSpans(schedule, schedule.programs[program], starts[program],
                                     ends[program], timeline->step));
    }
  }
}

// Bubble of 1F1B: (p - 1) / (m + p - 1).
TEST(SimGridRunnerTest, OneForwardOneBackward) {
  const auto timeline = Simulate(OneForwardOneBackward(4, 2, 1'000'000, 2'000'000, 0), HandCosts(),
                                 With(Fidelity::kAuto));
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step, Picoseconds(std::int64_t{3'000'000} * (2 + 4 - 1)));
}

TEST(SimGridRunnerTest, SameInputSameBytes) {
  const ir::Schedule schedule = RandomSchedule(11).Build(2000);
  Options options = With(Fidelity::kGpu);
  options.slow_gpus = {{0, 1.3}};
  std::string first;
  for (int i = 0; i < 2; ++i) {
    const auto timeline = Simulate(schedule, WireCosts(2), options);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    const std::string bytes = ToBytes({*timeline, {}});
    if (i == 1) {
      EXPECT_EQ(bytes, first);
    }
    first = bytes;
  }
}

TEST(SimGridRunnerTest, EmptyScheduleTakesNoTime) {
  const auto timeline = Simulate(ScheduleBuilder({2, 2, 2}).Take(), HandCosts(), {});
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step, Picoseconds(0));
  EXPECT_EQ(timeline->entities.size(), 2U);
}

TEST(SimGridRunnerTest, NamesWhatIsBlocked) {
  ScheduleBuilder builder({1, 2, 2});
  const auto edge = builder.AddTransfer("edge", 10, 0);
  const auto group = builder.AddGroup("pipeline", false, true, false);
  const auto norm = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4, group);
  const auto receive = builder.AddReceive(1, Stream::kForwardReceive, 0, 77, edge);
  const auto kernel = builder.AddKernel(1, PhaseTag(Phase::kForward), 5, {receive});
  builder.AddCollective(1, Stream::kDataParallel, PhaseTag(Phase::kOptimizer), norm, {kernel});
  builder.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kOptimizer), norm);
  const auto timeline = Simulate(builder.schedule(), HandCosts(), With(Fidelity::kGpu));
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(
      std::string(timeline.status().message()),
      AllOf(HasSubstr("4 of 4 entities blocked"),
            HasSubstr("rank 2 (stage 1) stream forward_receive operation 0"),
            HasSubstr("waits for message 77 from stage 0"),
            HasSubstr("rank 0 (stage 0) stream data_parallel operation 0"),
            HasSubstr("waits for the group pipeline: 2 of 4 are there"), HasSubstr("hint:")));
}

TEST(SimGridRunnerTest, NamesACycleOfDependencies) {
  ScheduleBuilder builder({1, 1, 1});
  const auto group = builder.AddGroup("tp", false, false, true);
  const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, 4, group);
  builder.AddKernel(0, PhaseTag(Phase::kForward), 5, {1});
  builder.AddCollective(0, Stream::kTensorParallel, PhaseTag(Phase::kForward), work, {0});
  const auto timeline = Simulate(builder.schedule(), HandCosts(), {});
  EXPECT_THAT(std::string(timeline.status().message()),
              AllOf(HasSubstr("operation 0 ("), HasSubstr("waits for operation 1 (")));
}

// Gets a signal as soon as it is asked in another process than the one it was made in.
class DeadlyCosts : public HandCosts {
 public:
  explicit DeadlyCosts(int signal) : signal_(signal) {}
  Picoseconds KernelTime(const Kernel& kernel) const override {
    if (getpid() != home_) raise(signal_);
    return HandCosts::KernelTime(kernel);
  }

 private:
  int signal_;
  pid_t home_ = getpid();
};

// Also an interrupt ends it like any process: SimGrid's own handler would print a line and leave
// with code 1.
TEST(SimGridRunnerTest, SurvivesTheDeathOfItsChild) {
  for (const int signal : {SIGKILL, SIGINT}) {
    const auto timeline = Simulate(OneForwardOneBackward(2, 2, 1, 2, 0), DeadlyCosts(signal), {});
    EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(timeline.status().message()),
                HasSubstr(absl::StrCat("killed by signal ", signal)));
  }
}

// A step that wrapped around to a negative time, and one that only its slow GPU makes too long.
TEST(SimGridRunnerTest, RefusesStepsThatWouldOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto huge = Simulate(OneForwardOneBackward(2, 2, kHuge, kHuge, kHuge), HandCosts(),
                             With(Fidelity::kAuto));
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(huge.status().message()), HasSubstr("in all, more than the limit"));
  const ir::Schedule long_step = OneForwardOneBackward(2, 2, 10'000'000'000'000'000, 1, 0);
  EXPECT_TRUE(Simulate(long_step, HandCosts(), {}).ok());
  Options options;
  options.slow_gpus = {{1, 1000.0}};
  const auto slow = Simulate(long_step, HandCosts(), options);
  EXPECT_EQ(slow.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(slow.status().message()), HasSubstr("slow-GPU factor"));
}

// 10 s alone, 115 days over an uplink that is 1 : 1,000,000.
TEST(SimGridRunnerTest, GivesUpWhereAnUplinkMakesTheStepTooLong) {
  for (const int replicas : {1, 3}) {
    ScheduleBuilder builder({replicas, 2, 1});
    builder.schedule().gpus_per_node = 1;
    const auto edge = builder.AddTransfer("edge", 1'000'000'000'000, 0);
    builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
    builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
    Options options = With(Fidelity::kAuto);
    options.oversubscription = 1e6;
    options.nodes_per_leaf = replicas;
    const auto timeline = Simulate(builder.schedule(), WireCosts(5), options);
    EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(timeline.status().message()),
                AllOf(HasSubstr("oversubscription is 1e+06"), HasSubstr("hint:")));
  }
}

class NodesOfEight : public HandCosts {
 public:
  int gpus_per_node() const override { return 8; }
};

TEST(SimGridRunnerTest, RefusesNodesOfAnotherSize) {
  ir::Schedule schedule = OneForwardOneBackward(2, 2, 1, 2, 0);
  schedule.gpus_per_node = 4;
  const auto timeline = Simulate(schedule, NodesOfEight(), {});
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(timeline.status().message()),
              AllOf(HasSubstr("gpus_per_node is 4"), HasSubstr("nodes of 8")));
}

// The callback runs in the child: it dies there when called, which is how its call is seen here.
TEST(SimGridRunnerTest, ProgressIsOffUnlessHalfASecondPasses) {
  Options options;
  options.progress = [](double) { raise(SIGKILL); };
  EXPECT_TRUE(Simulate(OneForwardOneBackward(2, 2, 1, 2, 0), HandCosts(), options).ok());
}

TEST(SimGridRunnerTest, ReportsWhatTheRunCost) {
  const HandCosts costs;
  SimGridRunner runner(costs, {});
  ASSERT_TRUE(runner.Run(OneForwardOneBackward(2, 2, 1, 2, 0)).ok());
  EXPECT_GT(runner.stats().peak_rss_bytes, 1 << 20);
  EXPECT_GT(runner.stats().events, 0);
}

TEST(FidelityTest, NamesAreReadBack) {
  for (const Fidelity fidelity :
       {Fidelity::kAuto, Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    EXPECT_EQ(*ParseFidelity(ToString(fidelity)), fidelity);
  }
  EXPECT_THAT(std::string(ParseFidelity("node").status().message()),
              HasSubstr("auto, folded, group, gpu"));
}

ir::Schedule Pipeline(ir::Parallelism world, int gpus_per_node) {
  ScheduleBuilder builder(world);
  builder.schedule().gpus_per_node = gpus_per_node;
  const auto edge = builder.AddTransfer("edge", 10, 0);
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  return builder.Take();
}

TEST(FidelityTest, AutoTakesTheCoarsestThatIsExact) {
  const HandCosts costs;
  auto choice = [&](const ir::Schedule& schedule, const Options& options) {
    const auto chosen = ChooseFidelity(schedule, costs, options);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_FALSE(chosen->reason.empty());
    return chosen->fidelity;
  };
  EXPECT_EQ(choice(Pipeline({2, 2, 4}, 8), {}), Fidelity::kFolded);
  // Nodes of 6: replica 1's stages share a node, replica 0's do not.
  EXPECT_EQ(choice(Pipeline({2, 2, 2}, 6), {}), Fidelity::kGroup);
  // Nodes of 3: ranks of one group are in two nodes.
  EXPECT_EQ(choice(Pipeline({1, 2, 2}, 3), {}), Fidelity::kGpu);
  Options options;
  options.oversubscription = 2;
  EXPECT_EQ(choice(Pipeline({2, 2, 4}, 8), options), Fidelity::kGroup);
  EXPECT_EQ(choice(Pipeline({1, 2, 16}, 8), options), Fidelity::kGpu);
  options.slow_gpus = {{3, 2.0}};
  EXPECT_EQ(choice(Pipeline({2, 2, 4}, 8), options), Fidelity::kGpu);
}

TEST(FidelityTest, RefusesACoarserOneThanExact) {
  Options options;
  options.slow_gpus = {{3, 2.0}};
  options.fidelity = Fidelity::kGroup;
  const auto slow = ChooseFidelity(Pipeline({2, 2, 4}, 8), HandCosts(), options);
  EXPECT_EQ(slow.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(slow.status().message()), HasSubstr("GPU 3 is slow"));
  options = Options();
  options.fidelity = Fidelity::kFolded;
  options.oversubscription = 2;
  const auto trunks = Simulate(Pipeline({2, 2, 4}, 8), HandCosts(), options);
  EXPECT_EQ(trunks.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(trunks.status().message()), HasSubstr("uplinks"));
}

TEST(FidelityTest, RefusesUnfitOptions) {
  auto refused = [](const Options& options) {
    const auto result = ChooseFidelity(Pipeline({1, 2, 1}, 8), HandCosts(), options);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  Options options;
  options.slow_gpus = {{2, 1.5}};
  EXPECT_THAT(refused(options), HasSubstr("rank 2 is not one of 0 to 1"));
  options.slow_gpus = {{1, 0.0}};
  EXPECT_THAT(refused(options), HasSubstr("slow_gpus: rank 1: factor 0 is not above 0"));
  for (const double factor : {1e9, 1000.5, -1.0, double{INFINITY}, double{NAN}}) {
    options.slow_gpus = {{1, factor}};
    EXPECT_THAT(refused(options), HasSubstr("slow_gpus: rank 1: factor "));
  }
  options = Options();
  options.nodes_per_leaf = 0;
  EXPECT_THAT(refused(options), HasSubstr("nodes_per_leaf"));
  options = Options();
  options.oversubscription = 0.5;
  EXPECT_THAT(refused(options), HasSubstr("oversubscription"));
  for (const double ratio : {1e7, double{INFINITY}, double{NAN}}) {
    options.oversubscription = ratio;
    EXPECT_THAT(refused(options), HasSubstr("oversubscription: "));
  }
}

// The question whether replicas are alike must not cost a walk over a billion GPUs, again and
// again.
TEST(FidelityTest, DoesNotWalkTheWorld) {
  const ir::Schedule schedule = Pipeline({1 << 26, 2, 8}, 8);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(WhyFoldedIsNotExact(schedule, {}), "");
}

}  // namespace
}  // namespace optimus::sim
