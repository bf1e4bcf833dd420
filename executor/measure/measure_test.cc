#include "executor/measure/measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/testing_kernels.h"
#include "executor/measure/probes.h"
#include "executor/measure/testing_virtual.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using executor::testing::RunRanks;
using executor::testing::VirtualCluster;
using executor::testing::VirtualRank;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kRepetitions = 5;

std::vector<Bytes> Sizes(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

// Of rank 0, after all other ranks were found to have the same.
Samples Measure(VirtualCluster& cluster, int per_node, const MeasurePlan& plan) {
  std::vector<Samples> samples(cluster.devices.size());
  RunRanks(cluster, per_node, [&](VirtualRank rank) {
    Samples& mine = samples[static_cast<std::size_t>(rank.world.rank())];
    const absl::Status status =
        MeasureRound(plan, rank.world, rank.device, rank.ranks, kRepetitions, mine);
    EXPECT_TRUE(status.ok()) << status;
  });
  for (const Samples& other : samples) {
    EXPECT_EQ(other.kernels_ns, samples[0].kernels_ns);
    EXPECT_EQ(other.transfers_ns, samples[0].transfers_ns);
    EXPECT_EQ(other.launch_ns, samples[0].launch_ns);
    EXPECT_EQ(other.kernel_under_nvlink, samples[0].kernel_under_nvlink);
  }
  return samples[0];
}

TEST(Measure, KernelsTakeFromEndToEnd) {
  VirtualCluster cluster(2);
  cluster.costs.launch = 7;
  // Rank 1 is slower by 200 ns; the first launches of all are slow.
  cluster.costs.kernel = [](const Kernel& kernel, int rank, int nth) -> std::int64_t {
    if (kernel.kind == KernelKind::kFixed) return 0;
    return kernel.bytes.value() + std::int64_t{200} * rank + (nth < 3 ? 100'000 : 0);
  };
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(1000), MemoryBoundKernel(3000)};
  const Samples samples = Measure(cluster, 2, plan);
  ASSERT_THAT(samples.kernels_ns, SizeIs(2));
  EXPECT_THAT(samples.kernels_ns[0], ElementsAre(1107, 1107, 1107, 1107, 1107));
  EXPECT_THAT(samples.kernels_ns[1], ElementsAre(3107, 3107, 3107, 3107, 3107));
  EXPECT_THAT(samples.launch_ns, ElementsAre(7, 7, 7, 7, 7));
}

TEST(Measure, ManyKernelsInSeveralSteps) {
  VirtualCluster cluster(1);
  cluster.costs.kernel = [](const Kernel& kernel, int, int) { return kernel.bytes.value(); };
  MeasurePlan plan;
  for (int i = 0; i < 2000; ++i) plan.kernels.push_back(MemoryBoundKernel(10 + i));
  const Samples samples = Measure(cluster, 1, plan);
  for (int i = 0; i < 2000; ++i) EXPECT_THAT(samples.kernels_ns[i], Each(10 + i));
  EXPECT_EQ(cluster.steps, 4);  // 12000 launches, at most 4096 a step, and the empty kernels
}

// In a node of 4: groups of neighbours. The slower group counts as much as the faster.
TEST(Measure, CollectivesOfAllGroupsAtOnce) {
  VirtualCluster cluster(4);
  cluster.costs.wake = 50;
  cluster.costs.collective = [](const CollectiveWork& work,
                                const std::vector<std::int32_t>& ranks) -> std::int64_t {
    if (work.name == "gathering") return 3;
    EXPECT_EQ(work.kind, CollectiveKind::kAllGather);
    EXPECT_THAT(ranks, SizeIs(2));
    EXPECT_EQ(ranks[1], ranks[0] + 1);
    return work.bytes.value() + std::int64_t{100} * ranks[0];  // 0 and 200
  };
  MeasurePlan plan;
  plan.transfers = {
      {false, CollectiveKind::kAllGather, LinkScope::kNvlink, {2, 2}, Sizes({1000, 5000})}};
  const Samples samples = Measure(cluster, 4, plan);
  ASSERT_THAT(samples.transfers_ns, SizeIs(1));
  ASSERT_THAT(samples.transfers_ns[0], SizeIs(2));
  // Both ends are waited for: the communication stream for the compute stream, and back.
  EXPECT_THAT(samples.transfers_ns[0][0], ElementsAre(1200, 1200, 1200, 1200, 1200));
  EXPECT_THAT(samples.transfers_ns[0][1], ElementsAre(5200, 5200, 5200, 5200, 5200));
}

// A member that comes late to the collective does not make it longer.
TEST(Measure, CollectivesCountFromTheLastMember) {
  VirtualCluster cluster(2);
  cluster.costs.kernel = [](const Kernel& kernel, int rank, int) {
    return kernel.name == "moment" ? 10'000 * rank : 0;
  };
  cluster.costs.collective = [](const CollectiveWork& work, const std::vector<std::int32_t>&) {
    return work.name == "gathering" ? 0 : work.bytes.value();
  };
  MeasurePlan plan;
  plan.transfers = {{false, CollectiveKind::kBroadcast, LinkScope::kNvlink, {2, 2}, Sizes({1000})}};
  EXPECT_THAT(Measure(cluster, 2, plan).transfers_ns[0][0], Each(1000));
}

// Two nodes of 4, groups with two members in each.
TEST(Measure, GroupsBetweenNodes) {
  VirtualCluster cluster(8);
  cluster.costs.collective = [](const CollectiveWork& work,
                                const std::vector<std::int32_t>& ranks) -> std::int64_t {
    EXPECT_THAT(ranks, SizeIs(4));
    EXPECT_EQ(std::count_if(ranks.begin(), ranks.end(), [](int r) { return r < 4; }), 2);
    return work.bytes.value();
  };
  MeasurePlan plan;
  plan.transfers = {
      {false, CollectiveKind::kReduceScatter, LinkScope::kNic, {4, 2}, Sizes({1 << 20})}};
  EXPECT_THAT(Measure(cluster, 4, plan).transfers_ns[0][0], Each(1 << 20));
}

TEST(Measure, MessagesAreHalfOfARoundTrip) {
  VirtualCluster cluster(4);
  cluster.costs.wake = 30;
  // There and back differ; pairs are (0, 1) and (2, 3).
  cluster.costs.message = [](Bytes bytes, int from, int to) -> std::int64_t {
    EXPECT_EQ(from / 2, to / 2);
    return bytes.value() + (from < to ? 400 : 600);
  };
  // What the ends do in between is not counted.
  cluster.costs.kernel = [](const Kernel&, int, int) { return 12'345; };
  MeasurePlan plan;
  plan.transfers = {
      {true, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, Sizes({1000, 2000})}};
  const Samples samples = Measure(cluster, 4, plan);
  EXPECT_THAT(samples.transfers_ns[0][0], ElementsAre(1560, 1560, 1560, 1560, 1560));
  EXPECT_THAT(samples.transfers_ns[0][1], ElementsAre(2560, 2560, 2560, 2560, 2560));
}

TEST(Measure, MessagesBetweenNodes) {
  VirtualCluster cluster(6);
  cluster.costs.message = [](Bytes bytes, int from, int to) -> std::int64_t {
    EXPECT_EQ(std::abs(from - to), 3);
    return bytes.value();
  };
  MeasurePlan plan;
  plan.transfers = {{true, CollectiveKind::kAllReduce, LinkScope::kNic, {2, 1}, Sizes({77})}};
  EXPECT_THAT(Measure(cluster, 3, plan).transfers_ns[0][0], Each(77));
}

// A schedule for two nodes run on one: what it will find there is what counts.
TEST(Measure, TransfersOfOtherNodesAreMeasuredWhereWeAre) {
  VirtualCluster cluster(2);
  cluster.costs.message = [](Bytes bytes, int, int) { return bytes.value(); };
  cluster.costs.collective = [](const CollectiveWork& work, const std::vector<std::int32_t>&) {
    return work.bytes.value();
  };
  MeasurePlan plan;
  plan.transfers = {{true, CollectiveKind::kAllReduce, LinkScope::kNic, {2, 1}, Sizes({77})},
                    {false, CollectiveKind::kAllToAll, LinkScope::kNic, {2, 1}, Sizes({99})}};
  const Samples samples = Measure(cluster, 2, plan);
  EXPECT_THAT(samples.transfers_ns[0][0], Each(77));
  EXPECT_THAT(samples.transfers_ns[1][0], Each(99));
}

TEST(Measure, GroupsThatDoNotFitAreRefused) {
  VirtualCluster cluster(2);
  MeasurePlan plan;
  plan.transfers = {{false, CollectiveKind::kAllGather, LinkScope::kNvlink, {4, 4}, Sizes({1000})}};
  RunRanks(cluster, 2, [&](VirtualRank rank) {
    Samples samples;
    const absl::Status status = MeasureRound(plan, rank.world, rank.device, rank.ranks, 1, samples);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("all_gather over 4 ranks (in a node) cannot be measured by 2 ranks"));
    EXPECT_FALSE(MeasureRound(plan, rank.world, rank.device, rank.ranks, 0, samples).ok());
  });
}

TEST(Measure, RoundsAddUp) {
  VirtualCluster cluster(1);
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(10)};
  Samples samples;
  RunRanks(cluster, 1, [&](VirtualRank rank) {
    for (const std::int64_t duration : {10, 20}) {
      cluster.costs.kernel = [=](const Kernel&, int, int) { return duration; };
      EXPECT_TRUE(MeasureRound(plan, rank.world, rank.device, rank.ranks, 2, samples).ok());
    }
  });
  EXPECT_THAT(samples.kernels_ns[0], ElementsAre(10, 10, 20, 20));
}

