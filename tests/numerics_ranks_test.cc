// A model trained by Schedules on real ranks: the runtime, the host's threads and streams, MPI.

#include <memory>
#include <string>
#include <vector>

#include "executor/cpu/cpu_device.h"
#include "executor/mpi/mpi_communicator.h"
#include "executor/mpi/ranks_test.h"
#include "executor/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tests/numerics_testing.h"

namespace optimus::executor {
namespace {

using optimus::testing::CaseOf;
using optimus::testing::NumericsCase;

constexpr char kMegatron[] = "schedule: ONE_F_ONE_B layout: EQUAL_LAYERS allow_uneven: true ";

constexpr char kTwoDirections[] = "schedule: DUALPIPE layout: EQUAL_LAYERS allow_uneven: true ";
constexpr char kV[] = "schedule: ZB_V layout: EQUAL_LAYERS allow_uneven: true ";

std::string Optimus(const std::string& scheduler, int pp, int tp,
                    const std::string& schedule = "ONE_F_ONE_B") {
  return absl::StrCat("strategy: OPTIMUS recompute: RECOMPUTE_FULL schedule: ", schedule,
                      " optimus { ", "scheduler: ", scheduler,
                      " encoder_plans { pipeline_parallel: ", pp, " tensor_parallel: ", tp, " } }");
}

// What this number of ranks can be.
std::vector<NumericsCase> Cases(int ranks) {
  if (ranks == 2) {
    return {CaseOf(1, 2, 1, kMegatron),
            CaseOf(1, 1, 2, kMegatron),
            CaseOf(2, 1, 1, kMegatron),
            CaseOf(1, 2, 1, Optimus("PAPER", 2, 1)),
            CaseOf(1, 2, 1, Optimus("LIST", 1, 1)),
            CaseOf(1, 2, 1, Optimus("LIST", 1, 1, "ZB_H1")),
            CaseOf(1, 2, 1, kV),
            CaseOf(1, 2, 1, kTwoDirections)};
  }
  if (ranks == 4) {
    return {CaseOf(1, 2, 2, kMegatron), CaseOf(1, 2, 2, Optimus("LIST", 2, 1)), CaseOf(1, 2, 2, kV),
            CaseOf(4, 1, 1, "strategy: FSDP")};
  }
  return {CaseOf(2, 2, 2, kMegatron), CaseOf(2, 2, 2, Optimus("PAPER", 2, 2)),
          CaseOf(2, 2, 2, Optimus("LIST", 1, 1))};
}

absl::StatusOr<NumericsReport> TrainOnRanks(const ir::Schedule& schedule,
                                            const NumericsModel& model, int steps) {
  MpiWorld& world = TestWorld();
  CpuDevice device(HostOptions(), /*bf16=*/false);
  OPTIMUS_ASSIGN_OR_RETURN(const auto ranks, MakeMpiCommunicator(world, device));
  OPTIMUS_ASSIGN_OR_RETURN(const auto workload,
                           MakeNumericsWorkload(schedule, world.rank(), model));
  OPTIMUS_ASSIGN_OR_RETURN(const auto runtime,
                           Runtime::Create(schedule, world, device, *ranks, workload.get()));
  const auto begin = absl::Now();
  const auto patience = [&]() -> absl::Status {
    if (absl::Now() - begin < absl::Seconds(100)) return absl::OkStatus();
    return absl::DeadlineExceededError(runtime->DescribeCurrent());
  };
  for (int step = 0; step < steps; ++step) {
    OPTIMUS_RETURN_IF_ERROR(runtime->Step(step, patience).status());
  }
  return CompareWithReference(schedule, world, *workload, model);
}

TEST(NumericsRanks, LearnWhatTheReferenceLearns) {
  for (const NumericsCase& its : Cases(TestWorld().size())) {
    const step::Experiment experiment = optimus::testing::ExperimentOf(its);
    const auto schedule = optimus::testing::ScheduleOf(experiment);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto model = optimus::testing::ModelOf(experiment);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto report = TrainOnRanks(*schedule, *model, 3);
    ASSERT_TRUE(report.ok()) << its.plan << report.status();
    if (TestWorld().rank() != 0) continue;
    ASSERT_EQ(report->losses.size(), 3U) << its.plan;
    EXPECT_LT(report->worst_loss_error, 1e-4) << its.plan;
    EXPECT_LT(report->worst_gradient_error, 1e-4) << its.plan;
  }
}

}  // namespace
}  // namespace optimus::executor
