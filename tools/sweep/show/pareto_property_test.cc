// The front of random tables against comparing all pairs.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tools/sweep/show/pareto.h"
#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

using Rows = std::vector<std::vector<double>>;

bool Beats(const Rows& rows, std::size_t a, std::size_t b) {
  bool better = false;
  for (std::size_t i = 0; i < rows[a].size(); ++i) {
    if (rows[a][i] > rows[b][i]) return false;
    if (rows[a][i] < rows[b][i]) better = true;
  }
  return better || a < b;  // of equals, the first stays
}

std::vector<std::size_t> ByAllPairs(const Rows& rows) {
  std::vector<std::size_t> front;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    bool beaten = false;
    for (std::size_t a = 0; a < rows.size(); ++a) {
      beaten = beaten || (a != b && Beats(rows, a, b));
    }
    if (!beaten) front.push_back(b);
  }
  return front;
}

// Few different values: ties and equals are common.
Rows RandomRows() {
  const auto measures = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
  const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 60));
  const int values = *rc::gen::element(2, 5, 1000);
  Rows rows(count, std::vector<double>(measures));
  for (auto& row : rows) {
    for (double& value : row) value = *rc::gen::inRange(-values, values);
  }
  return rows;
}

RC_GTEST_PROP(ParetoPropertyTest, IsThatOfAllPairs, ()) {
  const Rows rows = RandomRows();
  std::vector<std::size_t> front = ParetoFront(rows);
  for (std::size_t i = 1; i < front.size(); ++i) RC_ASSERT(rows[front[i - 1]] < rows[front[i]]);
  std::sort(front.begin(), front.end());
  RC_ASSERT(front == ByAllPairs(rows));
}

TEST(ParetoTest, GoesByWhatIsGood) {
  const Database database = MakeTestingPlans(":memory:", {3072}).value();
  const About about = ReadAbout(database).value();
  const std::vector<Column> columns = FindColumns(about, "", {"point", "fits"}).value();
  const std::vector<Aim> aims = {ParseAim(about, "", "mfu_percent", true).value(),
                                 ParseAim(about, "", "memory_gib", true).value()};
  const Front front = FindFront(database, columns, {}, aims).value();
  ASSERT_GT(front.members.size(), 2);
  for (std::size_t i = 1; i < front.members.size(); ++i) {
    const auto& before = front.values[front.members[i - 1]];
    const auto& after = front.values[front.members[i]];
    EXPECT_GT(before[0], after[0]);  // MFU falls
    EXPECT_GT(before[1], after[1]);  // and so does memory
  }
  EXPECT_EQ(ToText(front.table.rows[front.members[0]][1]), "1");
}

TEST(ParetoTest, PointsWithoutAMeasureAreCounted) {
  const Database database =
      MakeTestingSweep(":memory:", {TestingAxis("tp", "INTEGER")},
                       {{{std::int64_t{1}}, {{"iteration_time_s", 2.0}, {"memory_gib", 1.0}}},
                        {{std::int64_t{2}}, {{"iteration_time_s", 1.0}}}})
          .value();
  const About about = ReadAbout(database).value();
  const std::vector<Aim> aims = {ParseAim(about, "", "iteration_time_s", true).value(),
                                 ParseAim(about, "", "memory_gib", true).value()};
  const Front front = FindFront(database, {}, {}, aims).value();
  EXPECT_EQ(front.members.size(), 1);
  EXPECT_EQ(front.without, 1);
}

}  // namespace
}  // namespace optimus::sweep
