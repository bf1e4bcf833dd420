#include "base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "base/cost_model.h"

namespace optimus {
namespace {

TEST(Units, ArithmeticKeepsTheUnit) {
  EXPECT_EQ(Bytes(3) + Bytes(4), Bytes(7));
  EXPECT_EQ(Bytes(3) - Bytes(4), Bytes(-1));
  EXPECT_EQ(-Bytes(3), Bytes(-3));
  EXPECT_EQ(Bytes(3) * 4, Bytes(12));
  EXPECT_EQ(4 * Bytes(3), Bytes(12));
  Picoseconds t(5);
  t += Picoseconds(2);
  t -= Picoseconds(10);
  EXPECT_EQ(t, Picoseconds(-3));
  EXPECT_LT(t, Picoseconds());
}

TEST(Units, DifferentUnitsDoNotMix) {
  EXPECT_FALSE((std::is_convertible_v<Bytes, Picoseconds>));
  EXPECT_FALSE((std::is_convertible_v<std::int64_t, Bytes>));
  EXPECT_FALSE((std::is_convertible_v<Bytes, std::int64_t>));
}

TEST(Units, SecondsRoundToAPicosecond) {
  EXPECT_EQ(FromSeconds(1.0), Picoseconds(1'000'000'000'000));
  EXPECT_EQ(FromSeconds(0.4e-12), Picoseconds(0));
  EXPECT_EQ(FromSeconds(0.6e-12), Picoseconds(1));
  EXPECT_EQ(FromSeconds(-0.6e-12), Picoseconds(-1));
  EXPECT_DOUBLE_EQ(ToSeconds(Picoseconds(1'500'000'000'000)), 1.5);
}

// A duration beyond what fits must not come back as a short or negative one.
TEST(Units, RoundingSaturates) {
  const Picoseconds most(kLargestRounded);
  EXPECT_EQ(FromSeconds(1e7), most);
  EXPECT_EQ(FromSeconds(1e300), most);
  EXPECT_EQ(FromSeconds(INFINITY), most);
  EXPECT_EQ(FromSeconds(NAN), most);
  EXPECT_EQ(FromSeconds(-1e300), -most);
  EXPECT_EQ(FromSeconds(1e6), Picoseconds(1'000'000'000'000'000'000));
  EXPECT_EQ(TransferTime(Bytes(1), BytesPerSecond(1e-300)), most);
  EXPECT_EQ(TransferTime(Bytes(0), BytesPerSecond(0)), most);
  EXPECT_EQ(ComputeTime(Flops(1e300), FlopsPerSecond(1)), most);
  EXPECT_GT(most + most + most, most);  // a latency, a transfer and a launch still add up
  EXPECT_EQ(RoundToBytes(1e300), Bytes(kLargestRounded));
  EXPECT_EQ(RoundToBytes(2.5), Bytes(3));
}

TEST(Units, SubMicrosecondKernelsAddUpExactly) {
  Picoseconds sum;
  for (int i = 0; i < 1'000'000; ++i) sum += FromSeconds(0.1e-6);
  EXPECT_EQ(sum, FromSeconds(0.1));
}

TEST(Units, TransferAndComputeTimes) {
  EXPECT_EQ(TransferTime(Bytes(1'000), BytesPerSecond(1e9)), FromSeconds(1e-6));
  EXPECT_EQ(ComputeTime(Flops(2e12), FlopsPerSecond(1e15)), FromSeconds(2e-3));
  EXPECT_DOUBLE_EQ(ToGib(Bytes(3LL << 29)), 1.5);
}

// Only the link's bandwidth matters to UncontendedTime.
class TwoLinks : public CostModel {
 public:
  Picoseconds KernelTime(const Kernel&) const override { return {}; }
  TransferCost CollectiveCost(const CollectiveWork&, GroupShape) const override { return {}; }
  TransferCost SendCost(Bytes, bool) const override { return {}; }
  BytesPerSecond LinkBandwidth(LinkScope scope) const override {
    return BytesPerSecond(scope == LinkScope::kNvlink ? 4e12 : 1e12);
  }
  int gpus_per_node() const override { return 8; }
};

TEST(CostModel, UncontendedTimeIsLatencyPlusBytesOverItsLink) {
  const TwoLinks links;
  const auto time = [&](LinkScope scope) {
    return UncontendedTime(links, {Picoseconds(7), Bytes(100), scope});
  };
  EXPECT_EQ(time(LinkScope::kNvlink), Picoseconds(7 + 25));
  EXPECT_EQ(time(LinkScope::kNic), Picoseconds(7 + 100));
  EXPECT_EQ(time(LinkScope::kNone), Picoseconds(7));
}

}  // namespace
}  // namespace optimus
