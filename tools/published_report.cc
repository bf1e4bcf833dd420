#include "tools/published_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/report.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

using validation::DataSet;
using validation::EvaluatedDataSet;
using validation::EvaluatedRow;
using validation::Figure;
using validation::JudgedTarget;
using validation::Statistic;
using validation::Summary;

// Four digits of a share, four significant ones of everything else.
std::string ValueText(const Figure& figure, double value) {
  return figure.unit == "share" ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value);
}

std::string TauText(const std::optional<double>& tau) {
  return tau ? absl::StrFormat("%.3f", *tau) : "-";
}

std::string UsedText(const EvaluatedRow& row) {
  if (row.prediction()) return "prediction";
  return absl::StrCat("calibration of ", absl::StrJoin(row.fitted, ", "));
}

void AppendRows(const EvaluatedDataSet& evaluated, std::string& out) {
  std::vector<Column> columns = {{{"line"}, false}};
  for (const std::string& name : evaluated.data_set->conditions) columns.push_back({{name}, false});
  for (const char* name : {"quantity", "unit"}) columns.push_back({{name}, true});
  for (const char* name : {"measured", "simulated", "error %"}) columns.push_back({{name}, false});
  columns.push_back({{"row is"}, true});
  TextTable table(std::move(columns));
  for (const EvaluatedRow& row : evaluated.rows) {
    for (const Figure& figure : row.figures) {
      std::vector<std::string> cells = {absl::StrCat(row.line)};
      cells.insert(cells.end(), row.conditions.begin(), row.conditions.end());
      for (const std::string& text : {figure.quantity, figure.unit}) cells.push_back(text);
      cells.push_back(ValueText(figure, figure.measured));
      cells.push_back(ValueText(figure, figure.simulated));
      cells.push_back(absl::StrFormat("%+.2f", 100 * figure.error()));
      cells.push_back(UsedText(row));
      table.AddRow(std::move(cells));
    }
  }
  absl::StrAppend(&out, "\n", table.Render());
}

std::string PartName(const Summary& part) {
  if (part.quantity.empty() && part.group.empty()) return "all";
  if (part.group.empty()) return part.quantity;
  return part.quantity.empty() ? part.group : absl::StrCat(part.quantity, ", ", part.group);
}

std::vector<std::string> SummaryCells(const std::string& name, const std::string& over,
                                      const Summary& summary) {
  return {name,
          over,
          absl::StrCat(summary.errors.figures),
          PercentOr(summary.errors.mean),
          PercentOr(summary.errors.median),
          PercentOr(summary.errors.largest),
          PercentOr(summary.errors.highest),
          TauText(summary.kendall_tau)};
}

TextTable SummaryTable(const char* first) {
  return TextTable({{{first, ""}, true},
                    {{"over", ""}, true},
                    {{"figures", ""}, false},
                    {{"mean", "|error| %"}, false},
                    {{"median", "|error| %"}, false},
                    {{"largest", "|error| %"}, false},
                    {{"highest", "error %"}, false},
                    {{"Kendall's", "tau"}, false}});
}

void AppendSummaries(const EvaluatedDataSet& evaluated, std::string& out) {
  TextTable table = SummaryTable("figures of");
  for (const Summary& part : evaluated.parts) {
    table.AddRow(SummaryCells(PartName(part), "predictions", part));
  }
  table.AddRow(SummaryCells("all", "predictions", evaluated.predictions));
  table.AddRow(SummaryCells("all", "all rows", evaluated.all));
  absl::StrAppend(&out, "\n", table.Render());
}

// "mean |error| 3.2 %, at most 8"
std::string ValueAndLimit(const JudgedTarget& judged) {
  const validation::Target& target = judged.target;
  if (!judged.value) {
    return target.statistic == Statistic::kKendall ? "no two predictions to rank"
                                                   : "no predictions";
  }
  if (target.statistic == Statistic::kKendall) {
    return absl::StrFormat("Kendall's tau %.3f, at least %g", *judged.value, target.limit);
  }
  const char* name = target.statistic == Statistic::kMean      ? "mean |error|"
                     : target.statistic == Statistic::kLargest ? "largest |error|"
                                                               : "highest error";
  return absl::StrFormat("%s %.3f %%, at most %g", name, 100 * *judged.value, 100 * target.limit);
}

