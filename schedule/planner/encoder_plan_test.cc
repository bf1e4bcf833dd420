#include "schedule/planner/encoder_plan.h"

#include <set>

#include "gmock/gmock.h"
#include "models/testing_models.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/testing.h"

namespace optimus::planner {
namespace {

using ::testing::ElementsAre;

TEST(EnumeratePlans, SixteenForEightAndEight) {
  const auto plans = EnumeratePlans({48, 8, 8});
  ASSERT_EQ(plans.size(), 16U);
  EXPECT_EQ(plans.front(), (EncoderPlan{1, 8}));
  EXPECT_EQ(plans[1], (EncoderPlan{1, 4}));
  EXPECT_EQ(plans.back(), (EncoderPlan{8, 1}));
  EXPECT_EQ(EnumeratePlans({1, 1, 1}).size(), 1U);
  EXPECT_EQ(EnumeratePlans({2, 6, 4}).size(), 12U);
}

// Invariant 21. The twin tries every pair of numbers.
TEST(EnumeratePlans, AreAllThatDivide) {
  for (std::int32_t dp = 1; dp <= 3; ++dp) {
    for (std::int32_t pp = 1; pp <= 12; ++pp) {
      for (std::int32_t tp = 1; tp <= 8; ++tp) {
        const ir::Parallelism llm{dp, pp, tp};
        std::size_t expected = 0;
        for (std::int32_t p = 1; p <= pp; ++p) {
          for (std::int32_t t = 1; t <= tp; ++t) {
            expected += ValidatePlan({p, t}, llm).ok() ? 1 : 0;
          }
        }
        const auto plans = EnumeratePlans(llm);
        EXPECT_EQ(plans.size(), expected);
        for (const EncoderPlan& plan : plans) {
          EXPECT_TRUE(ValidatePlan(plan, llm).ok());
          EXPECT_EQ(pp % plan.pipeline_parallel, 0);
          EXPECT_EQ(tp % plan.tensor_parallel, 0);
          EXPECT_EQ(DataParallelOf(plan, llm) * plan.pipeline_parallel * plan.tensor_parallel,
                    llm.gpus());
          EXPECT_EQ(PipelinesOf(plan, llm) * dp, DataParallelOf(plan, llm));
        }
      }
    }
  }
}

TEST(ValidatePlan, OneLineWithTheChoices) {
  const ir::Parallelism llm{48, 8, 4};
  EXPECT_EQ(ValidatePlan({3, 4}, llm).message(),
            "encoder plan PP 3 x TP 4: pipeline parallelism 3 does not divide the LLM's 8; use one "
            "of 1, 2, 4, 8");
  EXPECT_EQ(ValidatePlan({2, 8}, llm).message(),
            "encoder plan PP 2 x TP 8: tensor parallelism 8 does not divide the LLM's 4; use one "
            "of 1, 2, 4");
  EXPECT_FALSE(ValidatePlan({0, 1}, llm).ok());
  EXPECT_FALSE(ValidatePlan({1, -1}, llm).ok());
  EXPECT_FALSE(ValidatePlan({16, 1}, llm).ok());
}

TEST(ValidatePlanFor, TheModelMustBeCutEvenly) {
  models::ModelConfig vit = models::SmallVit();  // 4 layers, 16 heads
  EXPECT_TRUE(ValidatePlanFor({4, 8}, {1, 8, 8}, vit).ok());
  EXPECT_EQ(ValidatePlanFor({8, 8}, {1, 8, 8}, vit).message(),
            "encoder plan PP 8 x TP 8: small-vit has 4 layers, one stage or more would have none");
  vit.set_num_attention_heads(12);
  vit.set_head_dim(64);
  const absl::Status heads = ValidatePlanFor({1, 8}, {1, 8, 8}, vit);
  EXPECT_EQ(heads.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(heads.message()), ::testing::StartsWith("encoder plan PP 1 x TP 8: "));
  EXPECT_TRUE(ValidatePlanFor({1, 4}, {1, 8, 8}, vit).ok());
}

TEST(EncoderStages, EqualCountsProjectorLast) {
  const auto stack = step::BuildStack(step::testing::Parse(step::testing::SmallModel()));
  ASSERT_TRUE(stack.ok());
  // vit-5b: 48 layers, items 0 to 47; the projector is item 48.
  EXPECT_THAT(*EncoderStages(*stack, 1, {1, 8}), ElementsAre(0, 49));
  EXPECT_THAT(*EncoderStages(*stack, 1, {2, 8}), ElementsAre(0, 24, 49));
  EXPECT_THAT(*EncoderStages(*stack, 1, {5, 1}), ElementsAre(0, 10, 20, 30, 39, 49));
  EXPECT_FALSE(EncoderStages(*stack, 1, {49, 1}).ok());
  EXPECT_EQ(EncoderStages(*stack, 2, {1, 1}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(UnderPlan(stack->modules[1], {1, 2}).slice.tensor_parallel, 2);
  EXPECT_EQ(UnderPlan(stack->modules[1], {1, 2}).whole.tensor_parallel, 2);
}

}  // namespace
}  // namespace optimus::planner
