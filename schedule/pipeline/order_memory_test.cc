#include "schedule/pipeline/order_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/zb_h1.h"

namespace optimus::pipeline {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OrderMemoryTest, GPipeHoldsAll) { EXPECT_THAT(*PeakActivations(*GPipe(3, 7)), Each(7)); }

// Korthikanti et al., arXiv 2205.05198, section 4.2.3: stage s holds p - s micro-batches.
TEST(OrderMemoryTest, OneFOneBHoldsStagesMinusStage) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      const auto peaks = *PeakActivations(*OneForwardOneBackward(p, m));
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(peaks[s], std::min(p - s, m)) << p << ", " << m << ", " << s;
      }
    }
  }
}

// Same source: stage 0 of the interleaved schedule holds 1 + (p - 1) / (p V) as much as 1F1B:
// p V + p - 1 chunks.
TEST(OrderMemoryTest, InterleavedStageZero) {
  EXPECT_EQ((*PeakActivations(*Interleaved({4, 3, 8})))[0], 4 * 3 + 3);
}

// By hand: stage 1 of H1(2, 3) is F0 B0 F1 B1 W0 F2 B2 W1 W2.
TEST(OrderMemoryTest, SharesByHand) {
  const auto order = ZbH1(2, 3);
  EXPECT_THAT(*PeakActivations(*order), ElementsAre(2, 2));
  EXPECT_THAT(*PeakActivations(*order, {0.25}), ElementsAre(2, 1.25));
  EXPECT_THAT(*PeakActivations(*order, {0}), ElementsAre(2, 1));
  // Weight gradients may need more than forwards leave.
  EXPECT_THAT(*PeakActivations(*order, {1.5}), ElementsAre(2.5, 3));
  EXPECT_THAT(*PeakActivations(*order, {1, {1.5, 0.25}}), ElementsAre(2.5, 1.25));
}

TEST(OrderMemoryTest, Refusals) {
  EXPECT_THAT(PeakActivations(*ZbH1(2, 3), {std::nan("")}).status().message(),
              HasSubstr("0 or more"));
  EXPECT_THAT(PeakActivations(*ZbH1(2, 3), {-0.1}).status().message(), HasSubstr("0 or more"));
  EXPECT_FALSE(PeakActivations(Order{}).ok());
  EXPECT_THAT(PeakActivations(*ZbH1(2, 3), {1, {1}}).status().message(),
              HasSubstr("1 shares for 2 pipeline stages"));
}

}  // namespace
}  // namespace optimus::pipeline
