#include "tools/validation_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

std::string WorkTable(const validation::Comparison& comparison, const TimeUnit& unit) {
  TextTable table({{{"work", ""}, true},
                   {{"operations", ""}, false},
                   {{"simulated", unit.name}, false},
                   {{"measured", unit.name}, false},
                   {{"error", "%"}, false}});
  const std::size_t shown = std::min(kWorkShown, comparison.work.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const validation::WorkComparison& work = comparison.work[i];
    table.AddRow({work.name, absl::StrCat(work.operations), unit.Format(work.simulated_s),
                  unit.Format(work.measured_s),
                  Signed(validation::RelativeError(work.simulated_s, work.measured_s))});
  }
  std::string out = table.Render();
  if (shown < comparison.work.size()) {
    absl::StrAppend(&out, "... and ", comparison.work.size() - shown, " shorter ones\n");
  }
  return out;
}

void AppendParts(const validation::Comparison& comparison, std::string& out) {
  const TimeUnit unit(comparison.measured_step);
  absl::StrAppend(&out, "\nWhere the time of a GPU goes, mean over GPUs\n\n",
                  PartsTable(comparison, unit));
  if (comparison.work.empty()) return;
  absl::StrAppend(&out, "\nTime of the operations, sum over GPUs\n\n", WorkTable(comparison, unit));
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
                   {{"", "", ""}, true}});
  for (const ValidatedExperiment& e : validation.experiments) {
    table.AddRow({e.name, unit.Format(e.measured.median), unit.Format(e.measured.first_quartile),
                  unit.Format(e.measured.third_quartile), unit.Format(e.comparison.simulated_step),
                  Signed(e.comparison.step_error), Percent(e.measured.relative()),
                  validation.noise.samples > 0 ? Percent(validation.noise.time.relative()) : "-",
                  Within(e.comparison, validation.tolerance) ? "" : "OUTSIDE"});
  }
  return table.Render();
}

std::string RankingTable(const Validation& validation) {
  TextTable table({{{"measured faster", ""}, true},
                   {{"measured slower", ""}, true},
                   {{"measured", "ratio"}, false},
                   {{"simulated", "ratio"}, false},
                   {{"", ""}, true}});
  for (const validation::RankedPair& pair : validation.ranking) {
    table.AddRow({pair.faster, pair.slower, absl::StrFormat("%.3f", pair.measured_ratio),
                  absl::StrFormat("%.3f", pair.simulated_ratio), pair.same ? "" : "DIFFERS"});
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
  if (v.noise.samples == 0) return;
  AppendFact("noise",
             absl::StrFormat("%s, always the same, timed %d times over the whole run: median %.4g "
                             "ms, %.1f %% between the quartiles, median drifts by up to %.1f %%",
                             v.noise.kernel, v.noise.samples, v.noise.time.median * 1e3,
                             100 * v.noise.time.relative(), 100 * v.noise.drift),
             out);
}

}  // namespace

std::string ComparisonText(const validation::Comparison& comparison, double tolerance) {
  std::string out;
  AppendFact("step", StepText(comparison), out);
  AppendFact("tolerance",
             absl::StrFormat("%.4g %%: the step is %s it", 100 * tolerance,
                             Within(comparison, tolerance) ? "within" : "OUTSIDE"),
             out);
  AppendFact("operations",
             absl::StrCat(comparison.operations_compared, " in both timelines, ",
                          comparison.operations_only_in_one, " in one only"),
             out);
  AppendParts(comparison, out);
  return out;
}

std::string ValidationText(const Validation& validation) {
  std::string out;
  AppendConditions(validation, out);
  absl::StrAppend(&out, "\nSteps: simulated / measured - 1, tolerance ",
                  absl::StrFormat("%.4g", 100 * validation.tolerance), " %\n\n",
                  StepsTable(validation), "\n");
  AppendFact("error",
             absl::StrFormat("median %.1f %% of the steps", 100 * validation.MedianError()), out);
  if (!validation.ranking.empty()) {
    absl::StrAppend(&out, "\nOrder of those that differ by more than ",
                    absl::StrFormat("%.4g", 100 * validation.least_difference), " %\n\n",
                    RankingTable(validation));
  }
  for (const ValidatedExperiment& e : validation.experiments) {
    absl::StrAppend(&out, "\n");
    AppendFact("experiment", e.name, out);
    AppendFact("step", StepText(e.comparison), out);
    AppendParts(e.comparison, out);
  }
  absl::StrAppend(&out, "\n", WallLine(validation.wall_s, PeakMemoryMib()));
  return out;
}

}  // namespace optimus::tools
