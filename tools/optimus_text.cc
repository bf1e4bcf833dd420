#include "tools/optimus_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/report_text.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

using colocate::RankedPlan;

// Of more plans than these, the text shows the first; --json has all.
constexpr std::size_t kMostPlans = 24;

std::string EncoderText(const OptimusReport& optimus, std::size_t encoder) {
  const RankedPlan& best = optimus.plan.ranked.front();
  const std::int32_t pipelines = best.pipelines[encoder];
  return absl::StrCat(optimus.encoders[encoder], ": ", planner::ToString(best.encoders[encoder]),
                      ", DP ", planner::DataParallelOf(best.encoders[encoder], optimus.llm), ": ",
                      pipelines, pipelines == 1 ? " encoder pipeline" : " encoder pipelines",
                      " beside each LLM pipeline, micro-batches ", SplitText(best.splits[encoder]));
}

void AppendPlan(const OptimusReport& optimus, std::string& out) {
  std::vector<std::string> encoders;
  for (std::size_t e = 0; e < optimus.encoders.size(); ++e) {
    encoders.push_back(EncoderText(optimus, e));
  }
  AppendFact("plan",
             absl::StrCat(absl::StrJoin(encoders, "; "), "; LLM warm-up ",
                          WarmUpText(optimus.plan.ranked.front().warm_up)),
             out);
}

void AppendNotHidden(const RankedPlan& best, const TimeUnit& unit, std::string& out) {
  AppendFact("LLM alone", absl::StrCat(unit.WithName(best.llm_step), " (T_llm)"), out);
  std::string text = absl::StrCat(
      unit.WithName(best.predicted - best.llm_step),
      " by which the step is longer than that: ", "delta_F ", unit.WithName(best.delta_f),
      " (the LLM starts later) + delta_B ", unit.WithName(best.delta_b),
      " (the end comes later); the encoders' own data-parallel ", "communication makes up ",
      unit.WithName(best.encoder_data_parallel.value_or(Picoseconds(0))), " of it; ",
      Percent(1 - best.fine_efficiency.work),
      " % of the encoders' work lies outside the LLM's bubbles");
  AppendFact("not hidden", text, out);
}

void AppendComparison(const StepComparison& step, const TimeUnit& unit, std::string& out) {
  AppendFact("predicted", absl::StrCat(unit.WithName(step.predicted), " by the bubble scheduler"),
             out);
  AppendFact("simulated",
             absl::StrFormat("%s by SimGrid on the emitted schedule (%+.2f %%) = predicted, %s by "
                             "the order of operations alone, %s by links that are shared, %s by "
                             "interference of kernels and collectives",
                             unit.WithName(step.simulated), step.difference_percent(),
                             unit.Change(step.order()), unit.Change(step.contention()),
                             unit.Change(step.interference())),
             out);
}

void AppendBounds(const RankedPlan& best, const TimeUnit& unit, std::string& out) {
  AppendFact(
      "bounds",
      absl::StrCat(
          "work ", unit.WithName(best.bounds.work), " (compute of LLM and encoders ",
          "spread over all GPUs, and T_llm), fluid ", unit.WithName(best.bounds.fluid),
          " (encoder work cut at will into idle compute of a rigid LLM timeline); ", "predicted = ",
          absl::StrFormat("%.3f", ToSeconds(best.predicted) / ToSeconds(best.bounds.fluid)),
          " x fluid, gap left ", Percent(GapLeft(best)),
          " % = (predicted - fluid) / (coarse - fluid) with coarse = ", unit.WithName(best.coarse),
          ", the schedule before work was moved ", "between the LLM's kernels"),
      out);
  AppendFact(
      "efficiency",
      absl::StrFormat("Eff_work coarse %s %%, fine %s %% (share of the encoders' work inside "
                      "LLM bubbles); Eff_time coarse %s %%, fine %s %% (1 - (step - T_llm) / "
                      "encoder time of the busiest GPU)",
                      Percent(best.coarse_efficiency.work), Percent(best.fine_efficiency.work),
                      Percent(best.coarse_efficiency.time), Percent(best.fine_efficiency.time)),
      out);
}

std::vector<Column> PlanColumns(const char* u) {
  return {{{"", "plan", ""}, false},      {{"", "encoders", ""}, true},
          {{"", "m", ""}, true},          {{"", "split", ""}, true},
          {{"", "warm-up", ""}, true},    {{"pre-", "dicted", u}, false},
          {{"", "T_llm", u}, false},      {{"", "delta_F", u}, false},
          {{"", "delta_B", u}, false},    {{"Eff_work", "coarse", "%"}, false},
          {{"", "fine", "%"}, false},     {{"Eff_time", "coarse", "%"}, false},
          {{"", "fine", "%"}, false},     {{"work", "bound", u}, false},
          {{"fluid", "bound", u}, false}, {{"gap", "left", "%"}, false},
          {{"encoder", "DP", u}, false},  {{"", "memory", "GiB"}, false},
          {{"placed", "by", ""}, true},   {{"simu-", "lated", u}, false}};
}

