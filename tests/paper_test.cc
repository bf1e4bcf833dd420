// The paper's main experiment, simulated. Source of the published times: Feng et al., ATC 2025,
// strong scaling at 3072 GPUs (paper digest and calibration notes). No constant was fitted on these
// rows.

#include <ostream>

#include "gtest/gtest.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

struct Published {
  const char* file;
  double seconds;
};

void PrintTo(const Published& row, std::ostream* out) { *out << row.file; }

class StrongScaling3072 : public ::testing::TestWithParam<Published> {};

TEST_P(StrongScaling3072, WithinThreePercentOfThePaper) {
  const auto built = testing::BuildFile(GetParam().file);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kAuto);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_NEAR(ToSeconds(timeline->step), GetParam().seconds, 0.03 * GetParam().seconds);
}

TEST_P(StrongScaling3072, EveryGpuAccountsForTheWholeStep) {
  const auto built = testing::BuildFile(GetParam().file);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kGroup);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  ASSERT_EQ(timeline->entities.size(), 384U);
  for (const ir::EntityAccount& entity : timeline->entities) {
    EXPECT_EQ(entity.account.total(), timeline->step) << "rank " << entity.rank;
    EXPECT_GT(entity.account.compute, Picoseconds(0)) << "rank " << entity.rank;
  }
}

// Pipeline messages of one GPU never share a link in this plan except where forward and backward
// sends meet on one network card, so the contention-free runner is a lower bound and close.
TEST_P(StrongScaling3072, CriticalPathIsALowerBoundWithinOnePercent) {
  const auto built = testing::BuildFile(GetParam().file);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto simulated = testing::Simulate(*built, sim::Fidelity::kFolded, /*spans=*/false,
                                           /*interference=*/false);
  ASSERT_TRUE(simulated.ok()) << simulated.status();
  const auto bound = ir::CriticalPathRunner(*built->costs).Run(built->step.schedule);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_LE(bound->step, simulated->step);
  EXPECT_NEAR(ToSeconds(bound->step), ToSeconds(simulated->step), 0.01 * ToSeconds(bound->step));
}

INSTANTIATE_TEST_SUITE_P(
    Paper, StrongScaling3072,
    ::testing::Values(Published{"examples/paper/strong_3072_megatron.textproto", 5.91},
                      Published{"examples/paper/strong_3072_balanced.textproto", 5.87}));

}  // namespace
}  // namespace optimus