TEST(Measure, AnErrorWhileWaitingEndsIt) {
  const MeasurePlan plan;
  VirtualCluster cluster(1);
  RunRanks(cluster, 1, [&](VirtualRank rank) {
    Samples samples;
    int asked = 0;
    const auto measure = [&](int patience) {
      asked = 0;
      return MeasureRound(plan, rank.world, rank.device, rank.ranks, 1, samples, [&] {
        return ++asked > patience ? absl::AbortedError("rank 7 is gone") : absl::OkStatus();
      });
    };
    EXPECT_TRUE(measure(100).ok());
    EXPECT_EQ(asked, 1);  // the step of empty kernels
    EXPECT_EQ(measure(0), absl::AbortedError("rank 7 is gone"));
  });
}

// While a step runs it is said what is measured, and what of it has ended.
TEST(Measure, IsFollowed) {
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(10)};
  VirtualCluster cluster(1);
  RunRanks(cluster, 1, [&](VirtualRank rank) {
    Samples samples;
    std::vector<std::string> phases;
    std::vector<std::string> current;
    std::function<std::string()> now;
    const auto tick = [&] {
      if (now) current.push_back(now());
      return absl::OkStatus();
    };
    const auto follow = [&](const std::string& what, std::function<std::string()> text,
                            const std::function<std::int64_t()>& progress) {
      phases.push_back(what);
      EXPECT_EQ(text == nullptr, progress == nullptr);
      now = std::move(text);
    };
    EXPECT_TRUE(
        MeasureRound(plan, rank.world, rank.device, rank.ranks, 1, samples, tick, follow).ok());
    EXPECT_THAT(phases, ElementsAre("measures kernels", "between two measurements",
                                    "measures kernels", "between two measurements"));
    ASSERT_FALSE(current.empty());
    EXPECT_THAT(current.front(), ::testing::StartsWith("compute: "));
  });
}

