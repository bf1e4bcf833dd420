#include "executor/runtime/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "executor/runtime/testing.h"
#include "executor/runtime/times_codec.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

using testing::Cluster;
using testing::FakeRank;
using testing::GiveUp;
using testing::OnAllRanks;

// Notes in which steps kernels ran.
class NotingWorkload : public Workload {
 public:
  absl::Status Begin(int step) override {
    steps.push_back(step);
    return absl::OkStatus();
  }
  absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t /*operation*/) override {
    return [] { return absl::OkStatus(); };
  }
  absl::StatusOr<Payload> Data(std::uint32_t /*operation*/) override { return Payload(); }
  std::vector<int> steps;
};

TEST(RunTest, GathersTheMeasuredStepsOfAllRanksAtRankZero) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(3, 4, 10, 20, 5);
  Cluster cluster(3);
  std::vector<RunResult> results(3);
  std::vector<NotingWorkload> workloads(3);
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    const int rank = its.world.rank();
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, &workloads[rank]);
    if (!runtime.ok()) return runtime.status();
    const RunOptions options{.warm_up = 1, .steps = 3, .first_step = 5};
    absl::StatusOr<RunResult> result = executor::Run(**runtime, its.world, options, GiveUp());
    if (!result.ok()) return result.status();
    results[rank] = *std::move(result);
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) ASSERT_TRUE(status.ok()) << status;
  for (const NotingWorkload& workload : workloads) {
    EXPECT_THAT(workload.steps, ::testing::ElementsAre(5, 6, 7, 8));
  }
  EXPECT_TRUE(results[1].steps.empty());
  EXPECT_TRUE(results[2].times.empty());
  const RunResult& result = results[0];
  EXPECT_THAT(result.ranks, ::testing::ElementsAre(0, 1, 2));
  ASSERT_EQ(result.steps.size(), 3);
  ASSERT_EQ(result.times.size(), 3);
  std::int64_t previous_end = 0;
  for (std::size_t step = 0; step < 3; ++step) {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = 0;
    ASSERT_EQ(result.times[step].size(), 3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(result.times[step][rank].size(), schedule.programs[rank].operations.size());
      for (const OperationTime& time : result.times[step][rank]) {
        begin = std::min(begin, time.begin_ns);
        end = std::max(end, time.end_ns);
      }
    }
    EXPECT_EQ(result.steps[step], Picoseconds((end - begin) * 1000));
    EXPECT_GT(begin, previous_end);  // a barrier lies between steps
    previous_end = end;
  }
}

// Ends are late by 100 ns a rank, those of operation 2 by 50 ns more; begins are on time.
TEST(RunTest, LatenessIsTheWorstOfAllRanksAndComputingTheirMean) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(3, 4, 10, 20, 5);
  Cluster cluster(3);
  RunResult result;
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    const int rank = its.world.rank();
    its.device.nominal = [rank](std::int64_t time_ns, Event event) {
      if (event % 2 == 0) return time_ns;
      return time_ns - std::int64_t{100} * (rank + 1) - (event == EndEvent(2) ? 50 : 0);
    };
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, /*workload=*/nullptr);
    if (!runtime.ok()) return runtime.status();
    const RunOptions options{.warm_up = 0, .steps = 2};
    absl::StatusOr<RunResult> its_result = executor::Run(**runtime, its.world, options, GiveUp());
    if (!its_result.ok()) return its_result.status();
    if (rank == 0) result = *std::move(its_result);
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(result.lateness.size(), 2);
  for (std::size_t step = 0; step < 2; ++step) {
    EXPECT_EQ(result.lateness[step].late, Picoseconds(350'000));
    std::int64_t compute_ns = 0, nominal_end_ns = 0;
    std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const std::vector<ir::Operation>& operations = schedule.programs[rank].operations;
      for (std::uint32_t id = 0; id < operations.size(); ++id) {
        const OperationTime& time = result.times[step][rank][id];
        const std::int64_t end_ns =
            time.end_ns - 100 * (static_cast<std::int64_t>(rank) + 1) - (id == 2 ? 50 : 0);
        begin_ns = std::min(begin_ns, time.begin_ns);
        nominal_end_ns = std::max(nominal_end_ns, end_ns);
        if (ir::IsCompute(operations[id])) compute_ns += end_ns - time.begin_ns;
      }
    }
    EXPECT_EQ(result.lateness[step].step, Picoseconds(1000 * (nominal_end_ns - begin_ns)));
    EXPECT_EQ(result.lateness[step].compute, Picoseconds(1000 * (compute_ns / 3)));
  }
}

