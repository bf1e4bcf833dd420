#include "tools/llm_search_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

// A plan of the table and its place: 1 is the best, 0 does not fit in memory or is impossible.
struct Row {
  const SearchedPlan* plan = nullptr;
  std::size_t place = 0;
};

std::vector<Row> Rows(const LlmSearchReport& report, int top) {
  std::vector<Row> rows;
  bool own_shown = false;
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    const SearchedPlan& plan = report.plans[i];
    if (i >= static_cast<std::size_t>(top) && !plan.own) continue;
    rows.push_back({&plan, i + 1});
    own_shown = own_shown || plan.own;
  }
  if (!own_shown) rows.push_back({&report.own, 0});
  return rows;
}

std::string PlaceText(const Row& row) {
  if (row.place == 0) return row.plan->impossible.empty() ? "own, too large" : "own, impossible";
  return absl::StrCat(row.place, row.plan->own ? ", own" : "");
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::vector<Column> Columns(const LlmSearchReport& report, const TimeUnit& unit) {
  return {{{"", "plan", ""}, true},
          {{"", "strategy", ""}, true},
          {{"", "DP", ""}, false},
          {{"", "PP", ""}, false},
          {{"", "TP", ""}, false},
          {{"", "V", ""}, false},
          {{"micro-", "batch", ""}, false},
          {{"recom-", "pute", ""}, true},
          {{"", "schedule", ""}, true},
          {{"", "layout", ""}, true},
          {{"encoder", "plan", ""}, true},
          {{"", "step", unit.name}, false},
          {{"", "MFU", "%"}, false},
          {{"memory", absl::StrFormat("of %.2f", report.capacity_gib), "GiB"}, false},
          {{"", "bound", unit.name}, false},
          {{"", "T_llm", unit.name}, false}};
}

std::vector<std::string> Cells(const Row& row, const TimeUnit& unit) {
  const SearchedPlan& plan = *row.plan;
  const bool simulated = plan.impossible.empty();
  const llm_search::Candidate& candidate = plan.candidate;
  return {PlaceText(row),
          plan.strategy,
          absl::StrCat(candidate.data_parallel),
          absl::StrCat(candidate.pipeline_parallel),
          absl::StrCat(candidate.tensor_parallel),
          absl::StrCat(candidate.model_chunks),
          absl::StrCat(candidate.micro_batch),
          llm_search::RecomputeName(candidate.recompute),
          plan.schedule,
          plan.layout,
          OrDash(plan.encoders),
          simulated ? unit.Format(plan.step) : "-",
          plan.mfu ? Percent(*plan.mfu) : "-",
          simulated ? absl::StrFormat("%.2f", plan.memory_gib) : "-",
          plan.bound > Picoseconds(0) ? unit.Format(plan.bound) : "-",
          plan.llm_step ? unit.Format(*plan.llm_step) : "-"};
}

void AppendHeader(const LlmSearchReport& report, std::string& out) {
  AppendFact("experiment", report.experiment, out);
  AppendFact("GPUs", absl::StrCat(report.gpus, ", global batch ", report.global_batch), out);
  AppendFact("profile", absl::StrCat(report.profile, " (hash ", report.profile_hash, ")"), out);
  if (report.capacity_gib < report.profile_capacity_gib) {
    AppendFact("memory limit",
               absl::StrFormat("%.2f GiB of a GPU's %.2f (--memory-limit)", report.capacity_gib,
                               report.profile_capacity_gib),
               out);
  }
  if (!report.scheduler.empty()) {
    AppendFact("scheduler", absl::StrCat(report.scheduler, ", of every plan of strategy OPTIMUS"),
               out);
  }
}

std::string ImpossibleText(const LlmSearchReport& report) {
  std::int64_t sum = report.impossible_in_planning;
  std::string text;
  for (const ImpossibleGroup& group : report.impossible) {
    sum += group.count;
    absl::StrAppend(&text, "; ", group.count, " by ", group.field, ", the first: ", group.example);
  }
  if (report.impossible_in_planning > 0) {
    absl::StrAppend(&text, "; ", report.impossible_in_planning, " found out in planning");
  }
  return absl::StrCat(sum, text);
}

std::string MemoryText(const LlmSearchReport& report) {
  std::string text = absl::StrCat(report.too_large, " do not fit in a GPU's memory");
  if (report.too_large > 0) {
    absl::StrAppendFormat(&text, ", by %.2f GiB or more: the smallest need is %.2f GiB, of %s",
                          report.least_memory_gib - report.capacity_gib, report.least_memory_gib,
                          report.least_memory_plan);
  }
  if (report.too_large_with_encoders > 0) {
    absl::StrAppend(&text, "; ", report.too_large_with_encoders,
                    " more do not with encoders, as planning found out");
  }
  return text;
}

std::string ValuesText(const llm_search::SearchedValues& values) {
  std::string recompute;
  for (const step::Plan::Recompute kind : values.recompute) {
    absl::StrAppend(&recompute, recompute.empty() ? "" : ", ", llm_search::RecomputeName(kind));
  }
  return absl::StrCat(values.combinations, ": TP ", absl::StrJoin(values.tensor_parallel, ", "),
                      "; PP ", absl::StrJoin(values.pipeline_parallel, ", "), "; DP ",
                      absl::StrJoin(values.data_parallel, ", "), "; V ",
                      absl::StrJoin(values.model_chunks, ", "), " (of each PP those that divide ",
                      "its layers); micro-batch ", absl::StrJoin(values.micro_batch, ", "),
                      "; recompute ", recompute, "; layout ",
                      step::Plan::Layout_Name(values.layout));
}

void AppendCounts(const LlmSearchReport& report, std::string& out) {
  absl::StrAppend(&out, "\n");
  AppendFact("searched",
             absl::StrCat(report.combinations, " combinations of strategy, DP, PP, TP, V, ",
                          "micro-batch and recomputation"),
             out);
  for (const llm_search::SearchedValues& values : report.values) {
    AppendFact(step::Plan::Strategy_Name(values.strategy), ValuesText(values), out);
  }
  AppendFact("impossible", ImpossibleText(report), out);
  AppendFact("memory", MemoryText(report), out);
  AppendFact("pruned",
             absl::StrCat(report.pruned, " by a lower bound above the best step: pipeline fill ",
                          "and drain, every slot's longest path with its tensor-parallel ",
                          "collectives, exposed data-parallel communication, one micro-batch ",
                          "through the encoders before and behind, all kernels over all GPUs"),
             out);
  AppendFact("simulated",
             absl::StrCat(report.simulated,
                          report.own_is_combination       ? ", the experiment's own plan among them"
                          : report.own.impossible.empty() ? ", and the experiment's own plan"
                                                          : "",
                          "; each planned and simulated as by optimus simulate"),
             out);
}

void AppendProof(const LlmSearchReport& report, const TimeUnit& unit, std::string& out) {
  if (!report.open) {
    AppendFact("proof",
               "no other of these combinations can be better: all bounds left are above the best",
               out);
    return;
  }
  AppendFact("proof",
             absl::StrFormat("none: the search ended after %g s (--search-time); the best is not "
                             "proven to be the best: %d combinations are left whose bound is below "
                             "it, the least %s of %s",
                             report.search_time_s, report.open->count,
                             unit.WithName(report.open->bound), report.open->least),
             out);
}

void AppendWhy(const LlmSearchReport& report, const std::vector<Row>& rows, const TimeUnit& unit,
               std::string& out) {
  if (rows.size() < 2) return;
  const SearchedPlan& best = report.plans.front();
  absl::StrAppend(&out, "\nWhy plan 1 wins\n\n");
  for (const Row& row : rows) {
    if (row.plan == &best) continue;
    if (!row.plan->impossible.empty()) {
      AppendFact("against own", absl::StrCat("impossible: ", row.plan->impossible), out);
      continue;
    }
    AppendFact(absl::StrCat("against ", row.place == 0 ? "own" : absl::StrCat(row.place)),
               absl::StrCat(unit.Change(best.step - row.plan->step), ": ", WhyText(best, *row.plan),
                            row.place == 0 ? "; own needs more memory "
                                             "than there is"
                                           : ""),
               out);
  }
}

}  // namespace

std::string LlmSearchText(const LlmSearchReport& report, int top) {
  const TimeUnit unit(report.plans.front().step);
  const std::vector<Row> rows = Rows(report, top);
  std::string out;
  AppendHeader(report, out);
  AppendCounts(report, out);
  AppendProof(report, unit, out);
  TextTable table(Columns(report, unit));
  for (const Row& row : rows) table.AddRow(Cells(row, unit));
  absl::StrAppend(&out, "\nThe best of the simulated plans, shortest step first\n\n",
                  table.Render());
  absl::StrAppend(
      &out, "\n",
      Wrap("own: of the experiment as it is; memory: of the fullest GPU; bound: lower bound on the "
           "step; T_llm: step of the LLM alone; plans that were pruned may be as good as those "
           "behind plan 1, not better than it",
           0),
      "\n");
  AppendWhy(report, rows, unit, out);
  AppendBullets("Notes", report.notes, out);
  absl::StrAppend(&out, "\n", WallLine(report.wall_s, report.peak_memory_mib));
  return out;
}

}  // namespace optimus::tools
