#include "tools/validation_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "executor/backends/backend.h"
#include "tools/resources.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

constexpr std::size_t kWorkShown = 12;

std::string Signed(double share) {
  if (!std::isfinite(share)) return "-";
  return absl::StrFormat("%+.1f", 100 * share);
}

// A line of text, wrapped.
void AppendLine(const std::string& text, std::string& out) {
  absl::StrAppend(&out, Wrap(text, 0), "\n");
}

std::string RunnerName(const std::string& runner) { return runner.empty() ? "unknown" : runner; }

std::string PartsTable(const validation::Comparison& comparison, const TimeUnit& unit) {
  TextTable table({{{"part of the step", ""}, true},
                   {{"simulated", unit.name}, false},
                   {{"measured", unit.name}, false},
                   {{"error of the step", "%"}, false}});
  for (const validation::ShareComparison& share : comparison.shares) {
    table.AddRow({share.name, unit.Format(share.simulated_s), unit.Format(share.measured_s),
                  Signed(share.error_of_step)});
  }
  return table.Render();
}

using WorkRows = absl::Span<const validation::WorkComparison>;

WorkRows Shown(const validation::Comparison& comparison, bool all_work) {
  return WorkRows(comparison.work)
      .first(all_work ? comparison.work.size() : std::min(kWorkShown, comparison.work.size()));
}

double ErrorOf(const validation::WorkComparison& work) {
  return validation::RelativeError(work.simulated_s, work.measured_s);
}

// "... and 26 shorter ones, off by -98.1 % (send gradients) to +13.0 % (...): --all-work shows
// them".
std::string HiddenText(WorkRows hidden) {
  if (hidden.empty()) return "";
  const auto [least, greatest] =
      std::minmax_element(hidden.begin(), hidden.end(),
                          [](const auto& a, const auto& b) { return ErrorOf(a) < ErrorOf(b); });
  std::string out;
  AppendLine(
      absl::StrCat("... and ",
                   Count(static_cast<std::int64_t>(hidden.size()), "shorter one", "shorter ones"),
                   ", off by ", Signed(ErrorOf(*least)), " % (", least->name, ") to ",
                   Signed(ErrorOf(*greatest)), " % (", greatest->name, "): --all-work shows all"),
      out);
  return out;
}

std::string WorkTable(const validation::Comparison& comparison, const TimeUnit& unit,
                      bool all_work) {
  TextTable table({{{"work", ""}, true},
                   {{"operations", ""}, false},
                   {{"simulated", unit.name}, false},
                   {{"measured", unit.name}, false},
                   {{"error", "%"}, false}});
  const WorkRows rows = Shown(comparison, all_work);
  for (const validation::WorkComparison& work : rows) {
    table.AddRow({work.name, absl::StrCat(work.operations), unit.Format(work.simulated_s),
                  unit.Format(work.measured_s), Signed(ErrorOf(work))});
  }
  return absl::StrCat(table.Render(), HiddenText(WorkRows(comparison.work).subspan(rows.size())));
}

void AppendParts(const validation::Comparison& comparison, bool all_work, std::string& out) {
  const TimeUnit unit(comparison.measured_step);
  absl::StrAppend(&out, "\nWhere the time of a GPU goes, mean over GPUs\n\n",
                  PartsTable(comparison, unit));
  if (comparison.work.empty()) return;
  absl::StrAppend(&out, "\nTime of the operations, sum over GPUs\n\n",
                  WorkTable(comparison, unit, all_work));
}

// What the columns mean, below the tables.
void AppendLegend(absl::Span<const validation::Comparison* const> comparisons, bool all_work,
                  std::string& out) {
  bool work = false, core_transfers = false;
  for (const validation::Comparison* comparison : comparisons) {
    const WorkRows rows = Shown(*comparison, all_work);
    work |= !rows.empty();
    core_transfers |=
        comparison->measured_runner == executor::ToString(executor::BackendKind::kCpu) &&
        std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.transfer; });
  }
  absl::StrAppend(&out, "\n");
  AppendLine(
      "error of the step: (simulated - measured) of that part / measured step; they add up to "
      "the error of the step",
      out);
  if (work) AppendLine("error of work: simulated / measured - 1, of the sum", out);
  if (core_transfers) {
    AppendLine(
        "transfers beside computing on CPU cores are simulated too short (-50 to -98 %): a core "
        "takes part in one only between two kernels, and a send ends when it has been taken; "
        "what the step waits for is right (docs/accuracy.md)",
        out);
  }
}

