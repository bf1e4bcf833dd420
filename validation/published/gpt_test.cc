#include "validation/published/gpt.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Cells of TableOfModelsColumns.
Row TableRow(std::vector<std::string> cells) {
  return Row(std::make_shared<const std::vector<Column>>(TableOfModelsColumns()), "t.csv",
             {.line = 7, .fields = std::move(cells)});
}
Row Good() { return TableRow({"1.7", "24", "2304", "24", "2", "3", "36", "516", "137"}); }

TEST(Gpt, ShapeAndJobOfARow) {
  const GptShape shape = ShapeOf(Good(), 51200, 2048);
  EXPECT_EQ(shape.name, "GPT-1.7B");
  EXPECT_EQ(shape.heads, 24);
  EXPECT_EQ(shape.hidden, 2304);
  EXPECT_EQ(shape.layers, 24);
  EXPECT_EQ(shape.vocabulary, 51200);
  EXPECT_EQ(shape.positions, 2048);
  const Job job = JobOf(Good(), "a100-80gb", 2048);
  EXPECT_EQ(job.tensor_parallel, 2);
  EXPECT_EQ(job.pipeline_parallel, 3);
  EXPECT_EQ(job.data_parallel, 0);
  EXPECT_EQ(job.micro_batch, 1);
  EXPECT_TRUE(CheckJob(Good(), shape, job).ok());
  const step::Experiment experiment = MegatronJob(shape, job);
  EXPECT_EQ(experiment.plan().data_parallel(), 6);
  EXPECT_EQ(experiment.hardware().gpus(), 36);
  EXPECT_EQ(experiment.batch().global_batch(), 516);
  EXPECT_EQ(experiment.batch().sequence_length(), 2048);
}

// TFLOP/s of a GPU times seconds times GPUs are the FLOPs of the source's formula.
TEST(Gpt, SecondsFollowFromTflops) {
  const Row row = Good();
  const GptShape shape = ShapeOf(row, 51200, 2048);
  const Job job = JobOf(row, "a100-80gb", 2048);
  for (const bool recompute : {false, true}) {
    const double flops = MegatronFlops(shape, 516, 2048, recompute);
    EXPECT_NEAR(StepSeconds(row, shape, job, recompute) * 137e12 * 36 / flops, 1, 1e-12);
  }
}

std::string ErrorOf(const Row& row, int data_parallel = 0, int micro_batch = 1) {
  Job job = JobOf(row, "a100-80gb", 2048);
  job.data_parallel = data_parallel;
  job.micro_batch = micro_batch;
  const absl::Status status = CheckJob(row, ShapeOf(row, 51200, 2048), job);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Gpt, WhatNoPlanFitsIsNamedByItsColumn) {
  EXPECT_EQ(ErrorOf(TableRow({"1.7", "23", "2304", "24", "1", "1", "8", "16", "137"})),
            "t.csv:7: column heads: 23 do not divide hidden 2304; every head has the same width");
  EXPECT_EQ(ErrorOf(TableRow({"1.7", "24", "2304", "24", "16", "1", "16", "16", "137"})),
            "t.csv:7: column tp: 16 does not divide 24 heads; use a divisor");
  EXPECT_EQ(
      ErrorOf(TableRow({"1.7", "24", "2304", "24", "8", "2", "40", "16", "137"})),
      "t.csv:7: column gpus: 40 are not a multiple of tp * pp = 8 * 2; data parallelism takes "
      "whole pipelines");
  EXPECT_THAT(ErrorOf(TableRow({"1.7", "24", "2304", "24", "8", "8", "32", "16", "137"})),
              HasSubstr("column gpus: 32 are not a multiple of tp * pp = 8 * 8"));
  EXPECT_THAT(ErrorOf(Good(), 5), HasSubstr("column gpus: 36 are not tp * pp * dp = 2 * 3 * 5"));
  EXPECT_EQ(ErrorOf(TableRow({"1.7", "24", "2304", "24", "1", "1", "32", "500", "137"})),
            "t.csv:7: column global_batch: 500 is not a multiple of dp = 32; every pipeline must "
            "get the same number of samples");
  EXPECT_THAT(ErrorOf(Good(), 6, 4), HasSubstr("column global_batch: 516"));
}

// Products beyond 32 bits are no multiples by chance: 65536 * 65536 is 0 in them.
TEST(Gpt, LargeProductsDoNotWrap) {
  const Row row = TableRow({"1", "65536", "65536", "24", "65536", "65536", "65536", "16", "137"});
  EXPECT_THAT(ErrorOf(row), HasSubstr("column gpus: "));
  EXPECT_THAT(ErrorOf(row, 1), HasSubstr("column gpus: "));
}

TEST(ChunksOf, DivideTheLayersOfAStage) {
  EXPECT_THAT(*ChunksOf(Good()), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(*ChunksOf(TableRow({"1", "24", "2304", "24", "1", "1", "8", "16", "137"})),
              ElementsAre(1));
  const auto uneven = ChunksOf(TableRow({"1", "24", "2304", "24", "1", "5", "40", "16", "137"}));
  EXPECT_EQ(uneven.status().message(), "t.csv:7: column pp: 5 does not divide 24 layers");
}

TEST(Gpt, PlanOf2021) {
  step::Plan plan;
  UsePlanOf2021(plan);
  EXPECT_TRUE(plan.no_sequence_parallel());
  EXPECT_TRUE(plan.no_distributed_optimizer());
  EXPECT_TRUE(plan.no_backward_overlap());
  EXPECT_TRUE(plan.synchronous_messages());
  EXPECT_EQ(plan.recompute(), step::Plan::RECOMPUTE_FULL);
}

}  // namespace
}  // namespace optimus::validation
