// What the bubble scheduler predicts is what the simulator finds for the emitted Schedule.

#include <string>

#include "gtest/gtest.h"
#include "schedule/colocate/optimus.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

// One step: by the bubble scheduler, every operation alone, and with shared links but without
// interference.
struct Outcome {
  double predicted = 0, alone = 0, simulated = 0;  // seconds
};

Outcome Simulate(const step::Experiment& experiment, step::Optimus::Scheduler scheduler) {
  Outcome outcome;
  auto profile = step::LoadExperimentProfile(experiment);
  EXPECT_TRUE(profile.ok()) << profile.status();
  if (!profile.ok()) return outcome;
  testing::Built built{std::make_shared<hw::ProfileCostModel>(*std::move(profile)), {}};
  colocate::PlanOptions options;
  options.scheduler = scheduler;
  auto step = colocate::BuildOptimusStep(experiment, *built.costs, options);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return outcome;
  built.step = std::move(step->step);
  EXPECT_TRUE(ir::Validate(built.step.schedule).ok()) << ir::Validate(built.step.schedule);
  auto alone = ir::CriticalPathRunner(*built.costs).Run(built.step.schedule);
  EXPECT_TRUE(alone.ok()) << alone.status();
  auto simulated = testing::Simulate(built, sim::Fidelity::kAuto, /*spans=*/false,
                                     /*interference=*/false);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  if (!alone.ok() || !simulated.ok()) return outcome;
  return {ToSeconds(step->plan.ranked.front().predicted), ToSeconds(alone->step),
          ToSeconds(simulated->step)};
}

step::Experiment Load(const std::string& name) {
  auto experiment = step::LoadExperiment("examples/" + name + ".textproto");
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return experiment.ok() ? *std::move(experiment) : step::Experiment();
}

class Prediction : public ::testing::TestWithParam<const char*> {};

TEST_P(Prediction, IsWhatTheSimulatorFinds) {
  for (const auto scheduler : {step::Optimus::PAPER, step::Optimus::LIST}) {
    const Outcome outcome = Simulate(Load(GetParam()), scheduler);
    EXPECT_NEAR(outcome.alone / outcome.predicted, 1, 0.005);
    EXPECT_NEAR(outcome.simulated / outcome.predicted, 1, 0.005);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, Prediction,
                         ::testing::Values("paper/strong_3072_optimus",
                                           "paper/strong_3072_optimus_v1", "16_encoder_tp_1",
                                           "17_encoder_tp_2_llm_tp_4"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(name.find_last_of('/') + 1);
                         });

// One stage, one replica: nothing but tensor-parallel collectives is on any link, and those of the
// LLM and of the encoder take turns.
TEST(Prediction, IsExactWhereNothingContends) {
  step::Experiment experiment = Load("17_encoder_tp_2_llm_tp_4");
  step::Plan& plan = *experiment.mutable_plan();
  experiment.mutable_hardware()->set_gpus(4);
  experiment.mutable_hardware()->set_cluster_gpus(4);
  plan.set_data_parallel(1);
  plan.set_pipeline_parallel(1);
  plan.mutable_optimus()->mutable_encoder_plans(0)->set_tensor_parallel(4);
  experiment.mutable_batch()->set_global_batch(4);
  const Outcome outcome = Simulate(experiment, step::Optimus::PAPER);
  EXPECT_GT(outcome.simulated, 0);
  EXPECT_EQ(outcome.simulated, outcome.alone);
  EXPECT_LE(outcome.alone, outcome.predicted);
}

}  // namespace
}  // namespace optimus
