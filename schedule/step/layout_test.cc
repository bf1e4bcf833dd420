#include "schedule/step/layout.h"

#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Parse;
using testing::SmallModel;

Stack SmallStack() {
  auto stack = BuildStack(Parse(SmallModel()));
  EXPECT_TRUE(stack.ok()) << stack.status();
  return *stack;
}

Stack DualStack() {
  Experiment experiment = Parse(SmallModel());
  *experiment.add_encoders() = experiment.encoders(0);
  auto stack = BuildStack(experiment);
  EXPECT_TRUE(stack.ok()) << stack.status();
  return *stack;
}

Plan MakePlan(Plan::Layout layout, int pipeline, int chunks) {
  Plan plan;
  plan.set_layout(layout);
  plan.set_pipeline_parallel(pipeline);
  plan.set_model_chunks(chunks);
  return plan;
}

std::vector<std::string> Contents(const Stack& stack, const ItemRanges& ranges) {
  std::vector<std::string> contents;
  for (std::size_t v = 0; v + 1 < ranges.size(); ++v) {
    contents.push_back(DescribeItems(stack, ranges[v], ranges[v + 1]));
  }
  return contents;
}

std::vector<std::string> LaidOut(const Plan& plan, const Stack& stack,
                                 const std::vector<Picoseconds>& times = {}) {
  auto ranges = LayOut(plan, stack, times);
  EXPECT_TRUE(ranges.ok()) << ranges.status();
  return ranges.ok() ? Contents(stack, *ranges) : std::vector<std::string>();
}

TEST(Stack, ItemsInTheOrderOfTheMicroBatch) {
  const Stack stack = DualStack();
  EXPECT_EQ(stack.layers(), 48 + 48 + 80);
  EXPECT_EQ(DescribeItems(stack, 0, static_cast<int>(stack.items.size())),
            "vit-5b 0-47, projector, vit-5b 0-47, projector, embedding, llm 0-79, head");
}

TEST(Stack, ItemsOfLayersCoverTheStackOnce) {
  const Stack stack = DualStack();
  int next = 0;
  for (const LayerItems& layer : ItemsByLayer(stack)) {
    EXPECT_EQ(layer.first, next);
    next = layer.last;
  }
  EXPECT_EQ(next, static_cast<int>(stack.items.size()));
  EXPECT_EQ(static_cast<int>(ItemsByLayer(stack).size()), stack.layers());
}

TEST(Stack, MessageSizes) {
  const Stack stack = SmallStack();
  // 8 encoder sequences of 2048 tokens, width 3072, bf16, on 8 GPUs; behind the projector the 2
  // sequences of the LLM.
  EXPECT_EQ(BoundaryBytes(stack, stack.items[0]), Bytes(8L * 2048 * 3072 * 2 / 8));
  EXPECT_EQ(stack.items[48].kind, ItemKind::kProjector);
  for (const int behind : {48, 49, 50, 100}) {
    EXPECT_EQ(BoundaryBytes(stack, stack.items[behind]), Bytes(2L * 2048 * 3072 * 2 / 8));
  }
}

TEST(Layout, EqualLayersCarryTheirNeighbours) {
  EXPECT_THAT(
      LaidOut(MakePlan(Plan::EQUAL_LAYERS, 4, 2), SmallStack()),
      ElementsAre("vit-5b 0-15", "vit-5b 16-31", "vit-5b 32-47, projector", "embedding, llm 0-15",
                  "llm 16-31", "llm 32-47", "llm 48-63", "llm 64-79, head"));
}

TEST(Layout, OneStageHoldsAll) {
  EXPECT_THAT(LaidOut(MakePlan(Plan::EQUAL_LAYERS, 1, 1), SmallStack()),
              ElementsAre("vit-5b 0-47, projector, embedding, llm 0-79, head"));
}

TEST(Layout, UnevenOnlyWhenAllowed) {
  Plan plan = MakePlan(Plan::EQUAL_LAYERS, 3, 1);
  const auto refused = LayOut(plan, SmallStack(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("plan.layout: "));
  plan.set_allow_uneven(true);
  EXPECT_THAT(LaidOut(plan, SmallStack()),
              ElementsAre("vit-5b 0-42", "vit-5b 43-47, projector, embedding, llm 0-37",
                          "llm 38-79, head"));
}

TEST(Layout, EncoderInStage0) {
  EXPECT_THAT(LaidOut(MakePlan(Plan::ENCODER_IN_STAGE_0, 4, 1), SmallStack()),
              ElementsAre("vit-5b 0-47, projector, embedding, llm 0-19", "llm 20-39", "llm 40-59",
                          "llm 60-79, head"));
}

TEST(Layout, LayerCountsCountLayersOnly) {
  Plan plan = MakePlan(Plan::LAYER_COUNTS, 2, 2);
  for (const int count : {47, 1, 1, 79}) plan.add_layer_counts(count);
  EXPECT_THAT(LaidOut(plan, SmallStack()), ElementsAre("vit-5b 0-46", "vit-5b 47, projector",
                                                       "embedding, llm 0", "llm 1-79, head"));
}

TEST(Layout, BalancedFollowsTheTimes) {
  std::vector<Picoseconds> times(128, Picoseconds(1));
  for (int i = 0; i < 48; ++i) times[i] = Picoseconds(5);  // 240 of encoder, 80 of LLM
  EXPECT_THAT(LaidOut(MakePlan(Plan::BALANCED, 4, 1), SmallStack(), times),
              ElementsAre("vit-5b 0-15", "vit-5b 16-31", "vit-5b 32-47, projector",
                          "embedding, llm 0-79, head"));
}

TEST(Layout, ExplicitStringPlacesEverything) {
  Plan plan = MakePlan(Plan::EXPLICIT, 4, 1);
  plan.set_layout_string("v*48|pE|t*80|L");
  EXPECT_THAT(LaidOut(plan, SmallStack()),
              ElementsAre("vit-5b 0-47", "projector, embedding", "llm 0-79", "head"));
}

TEST(Layout, ExplicitStringWithTwoEncoders) {
  Plan plan = MakePlan(Plan::EXPLICIT, 2, 1);
  plan.set_layout_string("v*60|v*36pEt*80L");
  EXPECT_THAT(LaidOut(plan, DualStack()),
              ElementsAre("vit-5b 0-47, projector, vit-5b 0-11",
                          "vit-5b 12-47, projector, embedding, llm 0-79, head"));
}

TEST(Layout, ExplicitStringMustFollowTheModel) {
  Plan plan = MakePlan(Plan::EXPLICIT, 2, 1);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"v*47pE|t*80L", "stage 0 asks for a projector"},
      {"v*48pE|t*79L", "stage 1 asks for the loss"},
      {"v*48pE|t*80", "layout"},  // the parser's: no L
      {"v*48Ep|t*81L", "stage 1 asks for an LLM layer"},
      {"Ev*48|pt*80L", "stage 0 asks for the embedding"},
      {"v*49p|Et*80L", "stage 0 asks for an encoder layer"},
  };
  for (const auto& [text, what] : bad) {
    plan.set_layout_string(text);
    const auto result = LayOut(plan, SmallStack(), {});
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("plan.layout_string: " + what));
  }
}

}  // namespace
}  // namespace optimus::step