std::string StepText(const validation::Comparison& comparison) {
  const TimeUnit unit(comparison.measured_step);
  return absl::StrCat("simulated ", unit.Format(comparison.simulated_step), ", measured ",
                      unit.WithName(comparison.measured_step), ": ", Signed(comparison.step_error),
                      " %");
}

std::string StepsTable(const Validation& validation) {
  double longest = 0;
  for (const auto& e : validation.experiments) longest = std::max(longest, e.measured.greatest);
  const TimeUnit unit(FromSeconds(longest));
  TextTable table({{{"", "experiment", ""}, true},
                   {{"measured", "median", unit.name}, false},
                   {{"first", "quartile", unit.name}, false},
                   {{"third", "quartile", unit.name}, false},
                   {{"", "simulated", unit.name}, false},
                   {{"", "error", "%"}, false},
                   {{"spread", "of steps", "%"}, false},
                   {{"noise of", "machine", "%"}, false},
                   {{"", "verdict", ""}, true}});
  for (const ValidatedExperiment& e : validation.experiments) {
    table.AddRow({e.name, unit.Format(e.measured.median), unit.Format(e.measured.first_quartile),
                  unit.Format(e.measured.third_quartile), unit.Format(e.comparison.simulated_step),
                  Signed(e.comparison.step_error), Percent(e.measured.relative()),
                  validation.noise.samples > 0 ? Percent(validation.noise.time.relative()) : "-",
                  Within(e.comparison, validation.tolerance) ? "within" : "OUTSIDE"});
  }
  return table.Render();
}

std::string RankingTable(const Validation& validation) {
  TextTable table({{{"measured faster", ""}, true},
                   {{"measured slower", ""}, true},
                   {{"measured", "ratio"}, false},
                   {{"simulated", "ratio"}, false},
                   {{"order", ""}, true}});
  for (const validation::RankedPair& pair : validation.ranking) {
    table.AddRow({pair.faster, pair.slower, absl::StrFormat("%.3f", pair.measured_ratio),
                  absl::StrFormat("%.3f", pair.simulated_ratio), pair.same ? "same" : "DIFFERENT"});
  }
  return table.Render();
}

void AppendConditions(const Validation& v, std::string& out) {
  AppendFact("backend", absl::StrCat(v.backend, ": ", v.device), out);
  AppendFact("hosts", v.hosts, out);
  AppendFact("simulator", v.simulator, out);
  AppendFact("profile", absl::StrCat(v.profile, " (hash ", v.profile_hash, ")"), out);
  AppendFact(
      "measured",
      absl::StrCat(Count(v.experiments.empty() ? 0 : v.experiments.front().steps, "step", "steps"),
                   " of each experiment in ", Count(v.rounds, "round", "rounds"), ", each after ",
                   v.warm_up, " of warm-up; profiling and running take turns"),
      out);
  if (!v.few_samples.empty()) AppendFact("few samples", v.few_samples, out);
  if (v.noise.samples == 0) return;
  AppendFact("noise",
             absl::StrFormat("%s, always the same, timed %d times over the whole run: median %.4g "
                             "ms, %.1f %% between the quartiles, median drifts by up to %.1f %%",
                             v.noise.kernel, v.noise.samples, v.noise.time.median * 1e3,
                             100 * v.noise.time.relative(), 100 * v.noise.drift),
             out);
}

// The steps' errors in one line.
void AppendErrors(const Validation& validation, std::string& out) {
  const ValidatedExperiment* worst = validation.Worst();
  if (worst == nullptr) return;
  AppendFact("error",
             absl::StrFormat("median of the steps' errors %.1f %%, largest %s %% (%s)",
                             100 * validation.MedianError(), Signed(worst->comparison.step_error),
                             worst->name),
             out);
}

