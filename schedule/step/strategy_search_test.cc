#include "schedule/step/strategy_search.h"

#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Costs;
using ::testing::HasSubstr;
using testing::StepTime;

using Sizes = std::tuple<int, int, int>;
Sizes SizesOf(const Plan& plan) {
  return {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
}

Experiment Load(const std::string& name) {
  const auto experiment = LoadExperiment("examples/paper/" + name + ".textproto");
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return experiment.ok() ? *experiment : Experiment();
}

StrategySearch Search(Experiment experiment, const hw::ProfileCostModel& costs) {
  // The sizes of the file are not read.
  experiment.mutable_plan()->set_data_parallel(77);
  const auto search = SearchStrategyPlans(experiment, costs);
  EXPECT_TRUE(search.ok()) << search.status();
  return search.ok() ? *search : StrategySearch();
}

// Of the paper's small experiment; searched once for all tests.
const StrategySearch& SearchAlpa() {
  static const StrategySearch search = Search(Load("small_8xa100_alpa"), Costs("a100-80gb"));
  return search;
}

TEST(SearchStrategyPlans, TriesEveryFactorisationOnce) {
  const StrategySearch& search = SearchAlpa();
  std::set<Sizes> tried;
  for (const StrategyPlan& plan : search.ranked)
    EXPECT_TRUE(tried.insert(SizesOf(plan.plan)).second);
  for (const RejectedStrategyPlan& plan : search.rejected) {
    EXPECT_TRUE(
        tried.insert({plan.data_parallel, plan.pipeline_parallel, plan.tensor_parallel}).second);
    EXPECT_FALSE(plan.reason.empty());
  }
  std::set<Sizes> all;
  for (const int dp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4, 8}) {
      for (const int tp : {1, 2, 4, 8}) {
        if (dp * pp * tp == 8) all.insert({dp, pp, tp});
      }
    }
  }
  EXPECT_EQ(tried, all);
}

TEST(SearchStrategyPlans, RanksByTheCriticalPathOfStepsThatFit) {
  const auto costs = Costs("a100-80gb");
  const Experiment experiment = Load("small_8xa100_alpa");
  const StrategySearch& search = SearchAlpa();
  ASSERT_GE(search.ranked.size(), 2U);
  Picoseconds before;
  for (const StrategyPlan& plan : search.ranked) {
    EXPECT_GE(plan.step, before);
    before = plan.step;
    EXPECT_LE(plan.memory.total(), costs.memory_capacity());
    Experiment again = experiment;
    *again.mutable_plan() = plan.plan;
    EXPECT_EQ(StepTime(testing::Build(again, costs), costs), plan.step);
  }
}

// What the experiment files say of their plans.
TEST(SearchStrategyPlans, ThePapersSmallExperimentUsesTheFastest) {
  const auto costs = Costs("a100-80gb");
  const StrategySearch& alpa = SearchAlpa();
  ASSERT_FALSE(alpa.ranked.empty());
  EXPECT_EQ(SizesOf(alpa.ranked[0].plan), SizesOf(Load("small_8xa100_alpa").plan()));
  const Experiment experiment = Load("small_8xa100_fsdp");
  const StrategySearch fsdp = Search(experiment, costs);
  ASSERT_EQ(fsdp.ranked.size(), 1U);
  EXPECT_EQ(SizesOf(fsdp.ranked[0].plan), SizesOf(experiment.plan()));
}

TEST(SearchStrategyPlans, SaysWhyAPlanIsRejected) {
  const auto costs = Costs("a100-80gb");
  Experiment experiment = Load("small_8xa100_fsdp");
  experiment.mutable_plan()->clear_recompute();
  experiment.mutable_encoders(0)->set_sequences_per_sample(32);
  const StrategySearch search = Search(experiment, costs);
  EXPECT_TRUE(search.ranked.empty());
  ASSERT_EQ(search.rejected.size(), 1U);
  EXPECT_THAT(search.rejected[0].reason, HasSubstr("GPU memory: "));
  EXPECT_THAT(search.rejected[0].reason, HasSubstr("80.0 GiB there"));
}

TEST(SearchStrategyPlans, OnlyOfStrategiesWithNothingElseToPlan) {
  const auto search = SearchStrategyPlans(Load("small_8xa100_balanced"), Costs("a100-80gb"));
  EXPECT_THAT(std::string(search.status().message()), HasSubstr("plan.strategy: is PIPELINE"));
}

}  // namespace
}  // namespace optimus::step
