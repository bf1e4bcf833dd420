// Goldens of the scripts, which hold the data: OPTIMUS_BLESS=1 rewrites them. Look at the plots
// then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tools/sweep/show/gnuplot.h"
#include "tools/sweep/show/plot_pieces.h"
#include "tools/sweep/show/plot_question.h"
#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string GoldenPath(const std::string& name) {
  return absl::StrCat("tools/sweep/show/golden/", name, ".gp");
}

void ExpectGolden(const std::string& name, const std::string& script) {
  if (std::getenv("OPTIMUS_BLESS") != nullptr) std::ofstream(GoldenPath(name)) << script;
  EXPECT_EQ(script, ReadFile(GoldenPath(name)).value_or("no golden"))
      << "if the change is meant, run this test with OPTIMUS_BLESS=1 and look at the plots";
}

class PlotTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Script(const Filter& filter, const PlotQuestion& question) const {
    return PlotScript(database_, about_, filter, question);
  }
  std::string Error(const PlotQuestion& question, const Filter& filter = {}) const {
    return std::string(Script(filter, question).status().message());
  }

  Database database_ = MakeTestingPlans(":memory:", {512, 1536, 3072, 24576}).value();
  About about_ = ReadAbout(database_).value();
};

const PlotQuestion& Scaling() {
  static const auto* const question = new PlotQuestion{"scaling", "gpus", "", "", "strategy"};
  return *question;
}
const PlotQuestion& HeatMap() {
  static const auto* const question = new PlotQuestion{"heat-map", "tp", "pp", "mfu_percent", ""};
  return *question;
}
const PlotQuestion& Pareto() {
  static const auto* const question = new PlotQuestion{"pareto", "", "", "", ""};
  return *question;
}

TEST_F(PlotTest, Goldens) {
  ExpectGolden("scaling", Script({}, Scaling()).value());
  ExpectGolden("heat_map", Script({"gpus = 3072", false}, HeatMap()).value());
  ExpectGolden("pareto", Script({"gpus = 3072 and v = 6", true}, Pareto()).value());
}

// The golden's data, computed anew without SQL.
TEST_F(PlotTest, LinesAreTheBestOverAllElse) {
  double best = 1e9;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4, 8, 16}) {
      for (const int v : {1, 2, 6, 12}) {
        if ((pp == 1 && v > 1) || TestingMemoryGib(tp, pp, v) > 80) continue;
        best = std::min(best, TestingTime(0, 24576, tp, pp, v));
      }
    }
  }
  EXPECT_THAT(Script({}, Scaling()).value(),
              HasSubstr(absl::StrCat("\n24576 ", DataNumber(best), "\n")));
}

TEST_F(PlotTest, GnuplotDrawsThemAll) {
  for (const PlotQuestion& question : {Scaling(), HeatMap(), Pareto()}) {
    const std::string script = Script({}, question).value();
    const absl::StatusOr<std::string> png = DrawPlot(script, PlotFormat::kPng);
    ASSERT_TRUE(png.ok()) << png.status();
    EXPECT_THAT(*png, StartsWith("\x89PNG\r\n"));
    const absl::StatusOr<std::string> svg = DrawPlot(script, PlotFormat::kSvg);
    ASSERT_TRUE(svg.ok()) << svg.status();
    EXPECT_THAT(*svg, HasSubstr("</svg>"));
    EXPECT_THAT(*svg, HasSubstr(">a_test: "));
    EXPECT_EQ(*svg, DrawPlot(script, PlotFormat::kSvg).value());
  }
}

TEST_F(PlotTest, OneSeriesOnePointIsStillAPlot) {
  const Filter one{"point = (SELECT MIN(point) FROM sweep WHERE fits = 1)", false};
  for (const PlotQuestion& question : {Scaling(), HeatMap(), Pareto()}) {
    const absl::StatusOr<std::string> svg =
        DrawPlot(Script(one, question).value(), PlotFormat::kSvg);
    EXPECT_TRUE(svg.ok()) << svg.status();
  }
}

