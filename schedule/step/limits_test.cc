#include "schedule/step/limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/step/make_order.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ::testing::AllOf;
using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::SmallModel;
using ::testing::StartsWith;

std::string Refusal(const Experiment& experiment) {
  const auto step = BuildStep(experiment, Costs());
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument) << step.status();
  return std::string(step.status().message());
}

double CountOf(const ir::Schedule& schedule) {
  double count = 0;
  for (const ir::Program& program : schedule.programs) {
    count += static_cast<double>(program.operations.size());
  }
  return count;
}

Placing PlacingFor(const Experiment& experiment) {
  const auto placing = PlacingOf(experiment);
  EXPECT_TRUE(placing.ok()) << placing.status();
  return *placing;
}

double Predicted(const Experiment& experiment) {
  const auto stack = BuildStack(experiment);
  EXPECT_TRUE(stack.ok()) << stack.status();
  ir::Schedule schedule;
  schedule.world = {1, 2, 8};
  const BlockTable blocks(*stack, schedule);
  return MicroBatches(experiment) *
         OperationsPerMicroBatch(experiment.plan(), PlacingFor(experiment), *stack, blocks);
}

TEST(OperationsPerMicroBatch, IsWhatIsLowered) {
  for (const char* plan :
       {"", "schedule: GPIPE", "model_chunks: 4 schedule: INTERLEAVED", "schedule: ZB_H1",
        "schedule: ZB_2P", "schedule: ZB_V", "schedule: DUALPIPE", "schedule: DUALPIPE_V",
        "recompute: RECOMPUTE_NONE", "no_sequence_parallel: true"}) {
    const Experiment experiment = Parse(SmallModel(absl::StrCat("no_optimizer: true ", plan)));
    EXPECT_EQ(CountOf(Build(experiment, Costs()).schedule), Predicted(experiment)) << plan;
  }
}

TEST(OperationsPerMicroBatch, CountsAllGradientMessagesOfAFrozenEncoder) {
  Experiment experiment =
      Parse(SmallModel("no_optimizer: true model_chunks: 4 schedule: INTERLEAVED"));
  experiment.mutable_encoders(0)->set_frozen(true);
  // 4 micro-batches; the gradients of boundaries 0 and 1 of 7 are not sent.
  EXPECT_EQ(CountOf(Build(experiment, Costs()).schedule), Predicted(experiment) - 4 * 2 * 2);
}

Experiment Profiled(int micro_batches, const std::string& plan) {
  return Parse(absl::StrCat("profiled { forward_ms: 1 backward_ms: 2 } ",
                            "hardware { profile: 'h100-80gb' gpus: 2 } ",
                            "batch { global_batch: ", micro_batches, " micro_batch: 1 } ",
                            "plan { data_parallel: 1 pipeline_parallel: 2 tensor_parallel: 1 ",
                            "no_optimizer: true ", plan, "}"));
}

TEST(OperationsPerMicroBatch, OfProfiledStages) {
  const Experiment experiment = Profiled(6, "schedule: INTERLEAVED model_chunks: 3");
  const Step step = Build(experiment, Costs());
  ir::Schedule schedule;
  const ProfiledBlocks blocks = BlocksOf(experiment.profiled(), 3, schedule);
  EXPECT_EQ(CountOf(step.schedule), 6 * OperationsPerMicroBatch(PlacingFor(experiment), blocks));
}

TEST(CheckStepSize, NamesMicroBatchesWhereTheyAreMany) {
  Experiment experiment = Parse(SmallModel());
  experiment.mutable_batch()->set_global_batch(4'000'000);
  EXPECT_THAT(Refusal(experiment),
              AllOf(StartsWith("batch.global_batch: the step has "),
                    HasSubstr("more than 40000000; its largest factor is 2000000 micro-batches"),
                    Not(HasSubstr("\n"))));
}

TEST(CheckStepSize, NamesSlicesWhereTheyAreMany) {
  Experiment experiment = Parse(SmallModel());
  experiment.mutable_batch()->set_global_batch(2048);
  experiment.mutable_encoders(0)->set_sequences_per_sample(2048);
  experiment.mutable_encoders(0)->set_sequences_per_slice(1);
  EXPECT_THAT(Refusal(experiment),
              AllOf(StartsWith("encoders[0].sequences_per_slice: the step has "),
                    HasSubstr("4096 slices a micro-batch")));
}

