// A model written in the experiment instead of named.

#include "gmock/gmock.h"
#include "models/zoo.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using testing::Parse;
using testing::SmallModel;
using ::testing::StartsWith;
using testing::StepTime;

Experiment Inline(const std::string& plan = "") {
  Experiment experiment = Parse(SmallModel(plan));
  auto model = models::LoadModel(experiment.llm());
  EXPECT_TRUE(model.ok()) << model.status();
  experiment.clear_llm();
  *experiment.mutable_inline_llm() = *std::move(model);
  return experiment;
}

TEST(InlineModel, IsTheModelOfItsName) {
  const auto costs = Costs();
  const Step named = Build(Parse(SmallModel()), costs);
  const Step written = Build(Inline(), costs);
  EXPECT_EQ(StepTime(written, costs), StepTime(named, costs));
  EXPECT_EQ(written.model_flops.value(), named.model_flops.value());
  ASSERT_EQ(written.memory.size(), named.memory.size());
  for (std::size_t i = 0; i < named.memory.size(); ++i) {
    EXPECT_EQ(written.memory[i].total(), named.memory[i].total());
  }
}

TEST(InlineModel, OneLayerMoreTakesLonger) {
  const auto costs = Costs();
  Experiment experiment = Inline("allow_uneven: true");
  const Picoseconds before = StepTime(Build(experiment, costs), costs);
  experiment.mutable_inline_llm()->set_num_layers(experiment.inline_llm().num_layers() + 2);
  EXPECT_GT(StepTime(Build(experiment, costs), costs), before);
}

void ExpectRefusal(const Experiment& experiment, const std::string& begin,
                   const std::string& hint) {
  const auto step = BuildStep(experiment, Costs());
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(std::string(step.status().message()), StartsWith(begin));
  EXPECT_THAT(std::string(step.status().message()), HasSubstr(hint));
}

TEST(InlineModel, Refusals) {
  Experiment both = Inline();
  both.set_llm("gpt-11b");
  ExpectRefusal(both, "inline_llm: is given together with llm", "keep one");
  Experiment nameless = Inline();
  nameless.mutable_inline_llm()->clear_name();
  ExpectRefusal(nameless, "inline_llm.name: is empty", "give the model a name");
  Experiment heads = Inline();
  heads.mutable_inline_llm()->set_num_attention_heads(25);
  ExpectRefusal(heads, "inline_llm: ", "num_attention_heads");
  Experiment profiled = Inline();
  profiled.clear_encoders();
  profiled.mutable_profiled()->set_forward_ms(1);
  profiled.mutable_profiled()->set_backward_ms(2);
  profiled.mutable_plan()->clear_layout();
  profiled.mutable_plan()->set_no_optimizer(true);
  ExpectRefusal(profiled, "profiled: is given together with", "not both");
}

}  // namespace
}  // namespace optimus::step
