#include "tools/sweep/show/seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tools/sweep/show/answer.h"
#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

// tp 1, 2 and 4 by seeds 1, 2, 3. The luckiest draw is of tp 4, whose mean is the worst; a seed of
// tp 2 failed; nothing of tp 1 is drawn.
std::vector<TestingPoint> Draws() {
  const std::map<int, std::vector<double>> times = {
      {1, {5.1, 5.1, 5.1}}, {2, {5, 4.5, 0}}, {4, {9, 1, 8}}};
  std::vector<TestingPoint> points;
  for (const auto& [tp, draws] : times) {
    for (std::size_t i = 0; i < draws.size(); ++i) {
      TestingPoint point;
      point.axes = {std::int64_t{tp}, static_cast<std::int64_t>(i) + 1};
      point.metrics = {{"iteration_time_s", draws[i]},
                       {"memory_gib", 10.0},
                       {"fits", std::int64_t{1}},
                       {"world_gpus", std::int64_t{8}},
                       {"fidelity", std::string("folded")},
                       {"encoder_plans", std::string(tp == 4 && i == 1 ? "b" : "a")}};
      if (draws[i] == 0) {
        point.metrics.clear();
        point.status = kStatusFailed;
        point.error = "the engine stopped";
      }
      points.push_back(point);
    }
  }
  return points;
}

Database MakeDraws() {
  return MakeTestingSweep(
             ":memory:", {TestingAxis("tp", "INTEGER"), TestingAxis("seed", "INTEGER")}, Draws())
      .value();
}

Question ByTp() {
  Question question;
  question.group_by = {"tp"};
  question.columns = {"iteration_time_s"};
  return question;
}

TEST(SeedsTest, MeansAreThoseOfALoop) {
  const Database database = MakeDraws();
  About about = ReadAbout(database).value();
  const SeedMeans seeds = UseSeedMeans(database, {"iteration_time_s"}, about).value();
  EXPECT_EQ(seeds.fewest, 3);
  EXPECT_EQ(seeds.most, 3);
  EXPECT_EQ(about.Find("seed"), nullptr);
  const SqlTable table = database
                             .Query(
                                 "SELECT tp, point, iteration_time_s, iteration_time_s_least, "
                                 "iteration_time_s_most, seeds FROM sweep ORDER BY tp")
                             .value();
  std::map<std::int64_t, std::vector<double>> ran;
  for (const TestingPoint& point : Draws()) {
    if (point.status != kStatusOk) continue;
    ran[Integer(point.axes[0])].push_back(*ToNumber(point.metrics.at("iteration_time_s")));
  }
  ASSERT_EQ(table.rows.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& row = table.rows[i];
    const std::vector<double>& draws = ran.at(Integer(row[0]));
    double sum = 0;
    for (const double draw : draws) sum += draw;
    EXPECT_EQ(Integer(row[1]), static_cast<std::int64_t>(3 * i));
    EXPECT_NEAR(*ToNumber(row[2]), sum / static_cast<double>(draws.size()), 1e-12);
    EXPECT_EQ(*ToNumber(row[3]), *std::min_element(draws.begin(), draws.end()));
    EXPECT_EQ(*ToNumber(row[4]), *std::max_element(draws.begin(), draws.end()));
    EXPECT_EQ(Integer(row[5]), std::ssize(draws));
  }
  EXPECT_EQ(*ToNumber(table.rows[0][2]), 5.1) << "what no seed changes stays to the last bit";
}

TEST(SeedsTest, TextsStayWhereTheyAreEqualAndStatusIsOkWhereOneRan) {
  const Database database = MakeDraws();
  About about = ReadAbout(database).value();
  ASSERT_TRUE(UseSeedMeans(database, {}, about).ok());
  const SqlTable table =
      database.Query("SELECT fidelity, encoder_plans, status, world_gpus FROM sweep ORDER BY tp")
          .value();
  const std::vector<SqlValue> same = {std::string("folded"), std::string("a"), std::string("ok"),
                                      std::int64_t{8}};
  EXPECT_EQ(table.rows[0], same);
  EXPECT_EQ(table.rows[1], same);
  EXPECT_EQ(table.rows[2][1], SqlValue());
}

