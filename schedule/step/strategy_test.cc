// What each strategy makes of the fields of a plan.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/step/check_strategy.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Costs;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::SmallModel;

constexpr char kFsdp[] = "strategy: FSDP pipeline_parallel: 1 tensor_parallel: 1 ";

// SmallModel of the strategy, without the fields that it fills in.
Experiment Of(const std::string& plan) {
  Experiment experiment = Parse("");
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(SmallModel(), &experiment));
  experiment.mutable_plan()->clear_schedule();
  experiment.mutable_plan()->clear_layout();
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(absl::StrCat("plan {", plan, "}"),
                                                            &experiment));
  const Plan& p = experiment.plan();
  const int model_parallel = p.pipeline_parallel() * p.tensor_parallel();
  experiment.mutable_hardware()->set_gpus(p.data_parallel() * model_parallel);
  experiment.mutable_hardware()->clear_cluster_gpus();
  FillDefaults(experiment);
  return experiment;
}

std::string Refusal(const Experiment& experiment,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::Status status = CheckExperiment(experiment);
  EXPECT_EQ(status.code(), code) << status;
  std::string message(status.message());
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message;
}

TEST(Strategy, FillsWhatItLeavesNoChoiceIn) {
  const Plan fsdp = Of(kFsdp).plan();
  EXPECT_EQ(fsdp.schedule(), Plan::ONE_F_ONE_B);
  EXPECT_EQ(fsdp.layout(), Plan::EQUAL_LAYERS);
  EXPECT_EQ(fsdp.fsdp().prefetch(), 1);
  const Plan alpa = Of("strategy: ALPA").plan();
  EXPECT_EQ(alpa.schedule(), Plan::ONE_F_ONE_B);
  EXPECT_EQ(alpa.layout(), Plan::INTER_OPERATOR);
  EXPECT_TRUE(alpa.no_sequence_parallel());
  EXPECT_TRUE(alpa.no_distributed_optimizer());
  EXPECT_EQ(Of("strategy: OPTIMUS schedule: GPIPE").plan().layout(), Plan::EQUAL_LAYERS);
  EXPECT_EQ(Of("strategy: PIPELINE schedule: GPIPE").plan().layout(), Plan::LAYOUT_UNSPECIFIED);
}

TEST(Strategy, AcceptsWhatItFilled) {
  for (const std::string& plan : {std::string(kFsdp), std::string("strategy: ALPA"),
                                  std::string("strategy: OPTIMUS schedule: ONE_F_ONE_B")}) {
    EXPECT_TRUE(CheckExperiment(Of(plan)).ok()) << plan << CheckExperiment(Of(plan));
    // Filling again, as BuildStep does, changes nothing.
    Experiment again = Of(plan);
    FillDefaults(again);
    EXPECT_EQ(again.DebugString(), Of(plan).DebugString());
  }
}

struct Refused {
  std::string plan, field, hint;
};

TEST(Strategy, RefusesFieldsThatContradictIt) {
  const std::string optimus = "strategy: OPTIMUS schedule: ONE_F_ONE_B ";
  const std::string plans = optimus + "optimus { encoder_plans ";
  const std::vector<Refused> cases = {
      {"strategy: 7", "plan.strategy: unknown value 7", "ALPA"},
      {"strategy: FSDP tensor_parallel: 1", "plan.pipeline_parallel: 2 under strategy FSDP", "1"},
      {"strategy: FSDP pipeline_parallel: 1", "plan.tensor_parallel: 8 under strategy FSDP", "1"},
      {absl::StrCat(kFsdp, "schedule: GPIPE"), "plan.schedule: GPIPE", "ONE_F_ONE_B"},
      {absl::StrCat(kFsdp, "schedule: 99"), "plan.schedule: unknown value 99", "GPIPE"},
      {absl::StrCat(kFsdp, "layout: BALANCED"), "plan.layout: BALANCED", "EQUAL_LAYERS"},
      {absl::StrCat(kFsdp, "layout: 19"), "plan.layout: unknown value 19", "BALANCED"},
      {absl::StrCat(kFsdp, "model_chunks: 2"), "plan.model_chunks: 2", "always 1"},
      {absl::StrCat(kFsdp, "no_distributed_optimizer: true"), "plan.no_distributed_optimizer",
       "remove"},
      {absl::StrCat(kFsdp, "grad_reduce_in_bf16: true"), "plan.grad_reduce_in_bf16",
       "plan.fsdp.reduce_in_fp32"},
      {absl::StrCat(kFsdp, "no_optimizer: true"), "plan.no_optimizer", "remove"},
      {absl::StrCat(kFsdp, "dp_communication: DP_OVERLAPPED"), "plan.dp_communication",
       "plan.fsdp.prefetch"},
      {absl::StrCat(kFsdp, "fsdp { prefetch: -1 }"), "plan.fsdp.prefetch: is -1", "1 to 1000"},
      {absl::StrCat(kFsdp, "fsdp { prefetch: 1001 }"), "plan.fsdp.prefetch: is 1001", "1 to 1000"},
      {absl::StrCat(kFsdp, "optimus {}"), "plan.optimus: is set under strategy FSDP", "OPTIMUS"},
      {"strategy: ALPA schedule: INTERLEAVED model_chunks: 2", "plan.model_chunks: 2", "always 1"},
      {"strategy: ALPA schedule: GPIPE", "plan.schedule: GPIPE under strategy ALPA", "ONE_F_ONE_B"},
      {"strategy: ALPA layout: BALANCED", "plan.layout: BALANCED", "INTER_OPERATOR"},
      {"strategy: ALPA fsdp {}", "plan.fsdp: is set under strategy ALPA", "FSDP"},
      {"schedule: ONE_F_ONE_B layout: INTER_OPERATOR", "plan.layout: INTER_OPERATOR", "ALPA"},
      {optimus + "layout: INTER_OPERATOR", "plan.layout: INTER_OPERATOR", "ALPA"},
      {optimus + "layout: ENCODER_IN_STAGE_0", "plan.layout: ENCODER_IN_STAGE_0", "LLM alone"},
      {optimus + "optimus { scheduler: 5 }", "plan.optimus.scheduler: unknown value 5", "LIST"},
      {optimus + "optimus { encoder_data_parallel: 5 }", "plan.optimus.encoder_data_parallel",
       "ENCODER_DP_EXPOSED"},
      {plans + "{ pipeline_parallel: 1 tensor_parallel: 1 } encoder_plans {} }",
       "plan.optimus.encoder_plans: 2 plans for 1 encoders", "one for each"},
      {plans + "{ tensor_parallel: 1 } }", "encoder_plans[0].pipeline_parallel: is 0", "1 or more"},
      {plans + "{ pipeline_parallel: 4 tensor_parallel: 1 } }",
       "encoder_plans[0].pipeline_parallel: 4 does not divide plan.pipeline_parallel = 2",
       "divisor"},
      {plans + "{ pipeline_parallel: 1 tensor_parallel: 3 } }",
       "encoder_plans[0].tensor_parallel: 3 does not divide plan.tensor_parallel = 8", "divisor"},
      {plans + "{ pipeline_parallel: 1 tensor_parallel: 8 split: [2, -1] } }",
       "encoder_plans[0].split[1]: is -1", "0"},
  };
  for (const Refused& refused : cases) {
    const std::string message = Refusal(Of(refused.plan));
    EXPECT_THAT(message, HasSubstr(refused.field)) << refused.plan;
    EXPECT_THAT(message, HasSubstr(refused.hint)) << refused.plan;
  }
}

