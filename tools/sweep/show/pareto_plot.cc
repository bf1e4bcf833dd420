// Two measures against each other: what is given up of one for the other.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/sweep/show/plot.h"
#include "tools/sweep/show/plot_pieces.h"

namespace optimus::sweep {
namespace {

constexpr double kRight = 0.63;                    // the plot ends here, the names begin
constexpr double kNamesTop = 0.78;                 // of the names, which end where the plot does
constexpr double kNameStep = 0.026, kGap = 0.012;  // from line to line, between two members
constexpr int kNameSize = 13;

std::vector<std::string> NameLines(const std::string& name) {
  return BrokenText(name, kNameSize, (1 - kRight - 0.06) * kPlotWidth, 2);
}

// From member to member beside the plot.
double StepOf(const ParetoPlot& plot) {
  std::size_t lines = 0;
  for (const ParetoMember& member : plot.front) {
    lines = std::max(lines, NameLines(member.name).size());
  }
  return kNameStep * static_cast<double>(1 + lines) + kGap;
}

// Whether `column` has one value in all rows of the front.
bool IsCommon(const Front& front, std::size_t column) {
  const auto& rows = front.table.rows;
  return std::all_of(front.members.begin(), front.members.end(), [&](std::size_t member) {
    return rows[member][column] == rows[front.members.front()][column];
  });
}

std::string NamedValue(const Column& column, const SqlValue& value) {
  return absl::StrCat(column.name, " ", ToText(value));
}

// Names of the members, of the axes that differ; `common` gets the others.
std::vector<std::string> MemberNames(const Front& front, const std::vector<Column>& axes,
                                     std::string& common) {
  std::vector<std::vector<std::string>> parts(front.members.size());
  std::vector<std::string> shared;
  for (std::size_t c = 0; c < axes.size(); ++c) {
    if (IsCommon(front, c)) {
      shared.push_back(NamedValue(axes[c], front.table.rows[front.members.front()][c]));
      continue;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].push_back(NamedValue(axes[c], front.table.rows[front.members[i]][c]));
    }
  }
  common = absl::StrJoin(shared, ", ");
  std::vector<std::string> names;
  names.reserve(parts.size());
  for (const auto& part : parts) names.push_back(absl::StrJoin(part, ", "));
  return names;
}

double Pixels(double dx, double dy) {
  return std::hypot(dx * (kRight - kPlotLeft) * kPlotWidth,
                    dy * (kPlotTop - kPlotBottom) * kPlotHeight);
}

// The members that get a number: both ends, and between them those with room for it. Of many, the
// room grows until few enough are left.
std::vector<std::size_t> Named(const ParetoPlot& plot, const PlotAxis& x, const PlotAxis& y) {
  const auto apart = [&](std::size_t a, std::size_t b) {
    const ParetoMember &one = plot.front[a], &other = plot.front[b];
    return Pixels(x.Place(one.x) - x.Place(other.x), y.Place(one.y) - y.Place(other.y));
  };
  const auto most = static_cast<std::size_t>((kNamesTop - kPlotBottom) / StepOf(plot)) + 1;
  const std::size_t last = plot.front.size() - 1;
  for (double room = 26;; room *= 1.2) {
    std::vector<std::size_t> named = {0};
    for (std::size_t i = 1; i < last; ++i) {
      if (apart(i, named.back()) >= room && apart(i, last) >= room) named.push_back(i);
    }
    if (last > 0) named.push_back(last);
    if (named.size() <= most) return named;
  }
}

std::string WithUnit(double value, const Column& column) {
  return absl::StrCat(ShortNumber(value), column.unit.empty() ? "" : " ", column.unit);
}

// What each reaches, and what it is.
std::string Labels(const ParetoPlot& plot, const std::vector<std::size_t>& named) {
  std::string out = absl::StrCat("set label 4 'the front, by number:' at screen ", kRight + 0.02,
                                 ",", kPlotTop - 0.015, " left ", FontOption(16), "\n");
  const double step = StepOf(plot);
  int label = 10;
  const auto add = [&](const std::string& text, double x, double y, const std::string& style) {
    absl::StrAppend(&out, "set label ", label++, " ", ScriptString(text), " at screen ",
                    ShortNumber(x), ",", ShortNumber(y), " left noenhanced ", style, "\n");
  };
  for (std::size_t i = 0; i < named.size(); ++i) {
    const ParetoMember& member = plot.front[named[i]];
    double y = kNamesTop - step * static_cast<double>(i);
    add(absl::StrCat(i + 1), kRight + 0.02, y,
        absl::StrCat(FontOption(16), " textcolor rgb '#0072b2'"));
    add(absl::StrCat(WithUnit(member.x, plot.x.column), ", ", WithUnit(member.y, plot.y.column)),
        kRight + 0.05, y, "");
    for (const std::string& line : NameLines(member.name)) {
      y -= kNameStep;
      add(line, kRight + 0.05, y, absl::StrCat(FontOption(kNameSize), " textcolor rgb '#666666'"));
    }
  }
  return out;
}

std::string Data(const ParetoPlot& plot, const std::vector<std::size_t>& named) {
  std::string out = "$points << EOD\n";
  for (const ScalingPoint& point : plot.points) {
    absl::StrAppend(&out, DataNumber(point.x), " ", DataNumber(point.y), "\n");
  }
  absl::StrAppend(&out, "EOD\n$front << EOD\n");
  for (const ParetoMember& member : plot.front) {
    absl::StrAppend(&out, DataNumber(member.x), " ", DataNumber(member.y), " ",
                    DataString(member.name), "\n");
  }
  absl::StrAppend(&out, "EOD\n$numbers << EOD\n");
  for (std::size_t i = 0; i < named.size(); ++i) {
    const ParetoMember& member = plot.front[named[i]];
    absl::StrAppend(&out, DataNumber(member.x), " ", DataNumber(member.y), " ", i + 1, "\n");
  }
  return absl::StrCat(out, "EOD\n");
}

PlotAxis AxisOf(const ParetoPlot& plot, bool x) {
  std::vector<double> values;
  values.reserve(plot.points.size());
  for (const ScalingPoint& point : plot.points) values.push_back(x ? point.x : point.y);
  return MakePlotAxis(values, 8, 0.06);
}

std::string Subtitle(const ParetoPlot& plot, std::size_t named, const std::string& log) {
  const auto good = [](const Aim& aim) { return aim.high ? "high" : "low"; };
  std::string out =
      absl::StrCat(ScopeText(plot.filter), good(plot.x), " ", plot.x.column.name, " and ",
                   good(plot.y), " ", plot.y.column.name, " are good; ", plot.front.size(), " of ",
                   plot.points.size(), " points are on the front");
  if (named < plot.front.size()) absl::StrAppend(&out, ", ", named, " of them are named");
  absl::StrAppend(&out, log);
  if (!plot.common.empty()) absl::StrAppend(&out, "; all of the front: ", plot.common);
  return out;
}

}  // namespace

