#include "traces/overlap_tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::uint32_t>;

RecordedRank Rank(const std::vector<std::pair<int, int>>& times) {
  RecordedRank rank;
  rank.lanes.push_back({"lane"});
  for (const auto& [start, end] : times) {
    RecordedOp op;
    op.start = Picoseconds(start);
    op.end = Picoseconds(end);
    rank.ops.push_back(op);
  }
  return rank;
}

std::vector<Ids> Deal(const RecordedRank& rank, bool nest) {
  Ids ids(rank.ops.size());
  std::iota(ids.begin(), ids.end(), 0U);
  return DealToTracks(rank, ids, nest);
}

TEST(OverlapTracksTest, OneTrackWhereNothingOverlaps) {
  EXPECT_THAT(Deal(Rank({{0, 5}, {5, 5}, {5, 9}, {12, 13}}), false), ElementsAre(Ids{0, 1, 2, 3}));
}

TEST(OverlapTracksTest, OrderOfBegin) {
  EXPECT_THAT(Deal(Rank({{7, 9}, {0, 5}}), false), ElementsAre(Ids{1, 0}));
}

TEST(OverlapTracksTest, OverlapsGoToFurtherTracks) {
  EXPECT_THAT(Deal(Rank({{0, 10}, {2, 4}, {3, 12}, {5, 6}, {11, 12}}), false),
              ElementsAre(Ids{0, 4}, Ids{1, 3}, Ids{2}));
}

TEST(OverlapTracksTest, CallsLieWithinOneAnother) {
  EXPECT_THAT(Deal(Rank({{2, 4}, {0, 10}, {0, 6}, {8, 11}}), true),
              ElementsAre(Ids{1, 2, 0}, Ids{3}));
}

// Whatever the times: each operation once, and every track can be drawn.
TEST(OverlapTracksTest, EveryTrackCanBeDrawn) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<int, int>> times;
    const int count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      const int start = static_cast<int>(random() % 30);
      times.emplace_back(start, start + static_cast<int>(random() % 10));
    }
    const RecordedRank rank = Rank(times);
    const bool nest = round % 2 == 0;
    std::vector<int> seen(times.size());
    bool first = true;
    for (const Ids& track : Deal(rank, nest)) {
      std::vector<Picoseconds> open;
      for (const std::uint32_t id : track) {
        ++seen[id];
        while (!open.empty() && open.back() <= rank.ops[id].start) open.pop_back();
        if (!open.empty()) {
          EXPECT_TRUE(nest && first);
          EXPECT_LE(rank.ops[id].end, open.back());
        }
        open.push_back(rank.ops[id].end);
      }
      first = false;
    }
    EXPECT_THAT(seen, ::testing::Each(1));
  }
}

// n log n also where every operation overlaps every other one.
TEST(OverlapTracksTest, ManyThatOverlap) {
  std::vector<std::pair<int, int>> times;
  times.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) times.emplace_back(i, 200'000 + i);
  EXPECT_EQ(Deal(Rank(times), true).size(), 100'000U);
}

}  // namespace
}  // namespace optimus::traces
