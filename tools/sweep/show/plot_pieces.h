#pragma once
// What the scripts of all plots are made of: quoting, axes, ticks, numbers.

#include <string>
#include <vector>

#include "tools/sweep/show/select.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

// The end of an error about a plot without points.
inline constexpr char kNothingHint[] = " (--all also draws plans that do not fit into memory)";

// 'text' for commands. Line ends and other control characters become spaces.
std::string ScriptString(const std::string& text);
// "text" for data. gnuplot knows no way to write a double quote there: it becomes a single one.
std::string DataString(const std::string& text);
// With the fewest digits that read back as the same number.
std::string DataNumber(double value);
// About `digits` of them, without exponent where that is readable: "5.42", "1280", "0.0123".
std::string ShortNumber(double value, int digits = 3);

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
// themselves (ascending), as far as their labels have room on an axis of `pixels`.
PlotAxis MakePlotAxis(const std::vector<double>& values, double log_from, double margin);
void PutTicksAtValues(const std::vector<double>& values, double pixels, PlotAxis& axis);

// "set xlabel ..." and the like, at places of their own: gnuplot's depend on the terminal.
std::string AxisTitles(const Column& x, const Column& y);
// "set xrange [1:2]\nset logscale x\n...": of axis "x" or "y".
std::string AxisCommands(const std::string& name, const PlotAxis& axis);
// What every script begins with. `about`: what is drawn, in two lines under the title at most.
// Sizes of letters are pixels; a terminal that counts in points has fontscale 0.75,
// and one with large marks sets `mark`.
std::string CommonCommands(const std::string& kind, const std::string& sweep_name,
                           const std::string& title, const std::string& about);

// What a plot is of, for the line under its title: "only where tp = 8; means over 4 seeds; ".
// Empty: of all single points.
std::string ScopeText(const Filter& filter);
// "4 seeds", "2 to 4 seeds"
std::string SeedsText(const SeedMeans& seeds);
// "; log x axis", "; log axes"
std::string LogText(bool x, bool y);

// "font ',15'" for letters of `size` pixels.
std::string FontOption(int size);
// About the width of `text` in letters of `size` pixels.
double TextPixels(const std::string& text, double size);
// Broken after spaces into lines of at most `pixels`; what is left of a text of more than `most`
// lines becomes "...".
std::vector<std::string> BrokenText(const std::string& text, double size, double pixels,
                                    std::size_t most);

// Where every plot is in its picture, as shares.
inline constexpr double kPlotLeft = 0.09, kPlotBottom = 0.12, kPlotTop = 0.84;
inline constexpr int kLetterSize = 15;  // pixels

}  // namespace optimus::sweep
