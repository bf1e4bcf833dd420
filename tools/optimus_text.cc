#include "tools/optimus_text.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
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

// Of encoder work less than this outside the bubbles is none.
constexpr double kNothingOutside = 0.02;

// What makes the step longer though the encoders' work is (or, but for a part, were) hidden.
std::string WaitingText(const RankedPlan& best) {
  std::vector<std::string> causes;
  if (best.delta_f > Picoseconds(0)) {
    causes.push_back("the first micro-batch must pass the encoders before the LLM can start");
  }
  if (best.delta_b > Picoseconds(0)) {
    causes.push_back("the encoders' last backward begins after the LLM's last gradient");
  }
  if (best.encoder_data_parallel.value_or(Picoseconds(0)) > Picoseconds(0)) {
    causes.push_back(
        "the encoders' gathers come before the LLM's, their reductions after it (delta_F is at "
        "least their gathers)");
  }
  std::string text;
  if (best.predicted > best.llm_step && !causes.empty()) {
    absl::StrAppend(&text,
                    1 - best.fine_efficiency.work < kNothingOutside
                        ? ", so the step is longer by waiting, not by work: "
                        : "; the rest of the extension is waiting: ",
                    absl::StrJoin(causes, ", "));
  }
  if (best.fine_efficiency.time < 0) {
    absl::StrAppend(&text, "; Eff_time is below 0: the step grew by more than the encoder time of ",
                    "one GPU, the busiest");
  }
  return text;
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
      " % of the encoders' work lies outside the LLM's bubbles", WaitingText(best));
  AppendFact("not hidden", text, out);
}

void AppendComparison(const StepComparison& step, const TimeUnit& unit, std::string& out) {
  AppendFact("predicted", absl::StrCat(unit.WithName(step.predicted), " by the bubble scheduler"),
             out);
  AppendFact(
      "simulated",
      absl::StrFormat(
          "%s by SimGrid on the emitted schedule (%+.2f %%) = predicted, %s by "
          "the order of operations alone (they start as soon as it allows, but messages queue "
          "behind each other), %s by links that are shared, %s by "
          "interference of kernels and collectives",
          unit.WithName(step.simulated), step.difference_percent(), unit.Change(step.order()),
          unit.Change(step.contention()), unit.Change(step.interference())),
      out);
}

// What `coarse` is of.
const char* CoarseText(const OptimusReport& optimus) {
  return optimus.scheduler == SchedulerName(step::Optimus::LIST)
             ? "of the paper's scheduler on the same plan"
             : "the schedule before work was moved between the LLM's kernels";
}

