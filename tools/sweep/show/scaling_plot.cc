// y over x by series: how a strategy scales.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/show/plot.h"
#include "tools/sweep/show/plot_pieces.h"

namespace optimus::sweep {
namespace {

// Colours that the colour-blind can tell apart (Okabe and Ito, 2008), and marks of their own.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000", "#8a6d3b"};
constexpr int kMarks[] = {7, 5, 9, 13, 11, 6, 4, 8};
constexpr char kIdealName[] = "ideal scaling";

bool CountsGpus(const Column& column) {
  return column.unit == "GPUs" || column.name == "gpus" || column.name == "world_gpus";
}

bool HasIdeal(const ScalingPlot& plot) {
  return plot.request.y.column.name == "iteration_time_s" && CountsGpus(plot.request.x);
}

absl::StatusOr<SqlTable> BestByX(const Database& database, const Filter& filter,
                                 const ScalingRequest& request) {
  const std::string x = QuoteIdentifier(request.x.name);
  const std::string y = QuoteIdentifier(request.y.column.name);
  const std::string series = request.series ? QuoteIdentifier(request.series->name) : "''";
  return database.Query(
      absl::StrCat("SELECT ", series, ", ", x, ", ", request.y.high ? "MAX(" : "MIN(", y, ") FROM ",
                   Source(filter), " WHERE ", OkCondition(filter), " AND ", x, " IS NOT NULL AND ",
                   y, " IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"));
}

// As names stand in the sweep: the reader knows that order from its file.
absl::Status SortBySweep(const Database& database, const Column& series,
                         std::vector<ScalingLine>& lines) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<SqlValue> order, InOrderOfPoints(database, series));
  std::map<std::string, std::size_t> places;
  for (const SqlValue& value : order) places.try_emplace(ToText(value), places.size());
  std::stable_sort(lines.begin(), lines.end(), [&](const ScalingLine& a, const ScalingLine& b) {
    return places[a.name] < places[b.name];
  });
  return absl::OkStatus();
}

std::vector<double> Xs(const ScalingPlot& plot) {
  std::set<double> xs;
  for (const ScalingLine& line : plot.lines) {
    for (const ScalingPoint& point : line.points) xs.insert(point.x);
  }
  return {xs.begin(), xs.end()};
}

std::vector<double> Ys(const ScalingPlot& plot) {
  std::vector<double> ys;
  for (const ScalingLine& line : plot.lines) {
    for (const ScalingPoint& point : line.points) ys.push_back(point.y);
  }
  return ys;
}

// The best y of the smallest x: what ideal scaling starts from.
ScalingPoint Start(const ScalingPlot& plot) {
  ScalingPoint start = plot.lines.front().points.front();
  for (const ScalingLine& line : plot.lines) {
    const ScalingPoint& first = line.points.front();
    if (std::pair(first.x, first.y) < std::pair(start.x, start.y)) start = first;
  }
  return start;
}

// y halves where x doubles; a few points, so that it is a curve on any axes.
std::vector<ScalingPoint> Ideal(const ScalingPlot& plot, const std::vector<double>& xs) {
  constexpr int kPoints = 60;
  const ScalingPoint start = Start(plot);
  std::vector<ScalingPoint> points;
  points.reserve(kPoints + 1);
  for (int i = 0; i <= kPoints; ++i) {
    const double x = xs.front() + (xs.back() - xs.front()) * i / kPoints;
    points.push_back({x, start.y * start.x / x});
  }
  return points;
}

std::string Block(const std::string& name, const std::vector<ScalingPoint>& points) {
  std::string out = absl::StrCat("$", name, " << EOD\n");
  for (const ScalingPoint& point : points) {
    absl::StrAppend(&out, DataNumber(point.x), " ", DataNumber(point.y), "\n");
  }
  return absl::StrCat(out, "EOD\n");
}

constexpr const char* kIdealStyle = "with lines lw 1.5 dt (8,6) lc rgb '#888888'";

std::string PlotCommand(const ScalingPlot& plot, bool ideal) {
  std::string out = "plot ";
  if (ideal) absl::StrAppend(&out, "$ideal using 1:2 ", kIdealStyle, " notitle, \\\n  ");
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const std::string title =
        plot.request.series ? absl::StrCat("title ", ScriptString(plot.lines[i].name)) : "notitle";
    absl::StrAppend(&out, i == 0 ? "" : ", \\\n  ", "$line", i + 1,
                    " using 1:2 with linespoints lw 2.5 ps 1.1*mark pt ",
                    kMarks[i % std::size(kMarks)], " lc rgb '", kColours[i % std::size(kColours)],
                    "' ", title);
  }
  if (ideal) absl::StrAppend(&out, ", \\\n  keyentry ", kIdealStyle, " title '", kIdealName, "'");
  return absl::StrCat(out, "\n");
}

