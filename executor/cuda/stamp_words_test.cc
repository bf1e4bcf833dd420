#include "executor/cuda/stamp_words.h"

#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

// What the GPU's kernel does.
bool Agree(const Stamp& a, const Stamp& b, std::uint32_t mask) {
  const StampWords x = ToWords(a);
  const StampWords y = ToWords(b);
  for (int word = 0; word < kStampWords; ++word) {
    if ((mask >> word & 1U) != 0 &&
        x[static_cast<std::size_t>(word)] != y[static_cast<std::size_t>(word)]) {
      return false;
    }
  }
  return true;
}

Stamp Example() {
  Stamp stamp;
  stamp.rank = 3;
  stamp.operation = 17;
  stamp.step = 2;
  stamp.micro_batch = 5;
  stamp.module = 1;
  stamp.layer = 7;
  stamp.chunk = 2;
  stamp.slice = 1;
  stamp.phase = 4;
  return stamp;
}

TEST(StampWords, AreTheStamp) { EXPECT_EQ(FromWords(ToWords(Example())), Example()); }

TEST(StampWords, MasksDoWhatTheComparisonsDo) {
  const Stamp stamp = Example();
  std::vector<Stamp> others(10, stamp);
  others[1].rank = 4;
  others[2].operation = 18;
  others[3].step = 3;
  others[4].micro_batch = 6;
  others[5].module = 2;
  others[6].layer = 8;
  others[7].chunk = 3;
  others[8].slice = 2;
  others[9].phase = 5;
  for (const Stamp& other : others) {
    EXPECT_EQ(Agree(stamp, other, kAllWords), stamp == other);
    EXPECT_EQ(Agree(stamp, other, kCollectiveWords), SameCollective(stamp, other));
  }
}

}  // namespace
}  // namespace optimus::executor::cuda
