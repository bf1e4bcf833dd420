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
  cells.push_back(error ? absl::StrFormat("%+.1f", *error) : "-");
  cells.push_back(row.fitted.empty() ? "no"
                                     : absl::StrCat("yes: ", absl::StrJoin(row.fitted, ", ")));
  return cells;
}

void AppendInferred(const PaperTable& table, std::string& out) {
  // One line a text, with the experiments and methods it holds for.
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  for (const PaperCase& entry : table.cases) {
    if (entry.inferred.empty()) continue;
    const auto found = std::find_if(lines.begin(), lines.end(),
                                    [&](const auto& line) { return line.first == entry.inferred; });
    auto& line = found == lines.end() ? lines.emplace_back(entry.inferred, 0) : *found;
    line.second.push_back(absl::StrCat(entry.experiment, " ", entry.method->name));
  }
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (const auto& [text, cases] : lines) {
    texts.push_back(absl::StrCat(absl::StrJoin(cases, ", "), ": ", text));
  }
  AppendBullets("Inferred, since the paper does not say it", texts, out);
}

void AppendSources(const ReproducedTable& table, std::string& out) {
  std::vector<std::string> lines;
  for (const ReproducedRow& row : table.rows) {
    if (row.paper == nullptr) continue;
    const std::string line =
        absl::StrCat(row.paper->source, row.paper->note.empty() ? "" : ": ", row.paper->note);
    if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(line);
    }
  }
  AppendBullets("Published figures from", lines, out);
}

void AppendTable(const ReproducedTable& reproduced, std::string& out) {
  TextTable table({{{"experiment"}, true},
                   {{"method"}, true},
                   {{"quantity"}, true},
                   {{"unit"}, true},
                   {{"simulated"}, false},
                   {{"paper"}, false},
                   {{"difference"}, false},
                   {{"error %"}, false},
                   {{"fitted on it"}, true}});
  for (const ReproducedRow& row : reproduced.rows) table.AddRow(Cells(row));
  absl::StrAppend(&out, "\nTable ", reproduced.table->number, ": ",
                  Wrap(reproduced.table->title, 0), "\n\n", table.Render());
  AppendInferred(*reproduced.table, out);
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
             "constants of the profile that were chosen so that this very figure comes out; "
             "difference = simulated - paper, error = simulated / paper - 1",
             out);
  for (const ReproducedTable& table : reproduction.tables) AppendTable(table, out);
  absl::StrAppend(&out, "\nruns        ", reproduction.runs, "\n",
                  WallLine(reproduction.wall_s, reproduction.peak_memory_mib));
  return out;
}

}  // namespace optimus::tools
