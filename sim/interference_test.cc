// Kernels and collectives that slow each other: worked out by hand, and against a simulation of
// every GPU one picosecond after the other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fidelity.h"
#include "sim/outcome_bytes.h"
#include "sim/testing.h"
#include "sim/time_stepper.h"

namespace optimus::sim {
namespace {

using ir::Stream;
using ir::testing::PhaseTag;
using ir::testing::RandomSchedule;
using ir::testing::ScheduleBuilder;
using testing::EndOf;
using ::testing::HasSubstr;
using testing::Simulate;
using testing::WireCosts;
using testing::With;

const ir::Tag kForward = PhaseTag(Phase::kForward);
constexpr int kSeeds = 60;
constexpr int kOperations = 120;

// A kernel that is not kFixed lasts a picosecond per byte.
class SlowingCosts : public WireCosts {
 public:
  explicit SlowingCosts(Interference factors, std::int64_t latency_ps = 0)
      : WireCosts(latency_ps), factors_(factors) {}
  Picoseconds KernelTime(const Kernel& kernel) const override {
    return kernel.kind == KernelKind::kFixed ? kernel.fixed : Picoseconds(kernel.bytes.value());
  }
  Interference interference() const override { return factors_; }

 private:
  Interference factors_;
};

// The same without wires: a collective lasts a picosecond per byte and 7 for every node but one, a
// message a picosecond per byte and 5 between nodes.
class WirelessCosts : public SlowingCosts {
 public:
  using SlowingCosts::SlowingCosts;
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    if (group.ranks == 1) return {};
    const std::int64_t nodes = (group.ranks + group.ranks_per_node - 1) / group.ranks_per_node;
    return {Picoseconds(work.bytes.value() + 7 * (nodes - 1)), Bytes(0),
            nodes == 1 ? LinkScope::kNvlink : LinkScope::kNic};
  }
  TransferCost SendCost(Bytes bytes, bool same_node) const override {
    return {Picoseconds(bytes.value() + (same_node ? 0 : 5)), Bytes(0), LinkScope::kNone};
  }
};

// A kernel priced from its work, on stage 0.
std::uint32_t AddPriced(ScheduleBuilder& builder, std::int64_t duration,
                        const std::vector<std::uint32_t>& after = {}) {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.bytes = Bytes(duration);
  ir::Operation op;
  op.tag = kForward;
  op.work = static_cast<std::int32_t>(builder.schedule().kernels.size());
  builder.schedule().kernels.push_back(kernel);
  return builder.Add(0, op, after);
}

// Two GPUs of one node, or of two, each with a kernel of 100 and collectives of its tensor-parallel
// group on two streams.
struct Pair {
  explicit Pair(int gpus_per_node = 2) : builder({1, 1, 2}) {
    builder.schedule().gpus_per_node = gpus_per_node;
    group = builder.AddGroup("tp", false, false, true);
  }
  std::uint32_t Priced(std::int64_t duration, const std::vector<std::uint32_t>& after = {}) {
    return AddPriced(builder, duration, after);
  }
  std::uint32_t Collective(std::int64_t bytes, Stream stream,
                           const std::vector<std::uint32_t>& after = {}) {
    const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, bytes, group);
    return builder.AddCollective(0, stream, kForward, work, after);
  }
  ir::Timeline Run(const CostModel& costs, Options options) {
    const auto timeline = Simulate(builder.schedule(), costs, std::move(options));
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return timeline.ok() ? *timeline : ir::Timeline();
  }
  // End of an operation, the same at all granularities.
  std::int64_t End(const CostModel& costs, std::uint32_t id, bool interference = true) {
    std::int64_t end = -1;
    for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
      Options options = With(fidelity);
      options.interference = interference;
      const std::int64_t here = EndOf(builder.schedule(), Run(costs, options), 0, id);
      EXPECT_TRUE(end == -1 || end == here);
      end = here;
    }
    return end;
  }
  ScheduleBuilder builder;
  std::int32_t group = -1;
};

