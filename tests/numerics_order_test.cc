// Whether a wrong order is noticed, and whether the right one is all that the Schedule promises.

#include <algorithm>
#include <string>
#include <vector>

#include "executor/runtime/runtime.h"
#include "executor/runtime/testing.h"
#include "gmock/gmock.h"
#include "tests/numerics_testing.h"

namespace optimus {
namespace {

using executor::NumericsModel;
using ::testing::HasSubstr;
using testing::NumericsCase;
using testing::NumericsEngine;

struct Named {
  std::string name;
  ir::Schedule schedule;
  NumericsModel model;
};

NumericsCase CaseOf(int dp, int pp, int tp, const std::string& plan, int slice = 2) {
  NumericsCase its;
  its.dp = dp;
  its.pp = pp;
  its.tp = tp;
  its.micro_batches = 2;
  its.plan = plan;
  its.encoders = {absl::StrCat("model: \"", testing::Vit(),
                               "\" sequences_per_sample: 2 sequence_length: 8 "
                               "sequences_per_slice: ",
                               slice)};
  return its;
}

// One of each way in which programs are made.
std::vector<Named> Schedules() {
  const std::string optimus = "strategy: OPTIMUS schedule: ONE_F_ONE_B ";
  const std::vector<std::pair<std::string, NumericsCase>> cases = {
      {"Megatron-LM", CaseOf(1, 2, 2, "schedule: ONE_F_ONE_B layout: EQUAL_LAYERS")},
      {"interleaved", CaseOf(2, 2, 1,
                             "schedule: INTERLEAVED model_chunks: 2 layout: EQUAL_LAYERS "
                             "allow_uneven: true dp_communication: DP_OVERLAPPED")},
      {"ZB-V", CaseOf(1, 2, 2, "schedule: ZB_V layout: EQUAL_LAYERS allow_uneven: true")},
      {"FSDP", CaseOf(2, 1, 1, "strategy: FSDP fsdp { prefetch: 2 }")},
      {"Optimus, list, slices",
       CaseOf(1, 2, 2,
              optimus + "optimus { scheduler: LIST encoder_plans { pipeline_parallel: 2 "
                        "tensor_parallel: 2 } }",
              1)},
      {"Optimus, paper, lanes",
       CaseOf(2, 2, 2,
              optimus + "recompute: RECOMPUTE_FULL optimus { scheduler: PAPER encoder_plans { "
                        "pipeline_parallel: 1 tensor_parallel: 1 } }")},
  };
  std::vector<Named> named;
  for (const auto& [name, its] : cases) {
    const step::Experiment experiment = testing::ExperimentOf(its);
    auto schedule = testing::ScheduleOf(experiment);
    auto model = testing::ModelOf(experiment);
    EXPECT_TRUE(schedule.ok()) << name << schedule.status();
    EXPECT_TRUE(model.ok()) << name << model.status();
    if (schedule.ok() && model.ok()) named.push_back({name, *schedule, *model});
  }
  return named;
}

// One step, with one operation put off as long as anything else can run. What went wrong, if
// anything did; `started_early`: `operation` began before the one that was put off had ended.
absl::Status RunWithPutOff(const ir::Schedule& schedule, const NumericsModel& model, int rank,
                           std::uint32_t put_off, std::uint32_t operation, bool& started_early) {
  OPTIMUS_ASSIGN_OR_RETURN(testing::Cluster cluster, testing::MakeCluster(schedule, model));
  NumericsEngine engine(schedule, cluster.pointers(), put_off);
  engine.SetPutOff([&](int r, std::uint32_t id) { return r == rank && id == put_off; });
  absl::Status status = engine.Step(0);
  for (auto& workload : cluster.workloads) {
    if (status.ok()) status = workload->Finished();
  }
  started_early = engine.StartedBefore(rank, operation, put_off);
  return status;
}

// Whatever operation is late, nothing that needs it runs ahead.
TEST(NumericsOrder, TheScheduleOrdersAllThatIsNeeded) {
  for (const Named& its : Schedules()) {
    for (const ir::Program& program : its.schedule.programs) {
      const int rank = ir::FirstRankOf(its.schedule, program);
      for (std::uint32_t id = program.stage; id < program.operations.size(); id += 11) {
        bool early = false;
        const absl::Status status = RunWithPutOff(its.schedule, its.model, rank, id, id, early);
        ASSERT_TRUE(status.ok()) << its.name
                                 << ": late: " << ir::Describe(its.schedule, program, id) << ": "
                                 << status;
      }
    }
  }
}

void DropDependency(ir::Program& program, std::uint32_t id, std::uint32_t which) {
  ir::Operation& op = program.operations[id];
  std::swap(program.dependencies[op.first_dependency],
            program.dependencies[op.first_dependency + which]);
  ++op.first_dependency;
  --op.dependency_count;
}

// A dependency that carries data and that the others do not imply is missed when it is not there.
TEST(NumericsOrder, ADroppedDependencyIsNoticed) {
  for (const Named& its : Schedules()) {
    int dropped = 0;
    int noticed = 0;
    for (std::size_t p = 0; p < its.schedule.programs.size(); ++p) {
      const ir::Program& program = its.schedule.programs[p];
      const int rank = ir::FirstRankOf(its.schedule, program);
      const auto whole = executor::numerics::NumericsWorkload::Make(its.schedule, rank, its.model);
      ASSERT_TRUE(whole.ok()) << whole.status();
      for (std::uint32_t id = program.stage; id < program.operations.size(); id += 5) {
        const auto dependencies = program.DependenciesOf(program.operations[id]);
        for (std::uint32_t which = 0; which < dependencies.size(); ++which) {
          const std::uint32_t dependency = dependencies[which];
          ir::Schedule mutated = its.schedule;
          DropDependency(mutated.programs[p], id, which);
          bool early = false;
          const absl::Status status =
              RunWithPutOff(mutated, its.model, rank, dependency, id, early);
          ++dropped;
          noticed += status.ok() ? 0 : 1;
          if ((*whole)->Feeds(dependency, id) && early) {
            EXPECT_FALSE(status.ok())
                << its.name << ": " << ir::Describe(its.schedule, program, id) << " without "
                << ir::Describe(its.schedule, program, dependency);
          }
        }
      }
    }
    EXPECT_GT(noticed, dropped / 2) << its.name;
  }
}

// The message names both operations.
TEST(NumericsOrder, NamesBothOperations) {
  Named its = Schedules().front();
  ir::Program& program = its.schedule.programs[0];
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (op.kind != ir::OperationKind::kKernel || op.tag.phase != Phase::kForward) continue;
    if (its.schedule.kernels[op.work].name != "qkv") continue;
    const std::uint32_t gather = program.DependenciesOf(op)[0];
    DropDependency(program, id, 0);
    bool early = false;
    const absl::Status status = RunWithPutOff(its.schedule, its.model, 0, gather, id, early);
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(HasSubstr("forward qkv (operation"),
                                 HasSubstr("needs the norm1 full of module 1 layer 0"),
                                 HasSubstr("forward qkv_all_gather (operation"),
                                 HasSubstr("has not ordered in front")));
    return;
  }
  FAIL() << "no qkv";
}

