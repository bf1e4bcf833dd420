// Steps of small Schedules on emulated ranks of mpirun against the critical path. No operation ends
// before its nominal end, so a step is never shorter than the critical path. How much longer it is
// depends on the machine: the bound is a wide one, for the best of some steps.

#include "executor/mpi/ranks_test.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "executor/emulated/emulated_device.h"
#include "executor/runtime/run.h"
#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::executor {
namespace {

// As real ones, and unlike HandCosts: a collective of one rank is nothing.
class Costs : public ir::testing::HandCosts {
 public:
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    return group.ranks == 1 ? TransferCost{} : HandCosts::CollectiveCost(work, group);
  }
};

constexpr double kStepSeconds = 0.3;  // what the critical path is scaled to

struct Measured {
  RunResult result;
  Picoseconds critical_path;  // scaled
};

absl::StatusOr<Measured> RunEmulated(const ir::Schedule& schedule, int steps) {
  const Costs costs;
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline path, ir::CriticalPathRunner(costs).Run(schedule));
  EmulatedOptions options;
  options.time_scale = kStepSeconds / ToSeconds(path.step);
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<EmulatedDevice> device,
                           EmulatedDevice::Create(costs, options));
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> ranks,
                           MakeEmulatedCommunicator(TestWorld(), *device));
  OPTIMUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Runtime> runtime,
      Runtime::Create(schedule, TestWorld(), *device, *ranks, /*workload=*/nullptr));
  RunOptions run;
  run.warm_up = 1;
  run.steps = steps;
  Measured measured;
  const absl::Time latest = absl::Now() + absl::Seconds(120);
  OPTIMUS_ASSIGN_OR_RETURN(measured.result, Run(*runtime, TestWorld(), run, [&] {
                             if (absl::Now() < latest) return absl::OkStatus();
                             return absl::DeadlineExceededError(runtime->DescribeCurrent());
                           }));
  measured.critical_path = FromSeconds(kStepSeconds);
  return measured;
}

void ExpectNearTheCriticalPath(const ir::Schedule& schedule) {
  const absl::StatusOr<Measured> measured = RunEmulated(schedule, 5);
  ASSERT_TRUE(measured.ok()) << measured.status();
  if (TestWorld().rank() != 0) {
    return;
  }
  ASSERT_EQ(measured->result.steps.size(), 5);
  const Picoseconds best =
      *std::min_element(measured->result.steps.begin(), measured->result.steps.end());
  // Every price was rounded to a nanosecond.
  const Picoseconds rounding(2000 * static_cast<std::int64_t>(schedule.kernels.size() + 1000));
  EXPECT_GE(best + rounding, measured->critical_path);
  EXPECT_LE(ToSeconds(best), 1.3 * kStepSeconds);
}

// A random Schedule for all ranks, in nodes of one size, that takes some time.
std::optional<ir::Schedule> RandomForWorld(std::uint32_t seed) {
  ir::Schedule schedule = ir::testing::RandomSchedule(seed, seed % 2 == 1, seed % 3 == 0).Build(40);
  if (schedule.world.gpus() != TestWorld().size()) {
    return std::nullopt;
  }
  schedule.gpus_per_node = schedule.world.gpus();  // replicas are alike
  const absl::StatusOr<ir::Timeline> path = ir::CriticalPathRunner(Costs()).Run(schedule);
  if (!path.ok() || path->step < Picoseconds(100)) {
    return std::nullopt;
  }
  return schedule;
}

TEST(EmulatedRanks, OneForwardOneBackwardTakesItsCriticalPath) {
  ExpectNearTheCriticalPath(
      ir::testing::OneForwardOneBackward(TestWorld().size(), 6, 100, 200, 20));
}

TEST(EmulatedRanks, RandomSchedulesTakeTheirCriticalPath) {
  int found = 0;
  for (std::uint32_t seed = 0; found < 4 && seed < 20000; ++seed) {
    const std::optional<ir::Schedule> schedule = RandomForWorld(seed);
    if (!schedule.has_value()) {
      continue;
    }
    SCOPED_TRACE(seed);
    ++found;
    ExpectNearTheCriticalPath(*schedule);
  }
  EXPECT_EQ(found, 4);
}

// Half of the ranks are late: nominal times pass from rank to rank, so the collective ends for all
// at the same moment after the last.
TEST(EmulatedRanks, ACollectiveEndsForAllAfterTheLastIsReady) {
  const int n = TestWorld().size();
  ir::testing::ScheduleBuilder builder({1, n, 1});
  builder.schedule().gpus_per_node = n;
  const std::int32_t group = builder.AddGroup("pipeline", false, true, false);
  const std::int32_t sum = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 500, group);
  for (int stage = 0; stage < n; ++stage) {
    const std::uint32_t kernel = builder.AddKernel(stage, ir::testing::PhaseTag(Phase::kForward),
                                                   stage < n / 2 ? 1000 : 100);
    builder.AddCollective(stage, ir::Stream::kDataParallel,
                          ir::testing::PhaseTag(Phase::kGradientSync), sum, {kernel});
  }
  const ir::Schedule schedule = builder.Take();
  const absl::StatusOr<Measured> measured = RunEmulated(schedule, 3);
  ASSERT_TRUE(measured.ok()) << measured.status();
  if (TestWorld().rank() != 0) {
    return;
  }
  for (std::size_t step = 0; step < measured->result.steps.size(); ++step) {
    const auto& times = measured->result.times[step];
    // The late ranks' kernels take two thirds of the step; none's collective may end before.
    const std::int64_t all_ns = measured->critical_path.value() / 1000;
    for (int rank = 0; rank < n; ++rank) {
      EXPECT_GE(times[rank][1].end_ns - times[0][0].begin_ns, all_ns - 2);
      EXPECT_GE(times[rank][0].end_ns - times[rank][0].begin_ns,
                (rank < n / 2 ? 10 : 1) * all_ns / 15 - 1'000'000);
    }
  }
}

TEST(EmulatedRanks, ReportsAStampThatDiffers) {
  const int n = TestWorld().size();
  ir::testing::ScheduleBuilder builder({1, n, 1});
  const std::int32_t group = builder.AddGroup("pipeline", false, true, false);
  const std::int32_t sum = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 500, group);
  // Rank 0 thinks that it is about another micro-batch.
  const int micro_batch = TestWorld().rank() == 0 ? 1 : 0;
  for (int stage = 0; stage < n; ++stage) {
    builder.AddCollective(stage, ir::Stream::kDataParallel,
                          ir::testing::MakeTag(0, 0, micro_batch, Phase::kForward), sum);
  }
  const absl::StatusOr<Measured> measured = RunEmulated(builder.Take(), 1);
  EXPECT_EQ(measured.status().code(), absl::StatusCode::kDataLoss) << measured.status();
}

}  // namespace
}  // namespace optimus::executor