TEST(InterferenceTest, AKernelIsSlowerWhileACollectiveRuns) {
  Pair pair;
  const auto kernel = pair.Priced(100);
  const auto gather = pair.Collective(60, Stream::kTensorParallel);
  const WirelessCosts costs({1.5, 1, 1});
  EXPECT_EQ(pair.End(costs, kernel), 120);  // 40 of 100 done after 60
  EXPECT_EQ(pair.End(costs, gather), 60);
  EXPECT_EQ(pair.End(costs, kernel, /*interference=*/false), 100);
}

TEST(InterferenceTest, TheLinkOfTheCollectiveDecidesTheFactor) {
  Pair near(2);
  Pair far(1);
  for (Pair* pair : {&near, &far}) {
    pair->Priced(100);
    pair->Collective(1000, Stream::kTensorParallel);
  }
  const WirelessCosts costs({1.5, 1.25, 1});
  EXPECT_EQ(near.End(costs, 0), 150);
  EXPECT_EQ(far.End(costs, 0), 125);
}

TEST(InterferenceTest, UnderBothTheLargerFactorHolds) {
  ScheduleBuilder builder({2, 1, 2});
  builder.schedule().gpus_per_node = 2;
  const auto tp = builder.AddGroup("tp", false, false, true);
  const auto dp = builder.AddGroup("dp", true, false, false);
  AddPriced(builder, 300);
  builder.AddCollective(0, Stream::kTensorParallel, kForward,
                        builder.AddCollectiveWork(CollectiveKind::kAllGather, 60, tp));
  builder.AddCollective(0, Stream::kDataParallel, kForward,
                        builder.AddCollectiveWork(CollectiveKind::kAllGather, 113, dp));
  const WirelessCosts costs({2, 1.5, 1});
  for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    const auto timeline = Simulate(builder.schedule(), costs, With(fidelity));
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    // 60 / 2, then 60 / 1.5 (the second collective lasts 120), then 230 undisturbed.
    EXPECT_EQ(EndOf(builder.schedule(), *timeline, 0, 0), 120 + 230);
  }
}

TEST(InterferenceTest, FixedKernelsAreNotSlowed) {
  Pair pair;
  const auto kernel = pair.builder.AddKernel(0, kForward, 100);
  pair.Collective(60, Stream::kTensorParallel);
  EXPECT_EQ(pair.End(WirelessCosts({1.5, 1.5, 1}), kernel), 100);
}

TEST(InterferenceTest, MessagesSlowNobody) {
  ScheduleBuilder builder({1, 2, 1});
  AddPriced(builder, 100);
  const auto edge = builder.AddTransfer("edge", 50, 0);
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  for (const int node : {1, 2}) {
    builder.schedule().gpus_per_node = node;
    const auto timeline =
        Simulate(builder.schedule(), SlowingCosts({9, 9, 9}), With(Fidelity::kGpu));
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_EQ(EndOf(builder.schedule(), *timeline, 0, 0), 100);
  }
}

// The event of the first, later end is still in the queue when the kernel after it runs.
TEST(InterferenceTest, AnEndThatIsNoLongerOneIsPassedOver) {
  Pair pair;
  pair.Collective(60, Stream::kTensorParallel);
  const auto first = pair.Priced(100);  // 200 as seen at first, 130 in the end
  const auto second = pair.builder.AddKernel(0, kForward, 500, {first});  // over 200
  const auto third = pair.Priced(30, {second});
  const WirelessCosts costs({2, 1, 1});
  EXPECT_EQ(pair.End(costs, first), 130);
  EXPECT_EQ(pair.End(costs, second), 630);
  EXPECT_EQ(pair.End(costs, third), 660);
}

// Three kernels in one step: spans in it are right, and the step is as long without spans. What a
// kernel did beyond its end, less than a picosecond's worth, goes to the next.
TEST(InterferenceTest, KernelsOfOneStep) {
  Pair pair;
  for (int i = 0; i < 3; ++i) pair.Priced(10);
  pair.Collective(21, Stream::kTensorParallel);
  const WirelessCosts costs({1.5, 1, 1});
  EXPECT_EQ(pair.End(costs, 0), 15);
  EXPECT_EQ(pair.End(costs, 1), 21 + 6);  // 4 under the collective
  EXPECT_EQ(pair.End(costs, 2), 37);
  EXPECT_EQ(pair.Run(costs, With(Fidelity::kAuto, /*record_spans=*/false)).step, Picoseconds(37));
  Pair thirds;
  for (int i = 0; i < 3; ++i) thirds.Priced(1);
  thirds.Collective(100, Stream::kTensorParallel);
  const WirelessCosts thirds_costs({4.0 / 3, 1, 1});
  EXPECT_EQ(thirds.End(thirds_costs, 0), 2);
  EXPECT_EQ(thirds.End(thirds_costs, 1), 3);
  EXPECT_EQ(thirds.End(thirds_costs, 2), 4);
}

