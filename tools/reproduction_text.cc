#include "tools/reproduction_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/report_text.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

// Whether the published figure was an input.
std::string FittedText(const ReproducedRow& row) {
  std::vector<std::string> texts;
  if (!row.fitted.empty()) texts.push_back(absl::StrCat("yes: ", absl::StrJoin(row.fitted, ", ")));
  if (row.plan_chosen_on_it) texts.push_back("plan chosen on it");
  return texts.empty() ? "no" : absl::StrJoin(texts, "; ");
}

std::vector<std::string> Cells(const ReproducedRow& row) {
  std::vector<std::string> cells = {row.experiment, row.method->title, row.quantity, row.unit,
                                    FormatQuantity(row.quantity, row.simulated)};
  if (row.paper == nullptr) {
    cells.insert(cells.end(), {"-", "-", "-", "-"});
    return cells;
  }
  const std::optional<double> error = row.error_percent();
  const std::string difference = FormatQuantity(row.quantity, row.difference());
  cells.push_back(row.paper->text);
  cells.push_back(row.difference() < 0 ? difference : absl::StrCat("+", difference));
  cells.push_back(error ? absl::StrFormat("%+.1f", *error) : "");
  cells.push_back(FittedText(row));
  return cells;
}

// Lines in order of their first appearance, each with what it holds for.
template <class Subject>
using Grouped = std::vector<std::pair<std::string, std::vector<Subject>>>;

template <class Subject>
void Add(const std::string& line, const Subject& subject, Grouped<Subject>& groups) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& group) { return group.first == line; });
  auto& group = found == groups.end() ? groups.emplace_back(line, std::vector<Subject>()) : *found;
  group.second.push_back(subject);
}

struct Case {
  std::string experiment, method;
};

std::string Titled(const Grouped<std::string>& groups, const char* joint) {
  return absl::StrJoin(groups, "; ", [&](std::string* out, const auto& group) {
    absl::StrAppend(out, group.first, joint, absl::StrJoin(group.second, ", "));
  });
}

// "megatron of weak_a, weak_b; balanced of weak_a"; "all" where they are all of the table's.
std::string CasesText(const std::vector<Case>& cases, const PaperTable& table) {
  if (cases.size() == table.cases.size() && cases.size() > 1) return "all";
  Grouped<std::string> by_method;
  for (const Case& one : cases) Add(one.method, one.experiment, by_method);
  return Titled(by_method, " of ");
}

void AppendCases(const std::string& title, const Grouped<Case>& groups, const PaperTable& table,
                 std::string& out) {
  std::vector<std::string> lines;
  lines.reserve(groups.size());
  for (const auto& [text, cases] : groups) {
    lines.push_back(absl::StrCat(CasesText(cases, table), ": ", text));
  }
  AppendBullets(title, lines, out);
}

void AppendInferred(const ReproducedTable& reproduced, std::string& out) {
  const PaperTable& table = *reproduced.table;
  Grouped<Case> inferred, assumed;
  for (const PaperCase& entry : table.cases) {
    if (entry.inferred.empty()) continue;
    Add(entry.inferred, Case{entry.experiment, entry.method->name}, inferred);
  }
  for (const CaseAssumptions& one : reproduced.assumptions) {
    for (const std::string& text : one.texts) {
      Add(text, Case{one.experiment, one.method->name}, assumed);
    }
  }
  AppendCases("Inferred, since the paper does not say it", inferred, table, out);
  AppendCases("Assumptions of the experiment files", assumed, table, out);
}

void AppendSources(const ReproducedTable& reproduced, std::string& out) {
  Grouped<const ReproducedRow*> sources;
  for (const ReproducedRow& row : reproduced.rows) {
    if (row.paper == nullptr) continue;
    Add(absl::StrCat(row.paper->source.empty() ? "no source is given" : row.paper->source,
                     row.paper->note.empty() ? "" : ": ", row.paper->note),
        &row, sources);
  }
  if (sources.empty()) {
    absl::StrAppend(&out, "\nno published figure is entered for this table; add rows to ",
                    "examples/paper/paper_figures.csv\n");
    return;
  }
  std::vector<std::string> lines;
  lines.reserve(sources.size());
  for (const auto& [source, rows] : sources) {
    Grouped<std::string> by_case;
    for (const ReproducedRow* row : rows) {
      Add(absl::StrCat(row->experiment, " ", row->method->name), row->quantity, by_case);
    }
    lines.push_back(absl::StrCat(source, " (", Titled(by_case, " "), ")"));
  }
  AppendBullets("Published figures from", lines, out);
}

void AppendTable(const ReproducedTable& reproduced, std::string& out) {
  TextTable table({{{"experiment"}, true},
                   {{"method"}, true},
                   {{"quantity"}, true},
                   {{"unit"}, true},
                   {{"simulated"}, false},
                   {{"published"}, false},
                   {{"difference"}, false},
                   {{"error %"}, false},
                   {{"fitted on it", "(no: no constant of the profile was)"}, true}});
  for (const ReproducedRow& row : reproduced.rows) table.AddRow(Cells(row));
  absl::StrAppend(&out, "\nTable ", reproduced.table->number, ": ",
                  Wrap(reproduced.table->title, 0), "\n\n", table.Render());
  AppendBullets("Notes", reproduced.notes, out);
  AppendInferred(reproduced, out);
  AppendSources(reproduced, out);
}

}  // namespace

std::string ReproductionText(const Reproduction& reproduction) {
  std::string out;
  AppendFact("version", reproduction.version, out);
  for (const UsedProfile& profile : reproduction.profiles) {
    AppendFact("profile",
               absl::StrCat(profile.name, " (hash ", profile.hash, "); ",
                            InterferenceText(profile.interference)),
               out);
  }
  AppendFact("fitted",
             "yes: constants of the hardware profile that were fitted on this very figure; plan "
             "chosen on it: the plan or the model's assumptions were chosen since they fit it; no: "
             "no constant of the hardware profile was fitted on it; difference = simulated - "
             "published, error = simulated / published - 1",
             out);
  for (const ReproducedTable& table : reproduction.tables) AppendTable(table, out);
  absl::StrAppend(&out, "\nruns        ", reproduction.runs, "\n",
                  WallLine(reproduction.wall_s, reproduction.peak_memory_mib));
  return out;
}

}  // namespace optimus::tools