absl::StatusOr<ParetoPlot> MakeParetoPlot(const Database& database, const About& about,
                                          const Filter& filter, const Aim& x, const Aim& y) {
  const std::vector<Column> axes = ColumnsOfKind(about, {ColumnKind::kAxis});
  std::vector<Column> columns = axes;
  if (columns.empty()) columns = {{"point", ColumnKind::kCondition, "INTEGER", "", "", "", ""}};
  OPTIMUS_ASSIGN_OR_RETURN(const Front front, FindFront(database, columns, filter, {x, y}));
  if (front.members.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--plot: no point has both ", x.column.name,
                                                   " and ", y.column.name, kNothingHint));
  }
  ParetoPlot plot{about.sweep_name, x, y, {}, {}, {}, filter};
  plot.points.reserve(front.values.size());
  for (const std::vector<double>& values : front.values) {
    plot.points.push_back({values[0], values[1]});
  }
  const std::vector<std::string> names = MemberNames(front, columns, plot.common);
  plot.front.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<double>& values = front.values[front.members[i]];
    plot.front.push_back({values[0], values[1], names[i]});
  }
  return plot;
}

std::string ParetoScript(const ParetoPlot& plot) {
  const PlotAxis x = AxisOf(plot, true), y = AxisOf(plot, false);
  const std::vector<std::size_t> named = Named(plot, x, y);
  const std::string title =
      absl::StrCat(AxisTitle(plot.x.column), " against ", AxisTitle(plot.y.column));
  std::string out = CommonCommands("pareto", plot.sweep_name, title,
                                   Subtitle(plot, named.size(), LogText(x.log, y.log)));
  absl::StrAppend(&out, "set rmargin at screen ", kRight, "\nunset key\n",
                  AxisTitles(plot.x.column, plot.y.column), AxisCommands("x", x),
                  AxisCommands("y", y), Labels(plot, named), Data(plot, named));
  // A number stands on the good side of the front, where no point can be.
  absl::StrAppend(&out,
                  "plot $points using 1:2 with points pt 7 ps 0.6*mark lc rgb '#b5b5b5', \\\n"
                  "  $front using 1:2 with lines lw 2 lc rgb '#0072b2', \\\n"
                  "  $front using 1:2 with points pt 7 ps mark lc rgb '#0072b2', \\\n"
                  "  $numbers using 1:2:3 with labels ",
                  FontOption(17), " textcolor rgb '#0072b2' offset ", plot.x.high ? "1" : "-1", ",",
                  plot.y.high ? "0.7" : "-0.7", "\n");
  return out;
}

}  // namespace optimus::sweep