void SwapMicroBatches(ir::Schedule& schedule, int stage,
                      const std::function<bool(const ir::Operation&)>& of) {
  for (ir::Program& program : schedule.programs) {
    if (program.stage != stage) continue;
    for (ir::Operation& op : program.operations) {
      if (op.tag.micro_batch >= 0 && of(op)) op.tag.micro_batch = 1 - op.tag.micro_batch;
    }
  }
}

// One kernel works for the other micro-batch: what it needs is not there, or has gone.
TEST(NumericsOrder, ASwappedMicroBatchIsNoticed) {
  for (const Named& its : Schedules()) {
    if (its.schedule.micro_batches != 2) continue;
    ir::Schedule mutated = its.schedule;
    const auto wrong = [&](const ir::Operation& op) {
      return op.kind == ir::OperationKind::kKernel && op.tag.module == ir::kLlmModule &&
             op.tag.layer == 0 && op.tag.phase == Phase::kForward &&
             mutated.kernels[op.work].name == "fc1";
    };
    for (int stage = 0; stage < mutated.world.pp; ++stage) SwapMicroBatches(mutated, stage, wrong);
    const auto report = testing::Train(mutated, its.model, 1);
    EXPECT_FALSE(report.ok()) << its.name;
  }
}

// A weight gradient and the first forward kernel of its layer change places: what it needs is not
// there yet.
TEST(NumericsOrder, AWeightGradientInFrontOfItsDataGradientsIsNoticed) {
  for (const Named& its : Schedules()) {
    ir::Schedule mutated = its.schedule;
    std::vector<ir::Operation>& operations = mutated.programs[0].operations;
    const auto is = [&](const ir::Operation& op, Phase phase) {
      return op.kind == ir::OperationKind::kKernel && op.tag.module == ir::kLlmModule &&
             op.tag.layer == 0 && op.tag.micro_batch == 0 && op.tag.phase == phase;
    };
    const auto find = [&](Phase phase) {
      return std::find_if(operations.begin(), operations.end(),
                          [&](const ir::Operation& op) { return is(op, phase); });
    };
    const auto forward = find(Phase::kForward);
    const auto weight = find(Phase::kWeightGradient);
    if (forward == operations.end() || weight == operations.end()) continue;
    std::swap(forward->work, weight->work);
    std::swap(forward->tag, weight->tag);
    const absl::Status status = testing::Train(mutated, its.model, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << its.name << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("which is not there")) << its.name;
  }
}