void AppendRanking(const Validation& validation, std::string& out) {
  const std::string difference = absl::StrFormat("%.4g %%", 100 * validation.least_difference);
  if (!validation.ranking.empty()) {
    absl::StrAppend(&out, "\nOrder of those that train the same and differ by more than ",
                    difference, "\n\n", RankingTable(validation));
  }
  if (validation.close_pairs == 0) return;
  absl::StrAppend(&out, "\n",
                  Count(validation.close_pairs, "pair that trains the same is",
                        "pairs that train the same are"),
                  " closer than ", difference, " and left out\n");
}

void AppendLateness(const Validation& validation, std::string& out) {
  for (const ValidatedExperiment& e : validation.experiments) {
    if (!e.emulation || e.emulation->kept_time()) continue;
    AppendFact("late", absl::StrCat(e.name, ": ", LateText(*e.emulation)), out);
  }
}

// The last word where nothing can be said.
void AppendInconclusive(const Validation& validation, std::string& out) {
  if (validation.drowns_in_noise()) {
    absl::StrAppend(&out, "\n");
    AppendLine(
        absl::StrFormat("NOTHING FOLLOWS from these errors, within or outside: the machine's own "
                        "noise is %.1f %%, the tolerance %.4g %%; run it again while nothing else "
                        "runs, or with more --rounds",
                        100 * validation.noise.time.relative(), 100 * validation.tolerance),
        out);
  }
  if (validation.late()) {
    absl::StrAppend(&out, "\n");
    AppendLine("NOTHING FOLLOWS from these errors, within or outside: emulated ranks were late",
               out);
  }
}

}  // namespace

std::string OutsideText(const validation::Comparison& comparison, double tolerance) {
  return absl::StrFormat("the error of the step is %s %%, the tolerance %.4g %%",
                         Signed(comparison.step_error), 100 * tolerance);
}

std::string OutsideText(const Validation& validation) {
  std::vector<std::string> parts;
  for (const ValidatedExperiment& e : validation.experiments) {
    if (Within(e.comparison, validation.tolerance)) continue;
    parts.push_back(absl::StrCat(e.name, ": ", OutsideText(e.comparison, validation.tolerance)));
  }
  for (const validation::RankedPair& pair : validation.ranking) {
    if (pair.same) continue;
    parts.push_back(absl::StrCat(pair.faster, " is faster than ", pair.slower,
                                 " as measured, not as simulated"));
  }
  if (!validation.conclusive()) parts.emplace_back("but nothing follows from that, see the report");
  return absl::StrJoin(parts, "; ");
}

std::string ComparisonText(const validation::Comparison& comparison, double tolerance,
                           bool all_work) {
  std::string out;
  AppendFact("runners",
             absl::StrCat("simulated by ", RunnerName(comparison.simulated_runner),
                          ", measured by ", RunnerName(comparison.measured_runner)),
             out);
  AppendFact("step", StepText(comparison), out);
  AppendFact("tolerance",
             absl::StrFormat("%.4g %%: the step is %s it", 100 * tolerance,
                             Within(comparison, tolerance) ? "within" : "OUTSIDE"),
             out);
  AppendFact("operations",
             absl::StrCat(comparison.operations_compared, " in both timelines, ",
                          comparison.operations_only_in_one, " in one only"),
             out);
  AppendParts(comparison, all_work, out);
  AppendLegend({&comparison}, all_work, out);
  return out;
}

std::string ValidationText(const Validation& validation, bool all_work) {
  std::string out;
  AppendConditions(validation, out);
  absl::StrAppend(&out, "\nSteps: simulated / measured - 1, tolerance ",
                  absl::StrFormat("%.4g", 100 * validation.tolerance), " %\n\n",
                  StepsTable(validation), "\n");
  AppendErrors(validation, out);
  AppendLateness(validation, out);
  AppendRanking(validation, out);
  std::vector<const validation::Comparison*> comparisons;
  for (const ValidatedExperiment& e : validation.experiments) {
    absl::StrAppend(&out, "\n");
    AppendFact("experiment", e.name, out);
    AppendFact("step", StepText(e.comparison), out);
    AppendParts(e.comparison, all_work, out);
    comparisons.push_back(&e.comparison);
  }
  AppendLegend(comparisons, all_work, out);
  AppendInconclusive(validation, out);
  absl::StrAppend(&out, "\n", WallLine(validation.wall_s, PeakMemoryMib()));
  return out;
}

}  // namespace optimus::tools
