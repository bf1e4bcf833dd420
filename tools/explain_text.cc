#include "tools/explain_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/explain_words.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"
#include "tools/trace_text.h"

namespace optimus::tools {
namespace {

std::string ShareOfStep(const ExplainReport& report, Picoseconds time) {
  const double step = ToSeconds(report.run.step);
  return step > 0 ? Percent(ToSeconds(time) / step) : "";
}

void AppendPathShares(const ExplainReport& report, std::string& out) {
  const TimeUnit unit(report.run.step);
  TextTable table({{{"the critical path by class", ""}, true},
                   {{"time", unit.name}, false},
                   {{"of the step", "%"}, false}});
  std::vector<std::pair<std::string, Picoseconds>> classes;
  for (const traces::Share& share : report.path_shares) {
    const std::string name = ClassName(report.traced.classes, share.cls, share.kind);
    const auto known = std::find_if(classes.begin(), classes.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known == classes.end()) {
      classes.emplace_back(name, share.time);
    } else {
      known->second += share.time;
    }
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& entry : classes) {
    table.AddRow({entry.first, unit.Format(entry.second), ShareOfStep(report, entry.second)});
  }
  absl::StrAppend(&out, "\n", table.Render());
}

// The longest stretches, in time order.
std::vector<Stretch> Longest(const ExplainReport& report, std::size_t top) {
  std::vector<Stretch> longest = report.path;
  std::stable_sort(longest.begin(), longest.end(), [](const Stretch& a, const Stretch& b) {
    return a.to - a.from > b.to - b.from;
  });
  if (longest.size() > top) longest.resize(top);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const Stretch& a, const Stretch& b) { return a.from < b.from; });
  return longest;
}

// "compute 3.1, tp all_gather 0.8": in the step's unit.
std::string SharesText(const ExplainReport& report, const std::vector<traces::Share>& shares) {
  const TimeUnit unit(report.run.step);
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shares.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    ClassName(report.traced.classes, shares[i].cls, shares[i].kind), " ",
                    unit.Format(shares[i].time));
  }
  if (shares.size() > kShown) absl::StrAppend(&text, ", ", shares.size() - kShown, " more");
  return text;
}

std::string StretchText(const ExplainReport& report, const Stretch& s) {
  const TimeUnit unit(report.run.step);
  return absl::StrCat(
      unit.WithName(s.from), ": rank ", s.rank, " for ", unit.WithName(s.to - s.from), " (",
      SharesText(report, s.shares), "), ", Count(s.operations, "operation", "operations"), " from ",
      OpName(report.traced.graph, s.first), " on, which waited for ", ReasonText(s.reason));
}

void AppendPath(const ExplainReport& report, std::size_t top, std::string& out) {
  if (report.path.size() < 2) return;  // one rank: the classes say it all
  const std::vector<Stretch> longest = Longest(report, top);
  std::vector<std::string> lines;
  lines.reserve(longest.size());
  for (const Stretch& s : longest) lines.push_back(StretchText(report, s));
  AppendBullets(absl::StrCat("The critical path goes from rank to rank in ", report.path.size(),
                             " stretches; the ", longest.size(), " longest:"),
                lines, out);
}

std::string GapText(const ExplainReport& report, std::size_t index) {
  const traces::IdleGap& gap = report.gaps[index];
  const TimeUnit unit(report.run.step);
  const std::int32_t rank =
      report.traced.graph.recording.ranks[static_cast<std::size_t>(gap.rank)].rank;
  std::string text = absl::StrCat("rank ", rank, ", ", unit.WithName(gap.length()), " at ",
                                  unit.WithName(gap.from), ", ");
  if (gap.next == traces::kNoTask) {
    absl::StrAppend(&text, "after its last kernel. Till the end of the step: ");
  } else {
    absl::StrAppend(&text, "before ", OpName(report.traced.graph, gap.next), ". It waited for: ");
  }
  constexpr std::size_t kShown = 4;
  const std::vector<traces::Share>& shares = report.gap_shares[index];
  for (std::size_t i = 0; i < std::min(shares.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ShareText(report, shares[i], rank));
  }
  if (shares.size() > kShown) absl::StrAppend(&text, ", ", shares.size() - kShown, " more");
  return text;
}

void AppendGaps(const ExplainReport& report, std::string& out) {
  std::vector<std::string> lines;
  lines.reserve(report.gaps.size());
  for (std::size_t i = 0; i < report.gaps.size(); ++i) lines.push_back(GapText(report, i));
  AppendBullets(
      "The longest gaps, in which no kernel ran on a GPU, and what the next kernel waited "
      "for:",
      lines, out);
}

void AppendSensitivities(const ExplainReport& report, std::string& out) {
  const TimeUnit unit(report.run.step);
  TextTable table({{{"if it took no time", ""}, true},
                   {{"the step", unit.name}, false},
                   {{"shorter by", unit.name}, false},
                   {{"", "%"}, false}});
  for (const traces::Sensitivity& s : report.sensitivities) {
    const Picoseconds saved = report.run.step - s.step;
    table.AddRow({s.name, unit.Format(s.step), unit.Format(saved), ShareOfStep(report, saved)});
  }
  absl::StrAppend(&out, "\nEach found by running the step again:\n", table.Render());
}

}  // namespace

std::string ExplainText(const ExplainReport& report, std::size_t top) {
  const TimeUnit unit(report.run.step);
  std::string out = absl::StrCat("optimus ", report.traced.version, " explain\n");
  AppendTraceFacts(report.traced, out);
  AppendFact("step", unit.WithName(report.run.step), out);
  AppendPathShares(report, out);
  AppendPath(report, top, out);
  AppendGaps(report, out);
  AppendSensitivities(report, out);
  AppendUnpaired(report.traced.graph, out);
  return out;
}

}  // namespace optimus::tools
