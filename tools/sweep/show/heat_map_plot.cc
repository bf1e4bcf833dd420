// z by x and y, with the values in the cells.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/show/plot.h"
#include "tools/sweep/show/plot_pieces.h"

namespace optimus::sweep {
namespace {

constexpr std::size_t kMostValues = 40;  // of an axis: beyond it no cell can be read
constexpr double kLogFrom = 8;

absl::StatusOr<SqlTable> BestByCell(const Database& database, const Filter& filter,
                                    const HeatMapRequest& request) {
  const std::string x = QuoteIdentifier(request.x.name);
  const std::string y = QuoteIdentifier(request.y.name);
  const std::string z = QuoteIdentifier(request.z.column.name);
  return database.Query(absl::StrCat("SELECT ", x, ", ", y, ", ", request.z.high ? "MAX(" : "MIN(",
                                     z, ") FROM ", Source(filter), " WHERE ", OkCondition(filter),
                                     " AND ", x, " IS NOT NULL AND ", y, " IS NOT NULL AND ", z,
                                     " IS NOT NULL GROUP BY 1, 2 ORDER BY 2, 1"));
}

// Values of a column of `table`, numbers ascending and names in the order of the sweep, and the
// place of each.
struct Places {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> place;
};
absl::StatusOr<Places> PlacesOf(const Database& database, const SqlTable& table, std::size_t at,
                                const Column& column) {
  std::set<std::string> drawn;
  for (const auto& row : table.rows) drawn.insert(ToText(row[at]));
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<SqlValue> values, InOrderOfPoints(database, column));
  if (column.type != "TEXT") {
    std::stable_sort(values.begin(), values.end(), [](const SqlValue& a, const SqlValue& b) {
      return ToNumber(a).value_or(0) < ToNumber(b).value_or(0);
    });
  }
  Places places;
  for (const SqlValue& value : values) {
    if (!drawn.contains(ToText(value))) continue;
    if (places.place.try_emplace(ToText(value), places.names.size()).second) {
      places.names.push_back(ToText(value));
    }
  }
  return places;
}

std::size_t BestCell(const std::vector<HeatMapCell>& cells, bool high) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    if (high ? cells[i].z > cells[best].z : cells[i].z < cells[best].z) best = i;
  }
  return best;
}

struct Range {
  double low = 0, high = 0;
  bool log = false;
  double Share(double z) const {  // 0 at the low end
    if (high <= low) return 0;
    return log ? std::log(z / low) / std::log(high / low) : (z - low) / (high - low);
  }
};
Range RangeOf(const HeatMapPlot& plot) {
  Range range{plot.cells[0].z, plot.cells[0].z, false};
  for (const HeatMapCell& cell : plot.cells) {
    range.low = std::min(range.low, cell.z);
    range.high = std::max(range.high, cell.z);
  }
  range.log = range.low > 0 && range.high >= kLogFrom * range.low;
  return range;
}

std::string Ticks(const std::string& axis, const std::vector<std::string>& names) {
  std::string out = absl::StrCat("set ", axis, "tics (");
  for (std::size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", ScriptString(names[i]), " ", i);
  }
  return absl::StrCat(out, ") scale 0 noenhanced\n");
}

std::size_t LongestName(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  return longest;
}

// Cells at the good end are dark: white text there.
std::string Cells(const HeatMapPlot& plot, const Range& range) {
  const int digits = plot.xs.size() > 10 ? 3 : 4;
  std::string out = "# x, y, value, its text, the text's colour\n$cells << EOD\n";
  for (const HeatMapCell& cell : plot.cells) {
    const double good = plot.request.z.high ? range.Share(cell.z) : 1 - range.Share(cell.z);
    absl::StrAppend(&out, cell.x, " ", cell.y, " ", DataNumber(cell.z), " ",
                    DataString(ShortNumber(cell.z, digits)), " ",
                    good > 0.65 ? "0xffffff" : "0x222222", "\n");
  }
  return absl::StrCat(out, "EOD\n");
}

std::string Colours(const HeatMapPlot& plot, const Range& range) {
  std::string out =
      absl::StrCat("set palette defined (",
                   plot.request.z.high ? "0 '#f4f1de', 0.35 '#a8d5ba', 0.7 '#2a9d8f', 1 '#0b3c49'"
                                       : "0 '#0b3c49', 0.3 '#2a9d8f', 0.65 '#a8d5ba', 1 '#f4f1de'",
                   ")\nset label 7 ", ScriptString(AxisTitle(plot.request.z.column)),
                   " at screen 0.98, graph 0.5 center rotate noenhanced\n");
  if (range.high > range.low) {
    PlotAxis axis;
    if (range.log) axis = MakePlotAxis({range.low, range.high}, kLogFrom, 0);
    axis.low = range.low;
    axis.high = range.high;
    absl::StrAppend(&out, AxisCommands("cb", axis));
  } else {
    absl::StrAppend(&out, "unset colorbox\n");
  }
  return out;
}