TEST(InterferenceTest, ACollectiveThatStartsUnderAKernelLastsLonger) {
  const WirelessCosts costs({1, 1, 3});
  for (const bool before : {false, true}) {  // the kernel starts before it, or with it
    Pair pair;
    const auto wait = pair.builder.AddKernel(0, kForward, 10);
    const auto gather = pair.Collective(60, Stream::kTensorParallel, {wait});
    const auto kernel =
        pair.Priced(100, before ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{wait});
    EXPECT_EQ(pair.End(costs, kernel), 110);
    EXPECT_EQ(pair.End(costs, gather), 10 + 180);
  }
  Pair after;
  const auto kernel = after.Priced(100);
  EXPECT_EQ(after.End(costs, after.Collective(60, Stream::kTensorParallel, {kernel})), 160);
  Pair network(1);  // over the network card it does not
  network.Priced(100);
  EXPECT_EQ(network.End(costs, network.Collective(60, Stream::kTensorParallel)), 67);
}

// The kernel starts in the same instant as the collective, but only after a message there and back
// that takes no time.
TEST(InterferenceTest, ACollectiveSeesWhatTheWholeInstantStarts) {
  ScheduleBuilder builder({1, 2, 2});
  builder.schedule().gpus_per_node = 4;
  const auto edge = builder.AddTransfer("free", 0, 0);
  const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, 60,
                                              builder.AddGroup("tp", false, false, true));
  const auto wait = builder.AddKernel(0, kForward, 10);
  const auto gather = builder.AddCollective(0, Stream::kTensorParallel, kForward, work, {wait});
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge, {wait});
  const auto there = builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  builder.AddSend(1, Stream::kBackwardSend, 0, 1, edge, {there});
  const auto back = builder.AddReceive(0, Stream::kBackwardReceive, 1, 1, edge);
  AddPriced(builder, 100, {back});
  for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    const auto timeline = Simulate(builder.schedule(), WirelessCosts({1, 1, 3}), With(fidelity));
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_EQ(EndOf(builder.schedule(), *timeline, 0, gather), 10 + 180);
  }
}

// A slow GPU's kernel of 100 lasts 200 there, and 1.5 times that under a collective.
TEST(InterferenceTest, FactorsOfSlowGpusMultiply) {
  Pair pair;
  const auto kernel = pair.Priced(100);
  pair.Collective(1000, Stream::kTensorParallel);
  Options options = With(Fidelity::kGpu);
  options.slow_gpus = {{0, 2.0}};
  const ir::Timeline timeline = pair.Run(WirelessCosts({1.5, 1, 1}), options);
  EXPECT_EQ(EndOf(pair.builder.schedule(), timeline, 0, kernel), 300);
  EXPECT_EQ(timeline.entities[0].account.compute, Picoseconds(300));
  EXPECT_EQ(timeline.entities[1].account.compute, Picoseconds(150));
}

TEST(InterferenceTest, RefusesFactorsOutOfRange) {
  Pair pair;
  pair.Priced(100);
  for (const Interference& factors :
       {Interference{0.9, 1, 1}, Interference{1, 11, 1}, Interference{1, 1, double{NAN}}}) {
    const WirelessCosts costs(factors);
    const auto refused = Simulate(pair.builder.schedule(), costs, {});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("not from 1 to 10"));
    Options without;
    without.interference = false;
    EXPECT_TRUE(Simulate(pair.builder.schedule(), costs, without).ok());
  }
}

// Random schedules, every second kernel priced from its work; odd seeds with encoders on lanes.
ir::Schedule RandomPriced(std::uint32_t seed) {
  ir::Schedule schedule = RandomSchedule(seed, seed % 2 == 1).Build(kOperations);
  for (std::size_t k = seed / 2 % 2; k < schedule.kernels.size(); k += 2) {
    schedule.kernels[k].kind = KernelKind::kMemoryBound;
    schedule.kernels[k].bytes = Bytes(schedule.kernels[k].fixed.value());
    schedule.kernels[k].fixed = Picoseconds(0);
  }
  return schedule;
}

