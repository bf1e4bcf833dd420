#include "traces/replay/what_if.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "traces/replay/price.h"
#include "traces/replay/testing.h"

namespace optimus::traces {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A picosecond a byte times `nic_factor` between nodes of two; kernels a picosecond per byte or
// FLOP.
class Costs : public CostModel {
 public:
  explicit Costs(double nic_factor) : nic_factor_(nic_factor) {}
  Picoseconds KernelTime(const Kernel& kernel) const override {
    return kernel.kind == KernelKind::kGemm
               ? Picoseconds(static_cast<std::int64_t>(kernel.flops.value()))
               : Picoseconds(kernel.bytes.value());
  }
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    return Cost(work.bytes, group.ranks == group.ranks_per_node);
  }
  TransferCost SendCost(Bytes bytes, bool same_node) const override {
    return Cost(bytes, same_node);
  }
  BytesPerSecond LinkBandwidth(LinkScope /*scope*/) const override { return BytesPerSecond(1e12); }
  int gpus_per_node() const override { return 2; }

 private:
  TransferCost Cost(Bytes bytes, bool same_node) const {
    const double factor = same_node ? 1 : nic_factor_;
    return {Picoseconds(RoundSaturated(factor * static_cast<double>(bytes.value()))), Bytes(0),
            LinkScope::kNone};
  }
  double nic_factor_;
};

// Four ranks; each has a kernel of 100 and then an all-reduce of `first` and one of all.
Recording TwoGroups() {
  RecordingBuilder b;
  for (int rank = 0; rank < 4; ++rank) b.Rank(rank, {"compute", "nccl"});
  const std::int32_t pairs[] = {b.Group("a", {0, 1}, "tp"), b.Group("b", {2, 3}, "tp")};
  const std::int32_t all = b.Group("all", {0, 1, 2, 3}, "dp");
  for (int rank = 0; rank < 4; ++rank) {
    const auto kernel = b.Op(rank, 0, "k", 0, 100);
    b.Communicate(rank, 1, CommunicationKind::kAllReduce, pairs[rank / 2], 100, 300, -1, {kernel});
    b.Communicate(rank, 1, CommunicationKind::kAllReduce, all, 300, 700);
  }
  return b.recording();
}

Picoseconds StepOf(const ReplayGraph& graph, const WhatIf& what_if) {
  const auto applied = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  EXPECT_TRUE(applied.ok()) << applied.status();
  return Replay(graph, applied->durations).step;
}

TEST(Apply, ScalesRecordedTimesByTheRatioOfPrices) {
  const ReplayGraph graph = *Rebuild(TwoGroups());
  const Costs before(4), after(1);  // the NIC is four times as fast
  WhatIf what_if;
  what_if.before = &before;
  what_if.after = &after;
  EXPECT_EQ(StepOf(graph, what_if),
            Picoseconds(100 + 200 + 100));  // groups in a node are as before
}

TEST(Apply, KeepsTimesOfUnknownSize) {
  Recording recording = TwoGroups();
  for (RecordedRank& rank : recording.ranks) rank.communications[1].bytes = Bytes(-1);
  const ReplayGraph graph = *Rebuild(recording);
  const Costs before(4), after(1);
  WhatIf what_if;
  what_if.before = &before;
  what_if.after = &after;
  const auto applied = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(Replay(graph, applied->durations).step, Picoseconds(700));
  ASSERT_THAT(applied->kept, SizeIs(1));
  EXPECT_EQ(applied->kept[0].what, "all_reduce of unknown size");
  EXPECT_EQ(applied->kept[0].count, 1);  // one transfer, not four kernels
  EXPECT_EQ(applied->kept[0].time, Picoseconds(400));
}

TEST(Apply, DropsByRoleKindAndClass) {
  const ReplayGraph graph = *Rebuild(TwoGroups());
  for (const auto& [selector, step] : std::vector<std::pair<std::string, std::int64_t>>{
           {"dp", 300}, {"tp", 500}, {"all_reduce", 100}, {"dp all_reduce", 300}, {"all", 100}}) {
    WhatIf what_if;
    what_if.drop = {selector};
    EXPECT_EQ(StepOf(graph, what_if), Picoseconds(step)) << selector;
  }
}

TEST(Apply, NamesWhatThereIsToDrop) {
  const ReplayGraph graph = *Rebuild(TwoGroups());
  WhatIf what_if;
  what_if.drop = {"ep"};
  const auto applied = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(applied.status().message(),
              AllOf(HasSubstr("'ep'"), HasSubstr("dp, dp all_reduce, tp, tp all_reduce")));
}

TEST(Apply, RefusesAStragglerThatWasNotRecorded) {
  const ReplayGraph graph = *Rebuild(TwoGroups());
  WhatIf what_if;
  what_if.stragglers = {{7, 1.5}};
  const auto applied = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(applied.status().message(),
              HasSubstr("rank 7 was not recorded; the trace has 4 ranks, from 0 to 3"));
}

TEST(Apply, RefusesStepsThatPicosecondsCannotCount) {
  Recording recording = TwoGroups();
  for (int rank = 0; rank < 2; ++rank) {
    recording.ranks[rank].ops[0].end = Picoseconds(900'000'000'000'000'000);  // 10 days
  }
  const auto graph = Rebuild(recording);
  ASSERT_TRUE(graph.ok()) << graph.status();
  WhatIf what_if;
  what_if.compute_scale = 1000;
  const auto applied = Apply(*graph, ClassesOf(*graph), what_if, RecordedDurations(*graph));
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(applied.status().message(), HasSubstr("46 days"));
}

// A trace without times (ASTRA-sim's): work is priced, order is kept.
TEST(PriceUntimed, PricesKernelsAndCollectives) {
  Recording recording = TwoGroups();
  for (RecordedRank& rank : recording.ranks) {
    for (RecordedOp& op : rank.ops) op.start = op.end = kUntimed;
    rank.works = {{50.0, Bytes(70)}};
    rank.ops[0].work = 0;
    rank.communications[0].bytes = Bytes(10);
    rank.communications[1].bytes = Bytes(5);
    rank.step_end = Picoseconds(0);
  }
  const ReplayGraph graph = *Rebuild(recording);
  EXPECT_FALSE(graph.timed);
  const Costs costs(4);
  const auto durations = PriceUntimed(graph, costs);
  ASSERT_TRUE(durations.ok()) << durations.status();
  EXPECT_EQ(Replay(graph, *durations).step, Picoseconds(70 + 10 + 20));
}

TEST(PriceUntimed, NamesWhatCannotBePriced) {
  Recording recording = TwoGroups();
  for (RecordedRank& rank : recording.ranks) {
    for (RecordedOp& op : rank.ops) op.start = op.end = kUntimed;
    rank.communications[0].kind = CommunicationKind::kUnknown;
  }
  const ReplayGraph graph = *Rebuild(recording);
  const auto durations = PriceUntimed(graph, Costs(4));
  ASSERT_FALSE(durations.ok());
  EXPECT_THAT(durations.status().message(),
              AllOf(HasSubstr("rank 0"), HasSubstr("no recorded time"), HasSubstr("unknown type")));
}

}  // namespace
}  // namespace optimus::traces
