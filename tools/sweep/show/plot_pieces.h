#pragma once
// What the scripts of all plots are made of: quoting, axes, ticks, numbers.

#include <string>
#include <vector>

#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

// 'text' for commands. Line ends and other control characters become spaces.
std::string ScriptString(const std::string& text);
// "text" for data. gnuplot knows no way to write a double quote there: it becomes a single one.
std::string DataString(const std::string& text);
// With the fewest digits that read back as the same number.
std::string DataNumber(double value);
// About three digits, without exponent where that is readable: "5.42", "1280", "0.0123".
std::string ShortNumber(double value);

// "iteration time (s)"; the unit alone where the title says the same.
std::string AxisTitle(const Column& column);

// The part of one axis that is drawn, and where its ticks are.
struct PlotAxis {
  bool log = false;
  double low = 0, high = 1;   // of the range
  std::vector<double> ticks;  // empty: gnuplot's own choice
  // Share of the axis' length from its low end.
  double Place(double value) const;
};
// `values` are not empty. Logarithmic where they are above zero and span a factor of `log_from`.
// `margin`: free share of the axis' length at either end. `at_values`: ticks at the values
// themselves (few, ascending), as far as labels of `least_distance` (share of the axis) allow.
PlotAxis MakePlotAxis(const std::vector<double>& values, double log_from, double margin);
void PutTicksAtValues(const std::vector<double>& values, double least_distance, PlotAxis& axis);

// "set xrange [1:2]\nset logscale x\n...": of axis "x" or "y".
std::string AxisCommands(const std::string& name, const PlotAxis& axis);
// What every script begins with. `about`: one line on what is drawn, under the title.
std::string CommonCommands(const std::string& kind, const std::string& sweep_name,
                           const std::string& title, const std::string& about);

}  // namespace optimus::sweep
