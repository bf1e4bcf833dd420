#include "schedule/llm_search/searched_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::llm_search {
namespace {

using ::testing::ElementsAre;

TEST(ValuesOf, AreThoseOfTheCandidatesByStrategy) {
  step::Experiment base;
  base.add_encoders()->set_model("vit-3b");
  const Candidate candidates[] = {
      {step::Plan::OPTIMUS, 4, 2, 8, 3, 1, step::Plan::RECOMPUTE_FULL},
      {step::Plan::OPTIMUS, 8, 2, 4, 1, 2, step::Plan::RECOMPUTE_FULL},
      {step::Plan::PIPELINE, 1, 8, 8, 9, 2, step::Plan::RECOMPUTE_NONE},
  };
  const std::vector<SearchedValues> values = ValuesOf(candidates, base);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].strategy, step::Plan::OPTIMUS);
  EXPECT_EQ(values[0].layout, step::Plan::EQUAL_LAYERS);
  EXPECT_EQ(values[0].combinations, 2);
  EXPECT_THAT(values[0].data_parallel, ElementsAre(4, 8));
  EXPECT_THAT(values[0].pipeline_parallel, ElementsAre(2));
  EXPECT_THAT(values[0].tensor_parallel, ElementsAre(4, 8));
  EXPECT_THAT(values[0].model_chunks, ElementsAre(1, 3));
  EXPECT_THAT(values[0].micro_batch, ElementsAre(1, 2));
  EXPECT_THAT(values[0].recompute, ElementsAre(step::Plan::RECOMPUTE_FULL));
  EXPECT_EQ(values[1].strategy, step::Plan::PIPELINE);
  EXPECT_EQ(values[1].layout, step::Plan::BALANCED);
  EXPECT_THAT(values[1].model_chunks, ElementsAre(9));
}

}  // namespace
}  // namespace optimus::llm_search
