#pragma once
// What the texts of several commands have in common: units, labelled lines, lists, the last line.

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace optimus::tools {

inline constexpr int kLabelWidth = 12;

// Seconds, milliseconds or microseconds: whichever suits the step.
struct TimeUnit {
  const char* name = "s";
  double per_second = 1;
  explicit TimeUnit(Picoseconds step);
  std::string Format(double seconds) const;      // "1.234"
  std::string Format(Picoseconds time) const;    // the same
  std::string WithName(Picoseconds time) const;  // "1.234 s"
  std::string Change(Picoseconds time) const;    // "+0.012 s"
};

std::string Percent(double share);                                     // "12.3" of 0.123
std::string Gib(Bytes bytes);                                          // "12.34"
std::string Count(std::int64_t n, const char* one, const char* many);  // "1 step", "2 steps"

// "label       text", wrapped.
void AppendFact(const std::string& label, const std::string& text, std::string& out);
// Title and "  - line" each; nothing where there are none.
void AppendBullets(const std::string& title, const std::vector<std::string>& lines,
                   std::string& out);
// The last line of every text: the only one that differs from run to run. `planning_s` < 0: none.
std::string WallLine(double wall_s, double peak_memory_mib, double planning_s = -1);

}  // namespace optimus::tools
