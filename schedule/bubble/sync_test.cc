#include "schedule/bubble/sync.h"

#include <gtest/gtest.h>

#include "schedule/ir/schedule.h"

namespace optimus::bubble {
namespace {

Picoseconds Ps(std::int64_t value) { return Picoseconds(value); }
Interval Span(std::int64_t start, std::int64_t end) { return {Ps(start), Ps(end)}; }

// Four LLM stages, reduced at 100, 110, 120, 130.
Problem FourStages() {
  Problem problem;
  for (int d = 0; d < 4; ++d) {
    problem.llm.stages.emplace_back().gradients_reduced = Ps(100 + 10 * d);
  }
  problem.llm.step = Ps(130);
  return problem;
}

EncoderWork Encoder(std::int32_t stages) {
  EncoderWork encoder;
  encoder.plan.pipeline_parallel = stages;
  return encoder;
}

TEST(BucketOf, TheProjectorIsTheLastLayer) {
  const std::vector<EncoderSync::Bucket> buckets = {
      {0, 3, Ps(1), 0}, {4, 7, Ps(1), 0}, {8, ir::kProjectorLayer, Ps(1), 0}};
  EXPECT_EQ(BucketOf(buckets, 0), 0);
  EXPECT_EQ(BucketOf(buckets, 7), 1);
  EXPECT_EQ(BucketOf(buckets, 9), 2);
  EXPECT_EQ(BucketOf(buckets, ir::kProjectorLayer), 2);
  EXPECT_EQ(BucketOf({{0, 3, Ps(1), 0}}, 4), -1);
  EXPECT_EQ(BucketOf({{ir::kProjectorLayer, ir::kProjectorLayer, Ps(1), 0}}, 4), -1);
}

TEST(Gathers, OfASecondEncoderWaitForTheFirst) {
  Problem problem = FourStages();
  problem.encoders = {Encoder(2), Encoder(1)};
  problem.encoders[0].sync.gathers = {{{0, 0, Ps(3), 0}, {1, 1, Ps(4), 0}}, {{2, 2, Ps(9), 0}}};
  problem.encoders[1].sync.gathers = {{{0, 0, Ps(5), 0}}};
  const auto gathers = PlaceGathers(problem);
  EXPECT_EQ(gathers[0][0], (std::vector<Interval>{Span(0, 3), Span(3, 7)}));
  EXPECT_EQ(gathers[0][1], (std::vector<Interval>{Span(0, 9)}));
  // All four stages take part in it, so it waits for the slowest card.
  EXPECT_EQ(gathers[1][0], (std::vector<Interval>{Span(9, 14)}));
  EXPECT_EQ(LeastShift(problem), Ps(14));
}

TEST(Reductions, WaitForCardsAndForGradients) {
  EncoderWork encoder = Encoder(2);
  encoder.sync.reductions = {{{1, 1, Ps(10), 0}, {0, 0, Ps(10), 0}}, {{2, 2, Ps(10), 0}}};
  std::vector<Picoseconds> cards = LlmReductionEnds(FourStages());
  const auto placed = PlaceReductions(encoder, {{Ps(50), Ps(140)}, {Ps(131)}}, cards);
  // Encoder stage 0 is on stages 0 and 2, whose later card is free at 120.
  EXPECT_EQ(placed[0], (std::vector<Interval>{Span(120, 130), Span(140, 150)}));
  EXPECT_EQ(placed[1], (std::vector<Interval>{Span(131, 141)}));
  EXPECT_EQ(cards, (std::vector<Picoseconds>{Ps(150), Ps(141), Ps(150), Ps(141)}));
}

TEST(LeastEnd, IsThatOfReductionsThatNeverWait) {
  const Problem problem = FourStages();
  EncoderWork encoder = Encoder(1);
  EXPECT_EQ(LeastEnd(encoder, LlmTail(problem)), Ps(130));
  encoder.sync.reductions = {{{1, 1, Ps(10), 0}, {0, 0, Ps(7), 0}}};
  EXPECT_EQ(LeastEnd(encoder, LlmTail(problem)), Ps(147));
}

}  // namespace
}  // namespace optimus::bubble