TEST(Strategy, OptimusNeedsAnEncoder) {
  Experiment experiment = Of("strategy: OPTIMUS schedule: ONE_F_ONE_B");
  experiment.clear_encoders();
  EXPECT_THAT(Refusal(experiment), HasSubstr("plan.strategy: OPTIMUS without an encoder"));
}

TEST(Strategy, ProfiledStagesAreAPipeline) {
  const std::string profiled = R"(profiled { forward_ms: 1 backward_ms: 2 }
    hardware { profile: "h100-80gb" gpus: 2 } batch { global_batch: 2 micro_batch: 1 }
    plan { data_parallel: 2 pipeline_parallel: 1 tensor_parallel: 1 strategy: )";
  EXPECT_THAT(Refusal(Parse(profiled + "FSDP }")),
              HasSubstr("plan.strategy: FSDP for profiled stages"));
}

TEST(Strategy, BuildStepLeavesOptimusToItsPlanner) {
  const auto step = BuildStep(Of("strategy: OPTIMUS schedule: ONE_F_ONE_B"), Costs());
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(step.status().message()), HasSubstr("plan.strategy: OPTIMUS"));
}

TEST(Strategy, LlmAloneIsAPipelineWithoutEncoders) {
  const Experiment alone =
      LlmAlone(Of("strategy: OPTIMUS schedule: ONE_F_ONE_B optimus { scheduler: LIST }"));
  EXPECT_TRUE(CheckExperiment(alone).ok()) << CheckExperiment(alone);
  EXPECT_EQ(alone.encoders_size(), 0);
  EXPECT_EQ(alone.plan().strategy(), Plan::PIPELINE);
  EXPECT_EQ(alone.plan().layout(), Plan::EQUAL_LAYERS);
}

TEST(MicroBatchesWithoutInput, AscendingAndInRange) {
  // 4 micro-batches.
  const auto refusal = [](const std::vector<int>& list) {
    Experiment experiment = Of("strategy: OPTIMUS schedule: ONE_F_ONE_B");
    for (const int i : list) experiment.mutable_encoders(0)->add_micro_batches_without_input(i);
    return list.size() == 2 && list[0] == 0 && list[1] == 3
               ? std::string(CheckExperiment(experiment).message())
               : Refusal(experiment);
  };
  EXPECT_EQ(refusal({0, 3}), "");
  EXPECT_THAT(refusal({4}), HasSubstr("micro_batches_without_input[0]: is 4"));
  EXPECT_THAT(refusal({-1}), HasSubstr("from 0 to 3"));
  EXPECT_THAT(refusal({1, 1}), HasSubstr("micro_batches_without_input[1]: 1 comes after 1"));
  EXPECT_THAT(refusal({2, 1}), HasSubstr("ascending"));
  EXPECT_THAT(refusal({0, 1, 2, 3}), HasSubstr("every micro-batch"));
}

TEST(MicroBatchesWithoutInput, OnlyUnderOptimus) {
  for (const std::string& plan :
       {std::string("schedule: ONE_F_ONE_B layout: BALANCED"), std::string("strategy: ALPA")}) {
    Experiment experiment = Of(plan);
    experiment.mutable_encoders(0)->add_micro_batches_without_input(0);
    EXPECT_THAT(Refusal(experiment, absl::StatusCode::kUnimplemented),
                HasSubstr("encoders[0].micro_batches_without_input: is set under strategy"));
  }
}

}  // namespace
}  // namespace optimus::step
