#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {
namespace {

Stragglers Some(double share, double from, double to) {
  Stragglers stragglers;
  stragglers.set_share(share);
  stragglers.set_factor_from(from);
  stragglers.set_factor_to(to);
  return stragglers;
}

TEST(StragglersTest, AsManyAsAskedForWithinTheirBounds) {
  for (const double share : {0.0, 0.01, 0.5, 1.0}) {
    const auto slow = DrawStragglers(Some(share, 1.1, 1.4), 128, 7);
    EXPECT_EQ(slow.size(), std::max<std::size_t>(1, std::lround(share * 128)));
    std::set<int> ranks;
    for (const auto& gpu : slow) {
      EXPECT_TRUE(ranks.insert(gpu.rank()).second);
      EXPECT_GE(gpu.rank(), 0);
      EXPECT_LT(gpu.rank(), 128);
      EXPECT_GE(gpu.factor(), 1.1);
      EXPECT_LT(gpu.factor(), 1.4);
    }
  }
}

TEST(StragglersTest, TheSameSeedDrawsTheSame) {
  const auto text = [](std::int64_t seed) {
    std::string out;
    for (const auto& gpu : DrawStragglers(Some(0.1, 1, 2), 64, seed)) out += gpu.DebugString();
    return out;
  };
  EXPECT_EQ(text(3), text(3));
  EXPECT_NE(text(3), text(4));
}

// Over many seeds every rank is as likely: 2,000 draws of 4 out of 16, so 500 of each; six standard
// deviations are 116.
TEST(StragglersTest, EveryRankIsAsLikely) {
  std::vector<int> hits(16);
  for (int seed = 0; seed < 2000; ++seed) {
    for (const auto& gpu : DrawStragglers(Some(0.25, 1, 2), 16, seed)) {
      ++hits[static_cast<std::size_t>(gpu.rank())];
    }
  }
  for (const int count : hits) EXPECT_NEAR(count, 500, 116);
}

}  // namespace
}  // namespace optimus::sweep