void ExpectSpansOf(const testing::TimeStepper& twin, const ir::Timeline& timeline) {
  for (const ir::Span& span : timeline.spans) {
    ASSERT_EQ(span.start.value(), twin.start(span.rank, span.operation))
        << "rank " << span.rank << " operation " << span.operation;
    ASSERT_EQ(span.end.value(), twin.end(span.rank, span.operation))
        << "rank " << span.rank << " operation " << span.operation;
  }
}

TEST(InterferenceTest, EqualsASimulationByPicoseconds) {
  int slower = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Schedule schedule = RandomPriced(seed);
    const double collective_factor = seed % 3 == 0 ? 1.0 : 1.7;
    Interference factors = testing::kTwinFactors;
    factors.collective_under_kernel = collective_factor;
    const WirelessCosts costs(factors);
    Options options = With(Fidelity::kAuto);
    if (seed % 5 == 0) options.slow_gpus = {{0, 1.7}};
    const auto timeline = Simulate(schedule, costs, options);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    testing::TimeStepper twin(schedule, costs, collective_factor, seed % 5 == 0 ? 0 : -1, 1.7);
    twin.Run();
    ExpectSpansOf(twin, *timeline);
    options.interference = false;
    const auto without = Simulate(schedule, costs, options);
    ASSERT_TRUE(without.ok()) << without.status();
    if (without->step < timeline->step) ++slower;
  }
  EXPECT_GT(slower, kSeeds / 2);
}

// Links that are shared at the same time. The last run has the whole network of single GPUs.
TEST(InterferenceTest, FoldedGroupAndGpuAreTheSame) {
  int exact = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ir::Schedule schedule = RandomPriced(seed);
    schedule.gpus_per_node = schedule.world.tp * static_cast<int>(1 + seed / 2 % 2);
    if (!WhyFoldedIsNotExact(schedule, {}).empty()) continue;
    ++exact;
    const SlowingCosts costs({1.189, 1.06, seed % 3 == 0 ? 1.0 : 1.3}, seed % 4 == 0 ? 0 : 5);
    const auto folded = Simulate(schedule, costs, With(Fidelity::kFolded));
    ASSERT_TRUE(folded.ok()) << folded.status();
    Options every_gpu = With(Fidelity::kGpu);
    every_gpu.slow_gpus = {{0, 1.0 + 1e-9}};
    for (const Options& options : {With(Fidelity::kGroup), With(Fidelity::kGpu), every_gpu}) {
      const auto timeline = Simulate(schedule, costs, options);
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      EXPECT_EQ(timeline->spans, folded->spans);
      for (const ir::EntityAccount& entity : timeline->entities) {
        const int program = ir::ProgramIndex(schedule, entity.stage, entity.lane);
        EXPECT_EQ(entity.account, folded->entities[program].account) << "rank " << entity.rank;
        EXPECT_EQ(entity.account.total(), timeline->step) << "rank " << entity.rank;
      }
    }
    const auto unrecorded = Simulate(schedule, costs, With(Fidelity::kGroup, false));
    ASSERT_TRUE(unrecorded.ok()) << unrecorded.status();
    EXPECT_EQ(unrecorded->step, folded->step);
  }
  EXPECT_GT(exact, kSeeds / 2);
}

TEST(InterferenceTest, FactorsOfOneAndSwitchedOffAreTheSameBytes) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const ir::Schedule schedule = RandomPriced(seed);
    Options off = With(Fidelity::kAuto);
    off.interference = false;
    const auto without = Simulate(schedule, SlowingCosts({1.5, 1.2, 1.1}), off);
    const auto ones = Simulate(schedule, SlowingCosts({1, 1, 1}), With(Fidelity::kAuto));
    ASSERT_TRUE(without.ok() && ones.ok()) << without.status() << ones.status();
    EXPECT_EQ(ToBytes({*without, {}}), ToBytes({*ones, {}}));
  }
}

}  // namespace
}  // namespace optimus::sim