// Virtual ranks know no interference: the factors are 1, exactly.
TEST(Measure, InterferenceOfThoseWhoDoNotDisturbEachOther) {
  VirtualCluster cluster(2);
  cluster.costs.kernel = [](const Kernel& kernel, int, int) { return kernel.bytes.value(); };
  cluster.costs.collective = [](const CollectiveWork& work, const std::vector<std::int32_t>&) {
    return work.bytes.value();
  };
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(1000)};
  plan.transfers = {{false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, Sizes({300})}};
  plan.interference = true;
  const Samples samples = Measure(cluster, 2, plan);
  EXPECT_THAT(samples.kernel_under_nvlink, ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(samples.collective_under_kernel, ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(samples.kernel_under_nic, IsEmpty());
}

// Sizes that are only there for the fit change nothing, unless the schedule moves next to nothing.
TEST(Measure, InterferenceOfWhatTheScheduleMoves) {
  const auto disturbed_with = [](std::int64_t used) {
    VirtualCluster cluster(2);
    // Later than any single measurement, the probe repeats one size more often than all others.
    std::mutex mutex;
    std::map<std::int64_t, int> count;
    cluster.costs.kernel = [](const Kernel& kernel, int, int) { return kernel.bytes.value(); };
    cluster.costs.collective = [&](const CollectiveWork& work, const std::vector<std::int32_t>&) {
      const std::lock_guard lock(mutex);
      if (work.name != "gathering") ++count[work.bytes.value()];
      return work.bytes.value();
    };
    MeasurePlan plan;
    plan.kernels = {MemoryBoundKernel(1000)};
    plan.transfers = {{false,
                       CollectiveKind::kAllReduce,
                       LinkScope::kNvlink,
                       {2, 2},
                       Sizes({300, 70'000, 1 << 20}),
                       Bytes(used)}};
    plan.interference = true;
    Measure(cluster, 2, plan);
    return std::max_element(count.begin(), count.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  };
  EXPECT_EQ(disturbed_with(70'000), 70'000);
  EXPECT_EQ(disturbed_with(300), 1 << 20);
  EXPECT_EQ(disturbed_with(0), 1 << 20);  // not said: the largest
}

TEST(Summarize, MediansAndQuartiles) {
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(1), MemoryBoundKernel(2)};
  plan.transfers = {
      {false, CollectiveKind::kAllReduce, LinkScope::kNic, {4, 2}, Sizes({100, 200})}};
  Samples samples;
  samples.kernels_ns = {{10, 1000, 20, 30, 40}, {}};
  samples.transfers_ns = {{{7, 9}, {}}};
  samples.launch_ns = {0.5, 0.75, 0.25};
  samples.kernel_under_nvlink = {1.5, 1.25, 9};
  samples.kernel_under_nic = {0.5};
  VirtualCluster cluster(2);
  RunRanks(cluster, 2, [&](VirtualRank rank) {
    const HardwareMeasurements measured =
        Summarize(plan, samples, rank.world, rank.device, "cpu", "2026-01-02");
    EXPECT_EQ(measured.backend, "cpu");
    EXPECT_EQ(measured.device, "virtual");
    EXPECT_EQ(measured.host, "fake");
    EXPECT_EQ(measured.date, "2026-01-02");
    EXPECT_EQ(measured.ranks, 2);
    EXPECT_EQ(measured.ranks_per_node, 2);
    EXPECT_EQ(measured.memory, Bytes(std::int64_t{4} << 30));  // half of the node's
    ASSERT_THAT(measured.kernels, SizeIs(1));                  // the other was not measured
    EXPECT_EQ(measured.kernels[0].kernel, plan.kernels[0]);
    EXPECT_EQ(measured.kernels[0].time,
              (MeasuredTime{Picoseconds(30'000), Picoseconds(20'000), 5}));
    ASSERT_THAT(measured.transfers, SizeIs(1));
    EXPECT_EQ(measured.transfers[0].group.ranks, 4);
    ASSERT_THAT(measured.transfers[0].points, SizeIs(1));
    EXPECT_EQ(measured.transfers[0].points[0].bytes, Bytes(100));
    EXPECT_EQ(measured.transfers[0].points[0].time,
              (MeasuredTime{Picoseconds(8000), Picoseconds(1000), 2}));
    EXPECT_EQ(measured.launch, (MeasuredTime{Picoseconds(500), Picoseconds(250), 3}));
    EXPECT_EQ(measured.interference.kernel_under_nvlink, 1.5);
    EXPECT_EQ(measured.interference.kernel_under_nic, 1);  // never below
    EXPECT_EQ(measured.interference.collective_under_kernel, 1);
    EXPECT_EQ(measured.interference_repetitions.kernel_under_nvlink, 3);
    EXPECT_EQ(measured.interference_repetitions.kernel_under_nic, 1);
    EXPECT_EQ(measured.interference_repetitions.collective_under_kernel, 0);
    EXPECT_EQ(Summarize(plan, samples, rank.world, rank.device, "cuda", "").memory,
              Bytes(std::int64_t{8} << 30));  // every rank has a GPU of its own
  });
}

}  // namespace
}  // namespace optimus::executor