// A stage that takes one micro-batch for the other throughout never misses anything: only the
// numbers can tell.
TEST(NumericsOrder, MicroBatchesThatChangePlacesGiveOtherNumbers) {
  const Named its = Schedules().front();
  ir::Schedule mutated = its.schedule;
  SwapMicroBatches(mutated, 1, [](const ir::Operation&) { return true; });
  const auto right = testing::Train(its.schedule, its.model, 1);
  const auto wrong = testing::Train(mutated, its.model, 1);
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_LT(right->worst_gradient_error, 1e-5);
  EXPECT_LT(right->worst_loss_error, 1e-6);
  EXPECT_GT(wrong->worst_gradient_error, 0.1);
  EXPECT_GT(wrong->worst_loss_error, 1e-4);
}

// The runtime itself, over fake devices and communicators.
TEST(NumericsOrder, TheRuntimeLearnsTheSame) {
  for (const Named& its : Schedules()) {
    executor::testing::Cluster cluster(its.schedule.world.gpus());
    executor::NumericsReport report;
    const std::vector<absl::Status> statuses = executor::testing::OnAllRanks(
        cluster, [&](executor::testing::FakeRank& rank) -> absl::Status {
          OPTIMUS_ASSIGN_OR_RETURN(
              const auto workload,
              executor::MakeNumericsWorkload(its.schedule, rank.world.rank(), its.model));
          OPTIMUS_ASSIGN_OR_RETURN(const auto runtime,
                                   executor::Runtime::Create(its.schedule, rank.world, rank.device,
                                                             rank.ranks, workload.get()));
          const executor::testing::GiveUp give_up;
          for (int step = 0; step < 2; ++step) {
            OPTIMUS_RETURN_IF_ERROR(runtime->Step(step, give_up).status());
          }
          OPTIMUS_ASSIGN_OR_RETURN(
              executor::NumericsReport its_report,
              executor::CompareWithReference(its.schedule, rank.world, *workload, its.model));
          if (rank.world.rank() == 0) report = std::move(its_report);
          return absl::OkStatus();
        });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << its.name << status;
    ASSERT_EQ(report.losses.size(), 2U) << its.name;
    EXPECT_LT(report.worst_loss_error, 1e-4) << its.name;
    EXPECT_LT(report.worst_gradient_error, 1e-4) << its.name;
  }
}

// --- what cannot be done -------------------------------------------------------------------------

TEST(NumericsRefuses, ModelsThatTheScheduleWasNotMadeOf) {
  const Named its = Schedules().front();
  const auto refusal = [&](const std::function<void(NumericsModel&)>& change) {
    NumericsModel model = its.model;
    change(model);
    const auto made = executor::MakeNumericsWorkload(its.schedule, 0, model);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << made.status();
    return std::string(made.status().message());
  };
  EXPECT_THAT(refusal([](NumericsModel& m) { m.encoders.clear(); }), HasSubstr("2 modules"));
  EXPECT_THAT(refusal([](NumericsModel& m) { m.global_batch = 7; }),
              HasSubstr("global batch is 7"));
  EXPECT_THAT(refusal([](NumericsModel& m) { m.llm.set_num_layers(3); }), HasSubstr("3"));
  EXPECT_THAT(refusal([](NumericsModel& m) { m.llm.set_ffn_hidden_size(128); }), HasSubstr("fc1"));
  EXPECT_THAT(refusal([](NumericsModel& m) { m.encoders[0].frozen = true; }), HasSubstr("frozen"));
  EXPECT_THAT(refusal([](NumericsModel& m) { m.llm.set_max_position_embeddings(8); }),
              HasSubstr("max_position_embeddings"));
}

TEST(NumericsRefuses, PlansThatDoNotTrainTogether) {
  for (const auto& [plan, part] : std::vector<std::pair<std::string, std::string>>{
           {"schedule: ONE_F_ONE_B layout: EQUAL_LAYERS no_optimizer: true",
            "reduces the gradient"},
           {"strategy: OPTIMUS schedule: ONE_F_ONE_B optimus { encoder_data_parallel: "
            "ENCODER_DP_NONE encoder_plans { pipeline_parallel: 1 tensor_parallel: 1 } }",
            "reduces the gradient"}}) {
    const step::Experiment experiment = testing::ExperimentOf(CaseOf(2, 2, 1, plan));
    const auto schedule = testing::ScheduleOf(experiment);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto made = executor::MakeNumericsWorkload(*schedule, 0, *testing::ModelOf(experiment));
    EXPECT_EQ(made.status().code(), absl::StatusCode::kUnimplemented) << made.status();
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace optimus
