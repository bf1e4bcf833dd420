#include "tools/sweep/show/plot_pieces.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
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

std::string ShortNumber(double value, int digits) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 1e-4 || size >= 1e6) return absl::StrFormat("%.*g", digits, value);
  const int decimals =
      std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
  return absl::StrFormat("%.*f", decimals, value);
}

std::string AxisTitle(const Column& column) {
  std::string title = column.title.empty() ? column.name : column.title;
  if (column.unit.empty()) return title;
  if (absl::EqualsIgnoreCase(column.unit, title)) return column.unit;
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

void PutTicksAtValues(const std::vector<double>& values, double pixels, PlotAxis& axis) {
  constexpr double kGap = 10;
  const auto width = [](double value) {
    return TextPixels(absl::StrFormat("%.6g", value), kLetterSize);
  };
  axis.ticks.clear();
  for (const double value : values) {
    if (!axis.ticks.empty()) {
      const double last = axis.ticks.back();
      const double apart = (axis.Place(value) - axis.Place(last)) * pixels;
      if (apart < (width(value) + width(last)) / 2 + kGap) continue;
    }
    axis.ticks.push_back(value);
  }
}

std::string AxisTitles(const Column& x, const Column& y) {
  return absl::StrCat("set label 5 ", ScriptString(AxisTitle(x)),
                      " at graph 0.5, screen 0.035 center noenhanced\nset label 6 ",
                      ScriptString(AxisTitle(y)),
                      " at screen 0.018, graph 0.5 center rotate noenhanced\n");
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

std::string SeedsText(const SeedMeans& seeds) {
  return seeds.fewest == seeds.most ? absl::StrCat(seeds.most, " seeds")
                                    : absl::StrCat(seeds.fewest, " to ", seeds.most, " seeds");
}

// What else is said must have room beside a long expression.
std::string ScopeText(const Filter& filter) {
  constexpr std::size_t kMost = 90;
  std::string out;
  if (!filter.where.empty()) {
    std::string where = WithoutControls(filter.where);
    if (where.size() > kMost) {
      std::size_t end = kMost;
      while (end > 0 && (static_cast<unsigned char>(where[end]) & 0xc0) == 0x80) --end;
      where = absl::StrCat(where.substr(0, end), "...");
    }
    absl::StrAppend(&out, "only where ", where, "; ");
  }
  if (filter.seeds.on()) absl::StrAppend(&out, "means over ", SeedsText(filter.seeds), "; ");
  return out;
}

std::string LogText(bool x, bool y) {
  if (x && y) return "; log axes";
  return x ? "; log x axis" : y ? "; log y axis" : "";
}

std::string FontOption(int size) { return absl::StrCat("font ',", size, "'"); }

double TextPixels(const std::string& text, double size) {
  double widths = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;  // UTF-8: not a letter's start
    const bool wide = (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%';
    const bool narrow = absl::string_view("ijlrtf.,:;|!'()[] ").find(c) != std::string::npos;
    widths += wide ? 0.76 : narrow ? 0.36 : 0.62;
  }
  return size * widths;
}

std::vector<std::string> BrokenText(const std::string& text, double size, double pixels,
                                    std::size_t most) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool room =
        !lines.empty() && TextPixels(absl::StrCat(lines.back(), " ", word), size) <= pixels;
    if (room) {
      absl::StrAppend(&lines.back(), " ", word);
    } else if (lines.size() < most) {
      lines.emplace_back(word);
    } else {
      lines.back().append("...");
      return lines;
    }
  }
  return lines;
}

std::string CommonCommands(const std::string& kind, const std::string& sweep_name,
                           const std::string& title, const std::string& about) {
  constexpr double kWidest = 0.95 * kPlotWidth;
  constexpr double kTitleSize = 25;
  const std::string whole = absl::StrCat(sweep_name, ": ", title);
  const double shrink = std::clamp(kWidest / TextPixels(whole, kTitleSize), 0.4, 1.0);
  std::string out =
      absl::StrCat("# optimus sweep show --plot=", kind,
                   ". To draw it again:\n# gnuplot -e \"set terminal svg "
                   "size ",
                   kPlotWidth, ",", kPlotHeight, " font 'sans-serif,", kLetterSize,
                   "'; set output 'plot.svg'\" THIS_FILE\n"
                   "if (!exists('mark')) mark = 0.65\nset encoding utf8\nset border 3 lw 1 lc rgb "
                   "'#666666'\nset tics nomirror out textcolor rgb "
                   "'#222222'\nset grid lt 1 lw 1 lc rgb '#e2e2e2'\n",
                   "set label 1 ", ScriptString(whole), " at screen 0.02,0.955 left noenhanced ",
                   FontOption(static_cast<int>(kTitleSize * shrink)), "\n");
  const std::vector<std::string> lines = BrokenText(about, kLetterSize, kWidest, 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(&out, "set label ", i + 2, " ", ScriptString(lines[i]), " at screen 0.02,",
                    i == 0 ? "0.91" : "0.877", " left noenhanced textcolor rgb '#555555'\n");
  }
  absl::StrAppend(&out, "set tmargin at screen ", kPlotTop, "\nset bmargin at screen ", kPlotBottom,
                  "\nset lmargin at screen ", kPlotLeft, "\n");
  return out;
}

}  // namespace optimus::sweep
