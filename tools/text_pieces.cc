#include "tools/text_pieces.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/text_table.h"

namespace optimus::tools {

TimeUnit::TimeUnit(Picoseconds step) {
  if (step < Picoseconds(kPicosecondsPerSecond / 1000)) {
    name = "us", per_second = 1e6;
  } else if (step < Picoseconds(kPicosecondsPerSecond)) {
    name = "ms", per_second = 1e3;
  }
}

std::string TimeUnit::Format(double seconds) const {
  return absl::StrFormat("%.3f", seconds * per_second);
}

std::string TimeUnit::Format(Picoseconds time) const { return Format(ToSeconds(time)); }

std::string TimeUnit::WithName(Picoseconds time) const {
  return absl::StrCat(Format(time), " ", name);
}

std::string TimeUnit::Change(Picoseconds time) const {
  const std::string size = Format(time < Picoseconds(0) ? -time : time);
  // What rounds to nothing has no sign.
  const bool nothing = size.find_first_not_of("0.") == std::string::npos;
  return absl::StrCat(nothing ? "" : time < Picoseconds(0) ? "-" : "+", size, " ", name);
}

std::string Percent(double share) { return absl::StrFormat("%.1f", 100 * share); }

std::string Count(std::int64_t n, const char* one, const char* many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

std::string Gib(Bytes bytes) { return absl::StrFormat("%.2f", ToGib(bytes)); }

void AppendFact(const std::string& label, const std::string& text, std::string& out) {
  absl::StrAppend(&out, absl::StrFormat("%-*s", kLabelWidth, label), Wrap(text, kLabelWidth), "\n");
}

void AppendBullets(const std::string& title, const std::vector<std::string>& lines,
                   std::string& out) {
  if (lines.empty()) return;
  absl::StrAppend(&out, "\n", title, "\n");
  for (const std::string& line : lines) absl::StrAppend(&out, "  - ", Wrap(line, 4), "\n");
}

std::string WallLine(double wall_s, double peak_memory_mib, double planning_s) {
  std::string line = absl::StrFormat("wall %.3f s", wall_s);
  if (planning_s >= 0) absl::StrAppendFormat(&line, ", of it planning %.3f s", planning_s);
  absl::StrAppendFormat(&line, ", peak memory %.0f MiB\n", peak_memory_mib);
  return line;
}

}  // namespace optimus::tools
