// What plots say of the points they are made of, and the order of names in them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/show/plot_pieces.h"
#include "tools/sweep/show/plot_question.h"
#include "tools/sweep/show/seeds.h"
#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Names against the alphabet: "z" is the first of the sweep. Times span a factor of 100 by tp.
Database MakeNames() {
  std::vector<TestingPoint> points;
  for (const char* name : {"z", "m", "a"}) {
    for (const int tp : {1, 2}) {
      if (tp == 2 && *name == 'm') continue;  // an empty cell
      points.push_back({{std::string(name), std::int64_t{tp}},
                        {{"iteration_time_s", tp == 1 ? 1.0 : 100.0},
                         {"memory_gib", 3.0},
                         {"world_gpus", std::int64_t{8} * tp}}});
    }
  }
  return MakeTestingSweep(
             ":memory:", {TestingAxis("strategy", "TEXT"), TestingAxis("tp", "INTEGER")}, points)
      .value();
}

class PlotWordsTest : public ::testing::Test {
 protected:
  std::string Script(const PlotQuestion& question, const Filter& filter = {}) const {
    const absl::StatusOr<std::string> script = PlotScript(database_, about_, filter, question);
    return script.ok() ? *script : std::string(script.status().message());
  }
  Database database_ = MakeNames();
  About about_ = ReadAbout(database_).value();
  PlotQuestion heat_ = {"heat-map", "tp", "strategy", "", ""};
  PlotQuestion scaling_ = {"scaling", "tp", "", "", "strategy"};
};

TEST_F(PlotWordsTest, NamesStandInTheOrderOfTheSweepFromTheTopDown) {
  const std::string heat = Script(heat_);
  EXPECT_THAT(heat, HasSubstr("set ytics ('z' 0, 'm' 1, 'a' 2)"));
  EXPECT_THAT(heat, HasSubstr("set yrange [2.5:-0.5]"));
  EXPECT_THAT(Script({"heat-map", "strategy", "tp", "", ""}), HasSubstr("set yrange [-0.5:1.5]"));
  const std::string scaling = Script(scaling_);
  EXPECT_LT(scaling.find("title 'z'"), scaling.find("title 'm'"));
  EXPECT_LT(scaling.find("title 'm'"), scaling.find("title 'a'"));
}

TEST_F(PlotWordsTest, OnlyWhatIsEmptyIsExplained) {
  EXPECT_THAT(Script(heat_), HasSubstr("; empty: nothing ran or fits'"));
  EXPECT_THAT(Script(heat_, {"", true}), HasSubstr("; empty: nothing ran'"));
  const std::string some = Script(heat_, {"tp = 1 OR strategy = 'z'", true});
  EXPECT_THAT(some, HasSubstr("'only where tp = 1 OR strategy = ''z''; "));
  EXPECT_THAT(some, HasSubstr("empty: left out"));
  EXPECT_THAT(Script(heat_, {"tp = 1", true}), Not(HasSubstr("empty:")));
}

TEST_F(PlotWordsTest, EveryKindSaysWhereAndWhatIsLogarithmic) {
  const Filter where{"tp < 3", true};
  for (const PlotQuestion& question : {heat_, scaling_, PlotQuestion{"pareto", "", "", "", ""}}) {
    EXPECT_THAT(Script(question, where), HasSubstr("'only where tp < 3; "));
    EXPECT_THAT(Script(question), Not(HasSubstr("only where")));
  }
  EXPECT_THAT(Script(heat_), HasSubstr("; log colours"));
  EXPECT_THAT(Script(heat_, {"tp = 1", true}), Not(HasSubstr("log colours")));
  EXPECT_THAT(Script(scaling_), HasSubstr("; log y axis"));
  EXPECT_THAT(Script({"pareto", "", "", "", ""}), HasSubstr("; log x axis"));
}

TEST_F(PlotWordsTest, ScalingGoesAlongWhatIsGiven) {
  EXPECT_THAT(Script({"scaling", "memory_gib", "", "", ""}),
              StartsWith("--x: column \"memory_gib\""));
  EXPECT_THAT(Script({"scaling", "memory_gib", "", "", ""}), HasSubstr("--plot=pareto"));
  EXPECT_THAT(Script({"scaling", "world_gpus", "", "", ""}), StartsWith("# optimus sweep show"));
}

TEST(ScopeTextTest, LongConditionsAreCutBetweenLetters) {
  std::string where(89, 'a');
  where += "\u00e9" + std::string(50, 'b');  // its second byte is the 91st
  EXPECT_EQ(ScopeText({where, false}), "only where " + std::string(89, 'a') + "...; ");
  EXPECT_EQ(ScopeText({"", false, {2, 4}}), "means over 2 to 4 seeds; ");
  EXPECT_EQ(ScopeText({"", false, {4, 4}}), "means over 4 seeds; ");
}

}  // namespace
}  // namespace optimus::sweep