TEST(SeedsTest, TheBestIsNotTheLuckiestDraw) {
  const Database database = MakeDraws();
  Question question;
  question.top = 1;
  const Answer means = Ask(database, question).value();
  EXPECT_EQ(means.best->of, 3);
  EXPECT_EQ(Integer(means.best->table.rows[0][1]), 2);
  EXPECT_EQ(means.summary.seeds_missing, 1);
  EXPECT_EQ(means.summary.seeds_asked, 9);
  EXPECT_EQ(means.summary.counts.ok, 8) << "counts are of points";
  EXPECT_THAT(
      means.best->table.columns,
      ::testing::IsSupersetOf({"iteration_time_s_least", "iteration_time_s_most", "seeds"}));

  const Database other = MakeDraws();
  question.per_seed = true;
  const Answer single = Ask(other, question).value();
  EXPECT_EQ(single.best->of, 8);
  EXPECT_EQ(Integer(single.best->table.rows[0][1]), 4);
  EXPECT_FALSE(single.filter.seeds.on());
}

TEST(SeedsTest, ErrorsAreOfSinglePoints) {
  const Database database = MakeDraws();
  Question question = ByTp();
  question.errors = true;
  const Answer answer = Ask(database, question).value();
  ASSERT_EQ(answer.errors->groups.size(), 1);
  EXPECT_EQ(answer.errors->groups[0].example, 5);
  EXPECT_EQ(answer.errors->axes.size(), 2);
  EXPECT_EQ(answer.groups->table.rows.size(), 3);
}

TEST(SeedsTest, AskingForTheSeedSaysHowToGetIt) {
  const Database database = MakeDraws();
  Question question;
  question.filter.where = "seed = 2";
  EXPECT_THAT(std::string(Ask(database, question).status().message()), HasSubstr("--per-seed"));
  const Database other = MakeDraws();
  question = ByTp();
  question.group_by = {"seed"};
  EXPECT_THAT(std::string(Ask(other, question).status().message()), HasSubstr("--per-seed"));
}

TEST(SeedsTest, WithoutDrawsToAverageNothingChanges) {
  const Database none = MakeTestingPlans(":memory:", {512}).value();
  About about = ReadAbout(none).value();
  const std::size_t columns = about.columns.size();
  EXPECT_FALSE(UseSeedMeans(none, {"iteration_time_s"}, about)->on());
  EXPECT_EQ(about.columns.size(), columns);
  // One seed for each point: there is nothing to take means over.
  const Database zipped =
      MakeTestingSweep(":memory:", {TestingAxis("tp", "INTEGER"), TestingAxis("seed", "INTEGER")},
                       {{{std::int64_t{1}, std::int64_t{1}}, {{"iteration_time_s", 2.0}}},
                        {{std::int64_t{2}, std::int64_t{2}}, {{"iteration_time_s", 1.0}}}})
          .value();
  about = ReadAbout(zipped).value();
  EXPECT_FALSE(UseSeedMeans(zipped, {"iteration_time_s"}, about)->on());
  EXPECT_NE(about.Find("seed"), nullptr);
}

TEST(SeedsTest, AnAxisMayBeTheOnlyOneAndOthersMayHaveOurNames) {
  const Database database =
      MakeTestingSweep(
          ":memory:",
          {TestingAxis("seed", "INTEGER"), TestingAxis("seeds", "INTEGER"),
           TestingAxis("iteration_time_s_most", "INTEGER")},
          {{{std::int64_t{1}, std::int64_t{7}, std::int64_t{8}}, {{"iteration_time_s", 2.0}}},
           {{std::int64_t{2}, std::int64_t{7}, std::int64_t{8}}, {{"iteration_time_s", 1.0}}}})
          .value();
  const Answer answer = Ask(database, {}).value();
  ASSERT_EQ(answer.best->table.rows.size(), 1);
  EXPECT_EQ(Integer(answer.best->table.rows[0][1]), 7);
  EXPECT_EQ(Integer(answer.best->table.rows[0][2]), 8);
  EXPECT_EQ(*ToNumber(answer.best->table.rows[0][3]), 1.5);
}

}  // namespace
}  // namespace optimus::sweep