// Names are read from the top down, numbers rise.
std::string YRange(const HeatMapPlot& plot) {
  const std::string high = absl::StrCat(plot.ys.size() - 1, ".5");
  return plot.request.y.type == "TEXT" ? absl::StrCat("[", high, ":-0.5]")
                                       : absl::StrCat("[-0.5:", high, "]");
}

// Between the cells of a row, and around the best.
std::string Frame(const HeatMapPlot& plot) {
  const HeatMapCell& best = plot.cells[plot.best];
  const auto edge = [](std::size_t place, double by) {
    return DataNumber(static_cast<double>(place) + by);
  };
  return absl::StrCat("set object 1 rectangle from ", edge(best.x, -0.47), ",", edge(best.y, -0.47),
                      " to ", edge(best.x, 0.47), ",", edge(best.y, 0.47),
                      " front fillstyle empty border rgb '#d1495b' lw 4\n");
}

// What cells without a value have in common.
std::string EmptyText(const HeatMapPlot& plot) {
  if (plot.cells.size() == plot.xs.size() * plot.ys.size()) return "";
  const bool all = plot.filter.not_fitting;
  if (plot.filter.where.empty()) {
    return absl::StrCat("; empty: nothing ran", all ? "" : " or fits");
  }
  return absl::StrCat("; empty: left out, or nothing ran", all ? "" : " or fits");
}

std::string Subtitle(const HeatMapPlot& plot, bool log) {
  const HeatMapCell& best = plot.cells[plot.best];
  const std::string unit = plot.request.z.column.unit;
  return absl::StrCat(ScopeText(plot.filter),
                      "each cell is the best over all other axes; framed: the best, ",
                      ShortNumber(best.z, 4), unit.empty() ? "" : " ", unit, " at ",
                      plot.request.x.name, " ", plot.xs[best.x], ", ", plot.request.y.name, " ",
                      plot.ys[best.y], log ? "; log colours" : "", EmptyText(plot));
}

}  // namespace

absl::StatusOr<HeatMapPlot> MakeHeatMapPlot(const Database& database, const About& about,
                                            const Filter& filter, const HeatMapRequest& request) {
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable table, BestByCell(database, filter, request));
  if (table.rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--plot: no point has all of ", request.x.name,
                                                   ", ", request.y.name, " and ",
                                                   request.z.column.name, kNothingHint));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const Places xs, PlacesOf(database, table, 0, request.x));
  OPTIMUS_ASSIGN_OR_RETURN(const Places ys, PlacesOf(database, table, 1, request.y));
  for (const auto& [flag, count] : {std::pair("--x", xs.names.size()), {"--y", ys.names.size()}}) {
    if (count <= kMostValues) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", count,
                                                   " values are too many for a heat map (at most ",
                                                   kMostValues, "); select some with --where"));
  }
  HeatMapPlot plot{about.sweep_name, request, xs.names, ys.names, {}, 0, filter};
  plot.cells.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    plot.cells.push_back(
        {xs.place.at(ToText(row[0])), ys.place.at(ToText(row[1])), ToNumber(row[2]).value_or(0)});
  }
  plot.best = BestCell(plot.cells, request.z.high);
  return plot;
}

std::string HeatMapScript(const HeatMapPlot& plot) {
  const Range range = RangeOf(plot);
  const std::string title =
      absl::StrCat(AxisTitle(plot.request.z.column), " by ", AxisTitle(plot.request.x), " and ",
                   AxisTitle(plot.request.y));
  const bool turned = LongestName(plot.xs) * plot.xs.size() > 80;
  const std::size_t most = std::max(plot.xs.size(), plot.ys.size());
  const int font = most > 24 ? 10 : most > 14 ? 13 : most > 8 ? 16 : 19;
  std::string out = CommonCommands("heat-map", plot.sweep_name, title, Subtitle(plot, range.log));
  absl::StrAppend(&out, "unset grid\nunset border\nunset key\n",
                  AxisTitles(plot.request.x, plot.request.y));
  const double left =
      0.07 + 0.009 * static_cast<double>(std::min<std::size_t>(LongestName(plot.ys), 24));
  absl::StrAppend(&out, "set lmargin at screen ", ShortNumber(left),
                  "\nset rmargin at screen 0.86\n", turned ? "set bmargin at screen 0.24\n" : "");
  absl::StrAppend(&out, "set xrange [-0.5:", plot.xs.size() - 1, ".5]\nset yrange ", YRange(plot),
                  "\n", Ticks("x", plot.xs), Ticks("y", plot.ys));
  if (turned) absl::StrAppend(&out, "set xtics rotate by -35\n");
  absl::StrAppend(&out, Colours(plot, range), Frame(plot), Cells(plot, range),
                  "plot $cells using 1:2:($1-0.48):($1+0.48):($2-0.48):($2+0.48):3 with boxxyerror "
                  "fillstyle solid noborder linecolor palette, \\\n"
                  "  $cells using 1:2:4:5 with labels ",
                  FontOption(font), " textcolor rgb variable noenhanced\n");
  return out;
}

}  // namespace optimus::sweep