std::vector<std::string> PlanRow(std::size_t rank, const RankedPlan& plan, const TimeUnit& unit) {
  const auto join_splits = [](std::string* out, const planner::Split& split) {
    absl::StrAppend(out, SplitText(split));
  };
  return {absl::StrCat(rank),
          PlansText(plan.encoders),
          absl::StrJoin(plan.pipelines, " + "),
          absl::StrJoin(plan.splits, " + ", join_splits),
          WarmUpText(plan.warm_up),
          unit.Format(plan.predicted),
          unit.Format(plan.llm_step),
          unit.Format(plan.delta_f),
          unit.Format(plan.delta_b),
          Percent(plan.coarse_efficiency.work),
          Percent(plan.fine_efficiency.work),
          Percent(plan.coarse_efficiency.time),
          Percent(plan.fine_efficiency.time),
          unit.Format(plan.bounds.work),
          unit.Format(plan.bounds.fluid),
          Percent(GapLeft(plan)),
          plan.encoder_data_parallel ? unit.Format(*plan.encoder_data_parallel) : "-",
          Gib(plan.memory.total()),
          SchedulerName(plan.scheduler),
          plan.judged ? unit.Format(*plan.judged) : "-"};
}

void AppendPlans(const OptimusReport& optimus, std::string& out) {
  const std::vector<RankedPlan>& ranked = optimus.plan.ranked;
  const TimeUnit unit(ranked.front().predicted);
  TextTable table(PlanColumns(unit.name));
  const std::size_t shown = std::min(ranked.size(), kMostPlans);
  for (std::size_t i = 0; i < shown; ++i) table.AddRow(PlanRow(i + 1, ranked[i], unit));
  absl::StrAppend(&out, "\nPlans, best first\n\n", table.Render());
  if (shown < ranked.size()) {
    absl::StrAppend(&out, "... and ", ranked.size() - shown, " more (--json has all)\n");
  }
  absl::StrAppend(
      &out, "\n",
      Wrap("encoders: parallelism of an encoder pipeline; m: encoder pipelines beside each LLM "
           "pipeline; split: micro-batches of each, 3*2 means that two of them get 3; predicted = "
           "T_llm + delta_F + delta_B; gap left = (predicted - fluid bound) / (coarse - fluid "
           "bound), where coarse is the step before work was moved between the LLM's kernels; "
           "encoder DP: what the encoders' own data-parallel communication adds to predicted, for "
           "the best; memory: of the fullest GPU; simulated: by list, the best plans by prediction "
           "and the best of paper are run by SimGrid, and the shortest step wins",
           0),
      "\n");
}

void AppendDropped(const OptimusReport& optimus, std::string& out) {
  const std::vector<colocate::DroppedPlan>& dropped = optimus.plan.dropped;
  if (dropped.empty()) return;
  TextTable table({{{"dropped plan"}, true}, {{"reason"}, true}});
  const std::size_t shown = std::min(dropped.size(), kMostPlans);
  for (std::size_t i = 0; i < shown; ++i) {
    table.AddRow({PlansText(dropped[i].encoders), dropped[i].reason});
  }
  absl::StrAppend(&out, "\n", table.Render());
  if (shown < dropped.size()) {
    absl::StrAppend(&out, "... and ", dropped.size() - shown, " more (--json has all)\n");
  }
}

}  // namespace

void AppendOptimus(const Report& report, std::string& out) {
  if (!report.optimus) return;
  const OptimusReport& optimus = *report.optimus;
  const RankedPlan& best = optimus.plan.ranked.front();
  const TimeUnit unit(optimus.step.simulated);
  absl::StrAppend(&out, "\n");
  AppendPlan(optimus, out);
  AppendNotHidden(best, unit, out);
  AppendComparison(optimus.step, unit, out);
  AppendBounds(best, unit, out);
}

std::string PlanText(const Report& report) {
  const OptimusReport& optimus = *report.optimus;
  std::string out;
  AppendHeader(report, out);
  AppendOptimus(report, out);
  AppendPlans(optimus, out);
  AppendDropped(optimus, out);
  absl::StrAppend(&out, "\n");
  AppendFact("search",
             absl::StrCat(optimus.plan.splits_evaluated, " splits scheduled, by ",
                          optimus.exhaustive ? "exhaustive" : "local", " search"),
             out);
  AppendBullets("Assumptions", report.assumptions, out);
  AppendBullets("Notes", report.notes, out);
  absl::StrAppend(&out, "\n",
                  WallLine(report.wall_s, report.peak_memory_mib, optimus.plan.planning_seconds));
  return out;
}

}  // namespace optimus::tools