// The share of the picture that the legend takes, right of the plot.
double LegendShare(const ScalingPlot& plot, bool ideal) {
  double widest = ideal ? TextPixels(kIdealName, kLetterSize) : 0;
  if (plot.request.series) {
    widest = std::max(widest, TextPixels(AxisTitle(*plot.request.series), kLetterSize) - 40);
    for (const ScalingLine& line : plot.lines) {
      widest = std::max(widest, TextPixels(line.name, kLetterSize));
    }
  }
  return widest == 0 ? 0.03 : std::min(0.45, (widest + 75) / kPlotWidth);
}

std::string Legend(const ScalingPlot& plot, double share) {
  const double right = 1 - share;
  std::string out = absl::StrCat("set rmargin at screen ", ShortNumber(right), "\n");
  absl::StrAppend(&out, "set key at screen ", ShortNumber(right + 0.015), ",", kPlotTop,
                  " left top vertical Left reverse noenhanced samplen 2.5 spacing 1.35\n");
  if (plot.request.series) {
    absl::StrAppend(&out, "set key title ", ScriptString(AxisTitle(*plot.request.series)),
                    " left noenhanced\n");
  }
  return out;
}

}  // namespace

absl::StatusOr<ScalingPlot> MakeScalingPlot(const Database& database, const About& about,
                                            const Filter& filter, const ScalingRequest& request) {
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable table, BestByX(database, filter, request));
  if (table.rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--plot: no point has both ", request.x.name,
                                                   " and ", request.y.column.name, kNothingHint));
  }
  ScalingPlot plot{about.sweep_name, request, {}, filter};
  for (const std::vector<SqlValue>& row : table.rows) {
    const std::string name = ToText(row[0]);
    if (plot.lines.empty() || plot.lines.back().name != name) plot.lines.push_back({name, {}});
    plot.lines.back().points.push_back(
        {ToNumber(row[1]).value_or(0), ToNumber(row[2]).value_or(0)});
  }
  if (request.series && request.series->type == "TEXT") {
    OPTIMUS_RETURN_IF_ERROR(SortBySweep(database, *request.series, plot.lines));
  }
  return plot;
}

std::string ScalingScript(const ScalingPlot& plot) {
  const std::vector<double> xs = Xs(plot);
  const bool ideal = HasIdeal(plot) && xs.size() > 1;
  const std::vector<ScalingPoint> ideal_points =
      ideal ? Ideal(plot, xs) : std::vector<ScalingPoint>();
  std::vector<double> ys = Ys(plot);
  if (ideal) ys.push_back(ideal_points.back().y);
  PlotAxis x_axis = MakePlotAxis(xs, 8, 0.03);
  const double legend = LegendShare(plot, ideal);
  PutTicksAtValues(xs, (1 - legend - kPlotLeft) * kPlotWidth, x_axis);
  PlotAxis y_axis = MakePlotAxis(ys, x_axis.log && ideal ? 2 : 8, 0.05);
  if (!y_axis.log && y_axis.low > 0 && y_axis.low < 0.5 * y_axis.high) y_axis.low = 0;
  std::string about =
      absl::StrCat(ScopeText(plot.filter), "each point is the best over all other axes (",
                   plot.request.y.high ? "high" : "low", " is good)");
  absl::StrAppend(&about, LogText(x_axis.log, y_axis.log));
  if (ideal) {
    absl::StrAppend(&about, "; dashed: half the time on twice the GPUs, from the best of ",
                    DataNumber(xs.front()), " on");
  }
  const std::string title =
      absl::StrCat(AxisTitle(plot.request.y.column), " over ", AxisTitle(plot.request.x));
  std::string out = CommonCommands("scaling", plot.sweep_name, title, about);
  absl::StrAppend(&out, AxisTitles(plot.request.x, plot.request.y.column),
                  AxisCommands("x", x_axis), AxisCommands("y", y_axis), Legend(plot, legend));
  if (ideal) absl::StrAppend(&out, Block("ideal", ideal_points));
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    absl::StrAppend(&out, Block(absl::StrCat("line", i + 1), plot.lines[i].points));
  }
  return absl::StrCat(out, PlotCommand(plot, ideal));
}

}  // namespace optimus::sweep
