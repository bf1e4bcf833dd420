#include "tools/sweep/show/plot_pieces.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/sweep/show/plot.h"

namespace optimus::sweep {
namespace {

std::string WithoutControls(const std::string& text) {
  std::string out = text;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; },
      ' ');
  return out;
}

// 1, 2 and 5 times powers of ten, inside the range.
std::vector<double> LogTicks(double low, double high) {
  const auto ticks_of = [&](const std::vector<double>& steps) {
    std::vector<double> ticks;
    const int last = static_cast<int>(std::ceil(std::log10(high)));
    for (int power = static_cast<int>(std::floor(std::log10(low))); power <= last; ++power) {
      for (const double step : steps) {
        const double tick = step * std::pow(10, power);
        if (tick >= low && tick <= high) ticks.push_back(tick);
      }
    }
    return ticks;
  };
  for (const std::vector<double>& steps :
       {std::vector<double>{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}}) {
    std::vector<double> ticks = ticks_of(steps);
    if (ticks.size() >= 4) return ticks;
  }
  return ticks_of({1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9});
}

}  // namespace

std::string ScriptString(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(WithoutControls(text), {{"'", "''"}}), "'");
}

std::string DataString(const std::string& text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(WithoutControls(text), {{"\"", "'"}, {"\\", "\\\\"}}), "\"");
}

std::string DataNumber(double value) { return ToText(value); }

std::string ShortNumber(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 1e-4 || size >= 1e6) return absl::StrFormat("%.3g", value);
  const int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
  return absl::StrFormat("%.*f", decimals, value);
}

std::string AxisTitle(const Column& column) {
  const std::string title = column.title.empty() ? column.name : column.title;
  if (column.unit.empty() || column.unit == title) return title;
  return absl::StrCat(title, " (", column.unit, ")");
}

double PlotAxis::Place(double value) const {
  if (log) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

PlotAxis MakePlotAxis(const std::vector<double>& values, double log_from, double margin) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  PlotAxis axis;
  axis.log = *least > 0 && *most >= log_from * *least;
  if (axis.log) {
    const double factor = std::pow(*most / *least, margin / (1 - 2 * margin));
    axis.low = *least / factor;
    axis.high = *most * factor;
    axis.ticks = LogTicks(axis.low, axis.high);
    return axis;
  }
  double room = (*most - *least) * margin / (1 - 2 * margin);
  if (room <= 0) room = std::max(std::abs(*most) * 0.1, 1e-9);  // all the same
  axis.low = *least - room;
  axis.high = *most + room;
  if (*least >= 0 && axis.low < 0) axis.low = 0;
  return axis;
}

void PutTicksAtValues(const std::vector<double>& values, double least_distance, PlotAxis& axis) {
  axis.ticks.clear();
  for (const double value : values) {
    const bool room =
        axis.ticks.empty() || axis.Place(value) - axis.Place(axis.ticks.back()) >= least_distance;
    if (room) axis.ticks.push_back(value);
  }
}

std::string AxisCommands(const std::string& name, const PlotAxis& axis) {
  std::string out = absl::StrCat("set ", name, "range [", DataNumber(axis.low), ":",
                                 DataNumber(axis.high), "]\n");
  if (axis.log) absl::StrAppend(&out, "set logscale ", name, "\nunset m", name, "tics\n");
  if (axis.ticks.empty()) return out;
  absl::StrAppend(&out, "set ", name, "tics (",
                  absl::StrJoin(axis.ticks, ", ",
                                [](std::string* text, double tick) {
                                  absl::StrAppendFormat(text, "'%s' %s",
                                                        absl::StrFormat("%.6g", tick),
                                                        DataNumber(tick));
                                }),
                  ")\n");
  return out;
}

std::string CommonCommands(const std::string& kind, const std::string& sweep_name,
                           const std::string& title, const std::string& about) {
  return absl::StrCat(
      "# optimus sweep show --plot=", kind,
      ". To draw it again:\n# gnuplot -e \"set terminal svg "
      "size ",
      kPlotWidth, ",", kPlotHeight,
      " font 'sans-serif,15'; set output 'plot.svg'\" THIS_FILE\n"
      "set encoding utf8\nset border 3 lw 1 lc rgb '#666666'\nset tics nomirror out textcolor rgb "
      "'#222222'\nset grid lw 1 lc rgb '#e4e4e4'\n",
      "set label 1 ", ScriptString(absl::StrCat(sweep_name, ": ", title)),
      " at screen 0.02,0.96 left noenhanced font ',20'\n", "set label 2 ", ScriptString(about),
      " at screen 0.02,0.91 left noenhanced textcolor rgb '#555555'\n",
      "set tmargin at screen 0.87\nset bmargin at screen 0.12\nset lmargin at screen 0.08\n");
}

}  // namespace optimus::sweep