std::string TargetText(const JudgedTarget& judged) {
  const std::string part = PartName(
      {.quantity = judged.target.quantity, .group = judged.group, .errors = {}, .kendall_tau = {}});
  return absl::StrCat(
      judged.met() ? "met" : "MISSED", ": ", part, ": ", ValueAndLimit(judged),
      judged.target.note.empty() ? "" : absl::StrCat(" (", judged.target.note, ")"));
}

void AppendDataSet(const EvaluatedDataSet& evaluated, std::string& out) {
  const DataSet& data_set = *evaluated.data_set;
  absl::StrAppend(&out, "\n", data_set.name, ": ", data_set.title, "\n");
  AppendFact("source", data_set.source, out);
  AppendFact("file", evaluated.path, out);
  AppendRows(evaluated, out);
  AppendSummaries(evaluated, out);
  std::vector<std::string> targets;
  for (const JudgedTarget& judged : evaluated.targets) targets.push_back(TargetText(judged));
  AppendBullets("Targets, over predictions", targets, out);
  std::vector<std::string> notes;
  for (const EvaluatedRow& row : evaluated.rows) {
    if (!row.note.empty()) notes.push_back(absl::StrCat("line ", row.line, ": ", row.note));
  }
  AppendBullets("Rows", notes, out);
  AppendBullets("Assumptions, of all rows", data_set.assumptions, out);
}

void AppendOverview(const PublishedReport& report, std::string& out) {
  TextTable table({{{"data set", ""}, true},
                   {{"rows", ""}, false},
                   {{"calibration", "rows"}, false},
                   {{"predicted", "figures"}, false},
                   {{"mean", "|error| %"}, false},
                   {{"median", "|error| %"}, false},
                   {{"largest", "|error| %"}, false},
                   {{"Kendall's", "tau"}, false},
                   {{"targets", ""}, true}});
  for (const EvaluatedDataSet& one : report.data_sets) {
    const validation::ErrorSummary& errors = one.predictions.errors;
    table.AddRow({one.data_set->name, absl::StrCat(one.rows.size()),
                  absl::StrCat(one.calibration_rows()), absl::StrCat(errors.figures),
                  PercentOr(errors.mean), PercentOr(errors.median), PercentOr(errors.largest),
                  TauText(one.predictions.kendall_tau), one.met() ? "met" : "MISSED"});
  }
  absl::StrAppend(&out, "\n", table.Render());
}

}  // namespace

std::string PercentOr(const std::optional<double>& share) {
  return share ? absl::StrFormat("%.2f", 100 * *share) : "-";
}

PublishedReport MakePublishedReport(std::vector<EvaluatedDataSet> data_sets,
                                    const validation::Simulator& simulator) {
  PublishedReport report;
  report.version = OPTIMUS_VERSION;
  for (const auto& [name, costs] : simulator.profiles()) {
    report.profiles.push_back({name, ProfileHash(costs->profile())});
  }
  report.data_sets = std::move(data_sets);
  report.runs = simulator.runs();
  return report;
}

std::string PublishedText(const PublishedReport& report) {
  std::string out;
  AppendFact("version", report.version, out);
  for (const PublishedProfile& profile : report.profiles) {
    AppendFact("profile", absl::StrCat(profile.name, " (hash ", profile.hash, ")"), out);
  }
  AppendFact("error",
             "simulated / measured - 1; of shares (bubble rates) simulated - measured. A row is a "
             "calibration where a number of a hardware profile was fitted on it, else a prediction",
             out);
  for (const EvaluatedDataSet& one : report.data_sets) AppendDataSet(one, out);
  absl::StrAppend(&out, "\nOver predictions:\n");
  AppendOverview(report, out);
  absl::StrAppend(&out, "\nruns        ", report.runs, "\n");
  return out;
}

std::string MissedText(const PublishedReport& report) {
  std::vector<std::string> missed;
  for (const EvaluatedDataSet& one : report.data_sets) {
    if (!one.met()) missed.push_back(one.data_set->name);
  }
  if (missed.empty()) return "";
  return absl::StrCat("targets are missed by ", absl::StrJoin(missed, ", "));
}

}  // namespace optimus::tools
