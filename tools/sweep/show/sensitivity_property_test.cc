// Matched pairs of random tables against comparing all pairs.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "tools/sweep/show/sensitivity.h"
#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

constexpr std::size_t kAxes = 3;

std::vector<Column> Axes() {
  return {TestingAxis("a", "INTEGER"), TestingAxis("b", "TEXT"), TestingAxis("c", "INTEGER")};
}

// Some combinations of 4 * 2 * 3 values, few or many of them; some twice, as results of the same
// axes are where something that is no axis differs.
std::vector<Observation> RandomObservations() {
  const int rarity = *rc::gen::element(0, 1, 4);
  std::vector<Observation> observations;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 2; ++b) {
      for (int c = 0; c < 3; ++c) {
        for (int copy = 0; copy < 2; ++copy) {
          if (*rc::gen::resize(100, rc::gen::inRange(0, 2 + rarity)) != 0) continue;
          observations.push_back(
              {{std::int64_t{7 - a}, std::string(b == 0 ? "x" : "y"), std::int64_t{c}},
               *rc::gen::inRange(1, 50) / 7.0});
        }
      }
    }
  }
  return observations;
}

bool DifferOnlyIn(std::size_t axis, const Observation& one, const Observation& other) {
  for (std::size_t i = 0; i < kAxes; ++i) {
    if ((one.axes[i] != other.axes[i]) != (i == axis)) return false;
  }
  return true;
}

struct Twin {
  std::int64_t pairs = 0;
  double logs = 0;
};

Twin ByAllPairs(std::size_t axis, const SqlValue& value, const SqlValue& reference,
                const std::vector<Observation>& observations) {
  Twin twin;
  for (const Observation& one : observations) {
    for (const Observation& other : observations) {
      if (one.axes[axis] != value || other.axes[axis] != reference) continue;
      if (!DifferOnlyIn(axis, one, other)) continue;
      ++twin.pairs;
      twin.logs += std::log(one.objective / other.objective);
    }
  }
  return twin;
}

bool HasPair(std::size_t axis, const SqlValue& value,
             const std::vector<Observation>& observations) {
  for (const Observation& one : observations) {
    for (const Observation& other : observations) {
      if (one.axes[axis] == value && DifferOnlyIn(axis, one, other)) return true;
    }
  }
  return false;
}

std::size_t PlaceOf(const std::string& name) { return static_cast<std::size_t>(name[0] - 'a'); }

void CheckEffect(const AxisEffect& effect, const std::vector<Observation>& observations) {
  const std::size_t axis = PlaceOf(effect.axis.name);
  bool referenced = false;
  for (const AxisValue& value : effect.values) {
    // The reference is the first value with a pair.
    if (!referenced && HasPair(axis, value.value, observations)) {
      referenced = true;
      RC_ASSERT(effect.reference.has_value() && *effect.reference == value.value);
      RC_ASSERT(value.ratio == 1.0);
      continue;
    }
    if (!effect.reference) {
      RC_ASSERT(!value.ratio.has_value());
      continue;
    }
    const Twin twin = ByAllPairs(axis, value.value, *effect.reference, observations);
    RC_ASSERT(value.pairs == twin.pairs);
    RC_ASSERT(value.ratio.has_value() == (twin.pairs > 0));
    if (!value.ratio) continue;
    const double expected = std::exp(twin.logs / static_cast<double>(twin.pairs));
    RC_ASSERT(std::abs(*value.ratio - expected) < 1e-9 * expected);
  }
  RC_ASSERT(referenced == effect.reference.has_value());
}

RC_GTEST_PROP(SensitivityPropertyTest, IsThatOfAllPairs, ()) {
  const std::vector<Observation> observations = RandomObservations();
  for (const AxisEffect& effect : AxisEffects(Axes(), observations, false)) {
    if (!effect.zipped.empty()) continue;
    CheckEffect(effect, observations);
  }
}

// Crossed with nothing left out, and a time that is a product: the factors come back.
TEST(SensitivityTest, FactorsOfAProductComeBack) {
  std::vector<Observation> observations;
  for (const int a : {1, 2, 4}) {
    for (const int b : {0, 1}) {
      observations.push_back({{std::int64_t{a}, std::string(b == 0 ? "slow" : "fast"), 1.5},
                              (b == 0 ? 6.0 : 2.0) / a});
    }
  }
  const auto effects = AxisEffects(Axes(), observations, false);
  ASSERT_EQ(effects.size(), 2);  // c has one value
  EXPECT_EQ(effects[0].axis.name, "a");
  EXPECT_NEAR(*effects[0].spread, 4, 1e-12);
  EXPECT_EQ(effects[0].values[2].pairs, 2);
  EXPECT_NEAR(*effects[0].values[2].ratio, 0.25, 1e-12);
  EXPECT_NEAR(effects[0].values[0].best, 2, 1e-12);
  EXPECT_NEAR(effects[0].values[0].geometric_mean, std::sqrt(12), 1e-12);
  EXPECT_EQ(ToText(effects[1].values[0].value), "slow");  // as they come
  EXPECT_NEAR(*effects[1].spread, 3, 1e-12);
}

TEST(SensitivityTest, ZippedAxesAreComparedTogether) {
  std::vector<Observation> observations;
  for (const int a : {1, 2}) {
    for (const int c : {5, 6}) {
      const std::string b = a == 1 ? "x" : "y";
      observations.push_back({{std::int64_t{a}, b, std::int64_t{c}}, 1.0 * a * c});
    }
  }
  const auto effects = AxisEffects(Axes(), observations, false);
  ASSERT_EQ(effects.size(), 3);
  EXPECT_EQ(effects[0].axis.name, "a");
  EXPECT_EQ(effects[0].zipped, std::vector<std::string>{"b"});
  EXPECT_EQ(effects[0].values[1].pairs, 2);
  EXPECT_NEAR(*effects[0].spread, 2, 1e-12);
  EXPECT_EQ(effects[2].axis.name, "c");
  EXPECT_TRUE(effects[2].zipped.empty());
}

TEST(SensitivityTest, AxesThatNeverDifferAloneHaveNoPairs) {
  // dp * pp is 4, and c goes with neither alone.
  const std::vector<Observation> observations = {
      {{std::int64_t{1}, std::string("x"), std::int64_t{1}}, 1},
      {{std::int64_t{2}, std::string("y"), std::int64_t{1}}, 2},
      {{std::int64_t{3}, std::string("x"), std::int64_t{2}}, 3}};
  for (const AxisEffect& effect : AxisEffects(Axes(), observations, false)) {
    EXPECT_FALSE(effect.reference.has_value());
    EXPECT_FALSE(effect.spread.has_value());
    EXPECT_FALSE(effect.values[1].ratio.has_value());
  }
}

TEST(SensitivityTest, LeavesOutWhatHasNoMean) {
  const Database database = MakeTestingSweep(":memory:", {TestingAxis("tp", "INTEGER")},
                                             {{{std::int64_t{1}}, {{"bubble_s", 0.0}}},
                                              {{std::int64_t{2}}, {{"bubble_s", 2.0}}},
                                              {{std::int64_t{4}}, {}}})
                                .value();
  const About about = ReadAbout(database).value();
  const Aim aim = ParseAim(about, "", "bubble_s", true).value();
  const Sensitivity sensitivity = FindSensitivity(database, about, {}, aim).value();
  EXPECT_EQ(sensitivity.points, 1);
  EXPECT_EQ(sensitivity.left_out, 2);
  EXPECT_TRUE(sensitivity.axes.empty());
}

}  // namespace
}  // namespace optimus::sweep