void AppendBounds(const OptimusReport& optimus, const TimeUnit& unit, std::string& out) {
  const RankedPlan& best = optimus.plan.ranked.front();
  AppendFact(
      "bounds",
      absl::StrCat(
          "work ", unit.WithName(best.bounds.work), " (compute of LLM and encoders ",
          "spread over all GPUs, and T_llm), fluid of this plan ", unit.WithName(best.bounds.fluid),
          " (encoder work cut at will into idle compute of a rigid LLM timeline, and the "
          "encoders' own data-parallel communication), least over all plans ",
          unit.WithName(LeastFluidBound(optimus.plan)), "; predicted = ",
          absl::StrFormat("%.3f", ToSeconds(best.predicted) / ToSeconds(best.bounds.fluid)),
          " x fluid of this plan, gap left ", Percent(GapLeft(best)),
          " % = (predicted - fluid) / (coarse - fluid) with coarse = ", unit.WithName(best.coarse),
          ", ", CoarseText(optimus)),
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

// `capacity`: of one GPU, "of 80.00"; empty where unknown.
std::vector<Column> PlanColumns(const char* u, const std::string& capacity) {
  return {
      {{"", "plan", ""}, false},
      {{"", "encoders", ""}, true},
      {{"", "m", ""}, true},
      {{"", "split", ""}, true},
      {{"", "warm-up", ""}, true},
      {{"pre-", "dicted", u}, false},
      {{"", "T_llm", u}, false},
      {{"", "delta_F", u}, false},
      {{"", "delta_B", u}, false},
      {{"Eff_work", "coarse", "%"}, false},
      {{"", "fine", "%"}, false},
      {{"Eff_time", "coarse", "%"}, false},
      {{"", "fine", "%"}, false},
      {{"work", "bound", u}, false},
      {{"fluid", "bound", u}, false},
      {{"gap", "left", "%"}, false},
      {{"encoder", "DP", u}, false},
      {{capacity.empty() ? "" : "memory", capacity.empty() ? "memory" : capacity, "GiB"}, false},
      {{"placed", "by", ""}, true},
      {{"simu-", "lated", u}, false}};
}

std::vector<std::string> PlanRow(const OptimusReport& optimus, std::size_t index,
                                 const TimeUnit& unit) {
  const RankedPlan& plan = optimus.plan.ranked[index];
  // The best plan was simulated in any case.
  const std::optional<Picoseconds> simulated =
      index == 0 && !plan.judged ? optimus.step.simulated : plan.judged;
  const auto join_splits = [](std::string* out, const planner::Split& split) {
    absl::StrAppend(out, SplitText(split));
  };
  return {absl::StrCat(index + 1),
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
          simulated ? unit.Format(*simulated) : "-"};
}

// "of vit-22b + vit-5b, in this order"; nothing where there is one.
std::string OrderText(const OptimusReport& optimus) {
  if (optimus.encoders.size() < 2) return "";
  return absl::StrCat(" of ", absl::StrJoin(optimus.encoders, " + "), ", in this order");
}

std::string PlansLegend(const OptimusReport& optimus) {
  return absl::StrCat(
      "encoders: parallelism of an encoder pipeline", OrderText(optimus),
      "; m: encoder pipelines beside each LLM pipeline; split: micro-batches of each, 3*2 means "
      "that two of them get 3; predicted = T_llm + delta_F + delta_B; fluid bound: of the plan, "
      "with the encoders' own data-parallel communication; gap left = (predicted - fluid bound) / "
      "(coarse - fluid bound); coarse: ",
      CoarseText(optimus),
      "; encoder DP: what the encoders' own data-parallel communication adds to predicted, for the "
      "best; memory: of the fullest GPU; simulated: by SimGrid; by paper, the best plan by "
      "prediction is run; by list, the best plans by prediction and the best of paper, and the "
      "shortest step wins");
}

void AppendPlans(const Report& report, std::string& out) {
  const OptimusReport& optimus = *report.optimus;
  const std::vector<RankedPlan>& ranked = optimus.plan.ranked;
  const TimeUnit unit(ranked.front().predicted);
  TextTable table(PlanColumns(
      unit.name, report.memory ? absl::StrCat("of ", Gib(report.memory->capacity)) : ""));
  const std::size_t shown = std::min(ranked.size(), kMostPlans);
  for (std::size_t i = 0; i < shown; ++i) table.AddRow(PlanRow(optimus, i, unit));
  absl::StrAppend(
      &out, "\nPlans, best first: by simulated step where they were run, else by prediction\n\n",
      table.Render());
  if (shown < ranked.size()) {
    absl::StrAppend(&out, "... and ", ranked.size() - shown, " more (--json has all)\n");
  }
  absl::StrAppend(&out, "\n", Wrap(PlansLegend(optimus), 0), "\n");
}

// Plans that were dropped for one reason.
struct DroppedGroup {
  std::string reason;
  std::vector<std::string> plans;
};

// Without "encoder plan PP 1 x TP 8: ", which stands beside it.
std::string ShortReason(const colocate::DroppedPlan& dropped) {
  for (const planner::EncoderPlan& plan : dropped.encoders) {
    absl::string_view reason = dropped.reason;
    const std::string prefix = absl::StrCat("encoder plan ", planner::ToString(plan), ": ");
    if (absl::ConsumePrefix(&reason, prefix)) return std::string(reason);
  }
  return dropped.reason;
}

// In the order of each reason's first plan.
std::vector<DroppedGroup> GroupDropped(const std::vector<colocate::DroppedPlan>& dropped) {
  std::vector<DroppedGroup> groups;
  for (const colocate::DroppedPlan& plan : dropped) {
    const std::string reason = ShortReason(plan);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const DroppedGroup& g) { return g.reason == reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {reason, {}});
    group->plans.push_back(PlansText(plan.encoders));
  }
  return groups;
}

void AppendDropped(const OptimusReport& optimus, std::string& out) {
  const std::vector<colocate::DroppedPlan>& dropped = optimus.plan.dropped;
  if (dropped.empty()) return;
  TextTable table({{{"dropped plans"}, true}, {{"reason"}, true}});
  const std::vector<DroppedGroup> groups = GroupDropped(dropped);
  std::size_t left = dropped.size();
  for (std::size_t i = 0; i < groups.size() && i < kMostPlans; ++i) {
    table.AddRow({absl::StrJoin(groups[i].plans, ", "), groups[i].reason});
    left -= groups[i].plans.size();
  }
  absl::StrAppend(&out, "\n", table.Render());
  if (left > 0) absl::StrAppend(&out, "... and ", left, " more (--json has all)\n");
  const auto is_part = [&](const colocate::DroppedPlan& plan) {
    return plan.encoders.size() < optimus.encoders.size();
  };
  if (std::any_of(dropped.begin(), dropped.end(), is_part)) {
    absl::StrAppend(&out, "\n",
                    Wrap("a dropped plan of fewer encoders is that of the largest ones, whatever "
                         "the plans of the others",
                         0),
                    "\n");
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
  AppendBounds(optimus, unit, out);
}

std::string PlanText(const Report& report) {
  const OptimusReport& optimus = *report.optimus;
  std::string out;
  AppendHeader(report, out);
  AppendOptimus(report, out);
  AppendPlans(report, out);
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
