// Measuring on real ranks: oneDNN's kernels and MPI's transfers, started by mpirun. How long
// anything takes is the machine's affair; here everything must be measured, alike at all ranks, and
// a schedule must still run afterwards.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing_kernels.h"
#include "executor/cpu/cpu_device.h"
#include "executor/measure/measure.h"
#include "executor/mpi/mpi_communicator.h"
#include "executor/mpi/ranks_test.h"
#include "executor/runtime/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

constexpr int kRepetitions = 3;
constexpr Bytes kSmallRegion(8 << 20);

// One stage a rank: kernels, an all-reduce over all, and a message to the next stage.
ir::Schedule SmallSchedule(int ranks) {
  ir::testing::ScheduleBuilder builder({1, ranks, 1});
  ir::Schedule& schedule = builder.schedule();
  Kernel norm;
  norm.kind = KernelKind::kMemoryBound;
  norm.name = "norm";
  norm.bytes = Bytes(100'000);
  Kernel attention;
  attention.kind = KernelKind::kAttention;
  attention.name = "attention";
  attention.attention = {1, 2, 2, 64, 32, true, false};
  schedule.kernels = {GemmKernel("fc1", {64, 128, 96}), GemmKernel("fc1_wgrad", {128, 96, 64}),
                      norm, attention};
  const std::int32_t all = builder.AddGroup("all", false, true, false);
  const std::int32_t sum = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 40'000, all);
  const std::int32_t activation = builder.AddTransfer("activation", 30'000, 0);
  const ir::Tag tag = ir::testing::PhaseTag(Phase::kForward);
  for (int stage = 0; stage < ranks; ++stage) {
    std::vector<std::uint32_t> before;
    if (stage > 0) {
      before = {
          builder.AddReceive(stage, ir::Stream::kForwardReceive, stage - 1, stage, activation)};
    }
    for (std::int32_t work = 0; work < 4; ++work) {
      ir::Operation op;
      op.tag = tag;
      op.work = work;
      before = {builder.Add(stage, op, before)};
    }
    if (stage + 1 < ranks) {
      builder.AddSend(stage, ir::Stream::kForwardSend, stage + 1, stage + 1, activation, before);
    }
    builder.AddCollective(stage, ir::Stream::kDataParallel, tag, sum, before);
  }
  return builder.Take();
}

void ExpectMeasured(const std::vector<double>& samples) {
  EXPECT_THAT(samples, testing::SizeIs(kRepetitions));
  for (const double sample : samples) {
    EXPECT_TRUE(std::isfinite(sample));
    EXPECT_GT(sample, 0);
  }
}

// A text of all samples: equal texts, equal samples.
std::string Text(const Samples& samples) {
  std::string text;
  const auto add = [&](const std::vector<double>& values) {
    for (const double value : values) absl::StrAppend(&text, value, " ");
  };
  for (const auto& kernel : samples.kernels_ns) add(kernel);
  for (const auto& transfer : samples.transfers_ns) {
    for (const auto& size : transfer) add(size);
  }
  add(samples.launch_ns);
  add(samples.kernel_under_nvlink);
  add(samples.collective_under_kernel);
  return text;
}

TEST(MeasureOnRanks, EverythingThatAScheduleNeeds) {
  MpiWorld& world = TestWorld();
  CpuDevice device({}, /*bf16=*/false, kSmallRegion);
  auto ranks = MakeMpiCommunicator(world, device);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  const ir::Schedule schedule = SmallSchedule(world.size());
  const MeasurePlan plan = PlanFor(schedule);
  ASSERT_THAT(plan.kernels, testing::SizeIs(4));
  const std::size_t transfers = world.size() > 1 ? 2 : 0;  // one rank moves nothing
  ASSERT_THAT(plan.transfers, testing::SizeIs(transfers));

  Samples samples;
  const absl::Status status =
      MeasureRound(plan, world, device, **ranks, kRepetitions, samples, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  for (const auto& kernel : samples.kernels_ns) ExpectMeasured(kernel);
  for (const auto& transfer : samples.transfers_ns) {
    for (const auto& size : transfer) ExpectMeasured(size);
  }
  ExpectMeasured(samples.launch_ns);
  EXPECT_TRUE(device.OutputsAreFinite());

  const auto texts = world.Gather(Text(samples));
  ASSERT_TRUE(texts.ok()) << texts.status();
  for (const std::string& text : *texts) EXPECT_EQ(text, texts->front());

  const HardwareMeasurements measured =
      Summarize(plan, samples, world, device, "cpu", "2026-01-01");
  EXPECT_THAT(measured.kernels, testing::SizeIs(4));
  EXPECT_THAT(measured.transfers, testing::SizeIs(transfers));
  EXPECT_GE(measured.interference.kernel_under_nvlink, 1);
}

TEST(MeasureOnRanks, RunningAndMeasuringTakeTurns) {
  MpiWorld& world = TestWorld();
  CpuDevice device({}, /*bf16=*/false, kSmallRegion);
  auto ranks = MakeMpiCommunicator(world, device);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  const ir::Schedule schedule = SmallSchedule(world.size());
  MeasurePlan plan = PlanFor(schedule);
  plan.transfers.clear();
  plan.interference = false;
  Samples samples;
  for (int round = 0; round < 2; ++round) {
    const absl::Status status =
        MeasureRound(plan, world, device, **ranks, kRepetitions, samples, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    auto runtime = Runtime::Create(schedule, world, device, **ranks, nullptr);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    RunOptions options;
    options.steps = 2;
    const auto run = executor::Run(**runtime, world, options, [] { return absl::OkStatus(); });
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->steps.size(), world.rank() == 0 ? 2U : 0U);
  }
  EXPECT_THAT(samples.kernels_ns[0], testing::SizeIs(2 * kRepetitions));
}

}  // namespace
}  // namespace optimus::executor