TEST(RunTest, WithoutNominalTimesNothingIsLate) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(1, 2, 10, 20, 5);
  Cluster cluster(1);
  RunResult result;
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, /*workload=*/nullptr);
    if (!runtime.ok()) return runtime.status();
    absl::StatusOr<RunResult> its_result =
        executor::Run(**runtime, its.world, {.warm_up = 0, .steps = 1}, GiveUp());
    if (!its_result.ok()) return its_result.status();
    result = *std::move(its_result);
    return absl::OkStatus();
  });
  ASSERT_TRUE(statuses.front().ok()) << statuses.front();
  ASSERT_EQ(result.lateness.size(), 1);
  EXPECT_EQ(result.lateness[0].late, Picoseconds(0));
  EXPECT_EQ(result.lateness[0].step, Picoseconds(0));
  EXPECT_EQ(result.lateness[0].compute, Picoseconds(0));
}

TEST(RunTest, MedianStepIsTheLowerOfTwo) {
  auto median = [](const std::vector<std::int64_t>& lengths) {
    std::vector<Picoseconds> steps(lengths.size());
    std::transform(lengths.begin(), lengths.end(), steps.begin(),
                   [](std::int64_t length) { return Picoseconds(length); });
    return MedianStep(steps);
  };
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 0);
  EXPECT_EQ(median({9, 4}), 1);
  EXPECT_EQ(median({9, 4, 6}), 2);
  EXPECT_EQ(median({9, 4, 6, 5}), 3);
  EXPECT_EQ(median({5, 5, 5}), 1);
}

TEST(TimesCodecTest, BringsBackWhatItWasGiven) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<OperationTime> times(random() % 40);
    for (OperationTime& time : times) {
      const int shift = static_cast<int>(random() % 62);
      time.begin_ns = static_cast<std::int64_t>(random() >> (1 + shift));
      time.end_ns = time.begin_ns + static_cast<std::int64_t>(random() % 5000) - 100;
    }
    const std::string bytes = EncodeTimes(times);
    const absl::StatusOr<std::vector<OperationTime>> decoded = DecodeTimes(bytes, times.size());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ((*decoded)[i].begin_ns, times[i].begin_ns);
      EXPECT_EQ((*decoded)[i].end_ns, times[i].end_ns);
    }
    EXPECT_TRUE(absl::IsDataLoss(DecodeTimes(bytes, times.size() + 1).status()));
    if (times.empty()) continue;
    EXPECT_TRUE(absl::IsDataLoss(DecodeTimes(bytes, times.size() - 1).status()));
    const std::string cut = bytes.substr(0, bytes.size() - 1);
    EXPECT_TRUE(absl::IsDataLoss(DecodeTimes(cut, times.size()).status()));
  }
}

TEST(TimesCodecTest, TakesFewBytesAnOperation) {
  std::vector<OperationTime> times;
  for (std::int64_t i = 0; i < 1000; ++i) {
    times.push_back({1'000'000'000'000 + 50'000 * i, 1'000'000'000'000 + 50'000 * i + 45'000});
  }
  EXPECT_LE(EncodeTimes(times).size(), 6 * times.size() + 8);
}

}  // namespace
}  // namespace optimus::executor