TEST(CheckStepSize, NamesLayersWhereTheyAreMany) {
  Experiment experiment = Parse(SmallModel());
  auto stack = BuildStack(experiment);
  ASSERT_TRUE(stack.ok()) << stack.status();
  ir::Schedule schedule;
  schedule.world = {1, 2, 8};
  const BlockTable blocks(*stack, schedule);
  // As if the model had them: a stack of 3 million layers.
  stack->modules[0].config.set_num_layers(3'000'000);
  stack->items.resize(3'000'000, {ItemKind::kLayer, 0, 1});
  const absl::Status status = CheckStepSize(experiment, PlacingFor(experiment), *stack, blocks);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("llm: the step has "), HasSubstr("3000000 layers")));
}

TEST(CheckStepSize, OfProfiledStagesAndHalfOfItUnderBest) {
  const std::string plan = "schedule: INTERLEAVED model_chunks: 2 ";
  // 4 virtual stages of 3 kernels, 3 boundaries of 4 message operations.
  Experiment best = Profiled(900'000, plan + "warm_up: BEST");
  best.mutable_profiled()->set_weight_ms(1);
  EXPECT_THAT(Refusal(best), AllOf(StartsWith("batch.global_batch: "),
                                   HasSubstr("more than 20000000, the limit with plan.warm_up")));
  ir::Schedule schedule;
  Experiment megatron = best;
  megatron.mutable_plan()->set_warm_up(Plan::MEGATRON);
  const ProfiledBlocks blocks = BlocksOf(megatron.profiled(), 2, schedule);
  EXPECT_TRUE(CheckStepSize(megatron, PlacingFor(megatron), blocks).ok())
      << CheckStepSize(megatron, PlacingFor(megatron), blocks);
}

TEST(CheckStepSize, BoundsTheActivationsOfAllMicroBatches) {
  Experiment experiment = Parse(SmallModel());
  experiment.mutable_batch()->set_global_batch(6'000);
  auto stack = BuildStack(experiment);
  ASSERT_TRUE(stack.ok()) << stack.status();
  ir::Schedule schedule;
  schedule.world = {1, 2, 8};
  const BlockTable blocks(*stack, schedule);
  EXPECT_TRUE(CheckStepSize(experiment, PlacingFor(experiment), *stack, blocks).ok());
  stack->modules[0].whole.sequences = stack->modules[0].slice.sequences = 1'000'000'000;
  EXPECT_THAT(
      std::string(CheckStepSize(experiment, PlacingFor(experiment), *stack, blocks).message()),
      StartsWith("batch.micro_batch: 3000 micro-batches keep up to"));
}

TEST(CheckLayerTimes, BoundsTheirSum) {
  const Picoseconds quarter(std::int64_t{1} << 60);
  EXPECT_TRUE(CheckLayerTimes({quarter, quarter, quarter}).ok());
  EXPECT_THAT(std::string(CheckLayerTimes({quarter, quarter, quarter, quarter}).message()),
              StartsWith("plan.layout: BALANCED"));
}

// Every single field at its limit still makes a valid step.
TEST(Limits, AreReached) {
  Experiment experiment = Profiled(2, "schedule: ONE_F_ONE_B ");
  experiment.mutable_profiled()->set_forward_ms(3.6e6);
  experiment.mutable_profiled()->set_backward_ms(3.6e6);
  experiment.mutable_profiled()->set_weight_ms(3.6e6);
  experiment.mutable_profiled()->set_communication_ms(3.6e6);
  experiment.mutable_hardware()->set_oversubscription(1e6);
  Hardware::SlowGpu& slow = *experiment.mutable_hardware()->add_slow_gpus();
  slow.set_rank(1);
  slow.set_factor(1000);
  const auto costs = Costs();
  // 3 turns of 3 hours, and the first micro-batch's way there and back.
  EXPECT_EQ(testing::StepTime(Build(experiment, costs), costs),
            Picoseconds(std::int64_t{3 * 3 + 2} * 3600 * kPicosecondsPerSecond));
}

TEST(Limits, SlicesUpTo4096) {
  Experiment experiment = Parse(SmallModel("recompute: RECOMPUTE_NONE"));
  experiment.mutable_batch()->set_global_batch(2);
  experiment.mutable_encoders(0)->set_sequences_per_sample(2048);
  experiment.mutable_encoders(0)->set_sequence_length(16);
  experiment.mutable_encoders(0)->set_sequences_per_slice(1);
  EXPECT_EQ(Build(experiment, Costs()).schedule.programs.size(), 2U);
}

}  // namespace
}  // namespace optimus::step