// Names come from outside: none of this may be run, end the data, or break a line.
TEST(PlotNamesTest, AnyNameCanBeDrawn) {
  const std::string name = "it's `touch /tmp/x` \"q\" \\n $(y) {/a} _^ EOD\nEOD\n";
  std::vector<Column> axes = {TestingAxis("series", "TEXT"), TestingAxis("gpus", "INTEGER")};
  axes[0].title = name;
  const Database database =
      MakeTestingSweep(":memory:", axes,
                       {{{name, std::int64_t{8}}, {{"iteration_time_s", 2.0}, {"memory_gib", 1.0}}},
                        {{std::string("b"), std::int64_t{16}},
                         {{"iteration_time_s", 1.0}, {"memory_gib", 2.0}}}})
          .value();
  About about = ReadAbout(database).value();
  about.sweep_name = name;
  for (const PlotQuestion& question : {PlotQuestion{"scaling", "gpus", "", "", "series"},
                                       PlotQuestion{"heat-map", "gpus", "series", "", ""},
                                       PlotQuestion{"pareto", "", "", "", ""}}) {
    const std::string script = PlotScript(database, about, {}, question).value();
    const absl::StatusOr<std::string> svg = DrawPlot(script, PlotFormat::kSvg);
    ASSERT_TRUE(svg.ok()) << svg.status() << script;
    EXPECT_THAT(*svg, HasSubstr("it's `touch /tmp/x`"));
  }
}

TEST_F(PlotTest, WhatIsMissingOrUselessIsNamed) {
  EXPECT_EQ(Error({"scaling", "", "", "", ""}), "--plot=scaling: needs --x=COLUMN");
  EXPECT_EQ(Error({"heat-map", "tp", "", "", ""}), "--plot=heat-map: needs --y=COLUMN");
  EXPECT_EQ(Error({"pareto", "", "", "", "tp"}), "--series: --plot=pareto has no use for it");
  EXPECT_THAT(Error({"scaling", "strategy", "", "", ""}), StartsWith("--x: column \"strategy\""));
  EXPECT_THAT(Error({"heat-map", "point", "tp", "", ""}), HasSubstr("too many for a heat map"));
  EXPECT_THAT(Error(Scaling(), {"tp = 3", false}),
              StartsWith("--plot: no point has both gpus and iteration_time_s (--all"));
  EXPECT_THAT(Error(Scaling(), {"tq = 3", false}), StartsWith("--where: no such column"));
}

TEST(GnuplotTest, WhatItSaysBecomesTheError) {
  const absl::Status status = DrawPlot("plot $nothing\n", PlotFormat::kSvg).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing"));
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
}

TEST(GnuplotTest, AMissingGnuplotNamesItsPackage) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const absl::Status status = DrawPlot("plot x\n", PlotFormat::kSvg).status();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gnuplot-nox"));
}

TEST(GnuplotTest, FormatsGoByTheName) {
  EXPECT_EQ(FormatOf("--out", "a.svg").value(), PlotFormat::kSvg);
  EXPECT_EQ(FormatOf("--out", "a.png").value(), PlotFormat::kPng);
  EXPECT_EQ(FormatOf("--out", "a.pdf").status().message(),
            "--out: a.pdf: plots are written as .svg or .png");
}

TEST(PlotPiecesTest, NumbersAreShort) {
  EXPECT_EQ(ShortNumber(5.4231), "5.42");
  EXPECT_EQ(ShortNumber(1280.4), "1280");
  EXPECT_EQ(ShortNumber(0.012345, 4), "0.01235");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(2.5e7), "2.5e+07");
}

TEST(PlotPiecesTest, AxesAreLogarithmicFromTheFactorOn) {
  EXPECT_TRUE(MakePlotAxis({512, 4096}, 8, 0.05).log);
  EXPECT_FALSE(MakePlotAxis({512, 4095}, 8, 0.05).log);
  EXPECT_FALSE(MakePlotAxis({0, 4096}, 8, 0.05).log);
  const PlotAxis axis = MakePlotAxis({1, 100}, 8, 0.1);
  EXPECT_NEAR(axis.Place(1), 0.1, 1e-12);
  EXPECT_NEAR(axis.Place(100), 0.9, 1e-12);
  const PlotAxis same = MakePlotAxis({3}, 8, 0.05);
  EXPECT_LT(same.low, 3);
  EXPECT_GT(same.high, 3);
}

TEST(PlotPiecesTest, UnitsAreSaidOnce) {
  EXPECT_EQ(AxisTitle({"t_s", ColumnKind::kMetric, "REAL", "s", "time", "", ""}), "time (s)");
  EXPECT_EQ(AxisTitle({"gpus", ColumnKind::kAxis, "INTEGER", "GPUs", "gpus", "", ""}), "GPUs");
  EXPECT_EQ(AxisTitle({"tp", ColumnKind::kAxis, "INTEGER", "", "", "", ""}), "tp");
}

TEST(PlotPiecesTest, TicksLeaveRoomForTheirLabels) {
  PlotAxis axis = MakePlotAxis({1000, 1010, 2000}, 8, 0);
  PutTicksAtValues({1000, 1010, 2000}, 700, axis);
  EXPECT_EQ(axis.ticks, (std::vector<double>{1000, 2000}));
}

}  // namespace
}  // namespace optimus::sweep
