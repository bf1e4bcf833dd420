#include "validation/published/evaluate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

absl::StatusOr<EvaluatedRow> EvaluateRow(const DataSet& data_set, const Row& row,
                                         const EvaluateOptions& options, Simulator& simulator) {
  absl::StatusOr<RowResult> result = data_set.evaluate(row, simulator);
  if (!result.ok()) return row.AtLine(result.status());
  EvaluatedRow evaluated;
  evaluated.line = row.line();
  for (const std::string& column : data_set.conditions) {
    evaluated.conditions.push_back(row.text(column));
  }
  evaluated.figures = std::move(result->figures);
  evaluated.note = std::move(result->note);
  // Not refused: a table may hold what its source did not measure.
  if (evaluated.figures.empty() && evaluated.note.empty()) {
    evaluated.note = "no measured value is given, so nothing is compared";
  }
  evaluated.fitted = FittedProfiles(options.calibrations, data_set.name, row);
  return evaluated;
}

// Every pair of quantity and group that occurs, in order of appearance.
std::vector<std::pair<std::string, std::string>> PartsOf(const std::vector<EvaluatedRow>& rows) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const EvaluatedRow& row : rows) {
    for (const Figure& figure : row.figures) {
      std::pair<std::string, std::string> part(figure.quantity, figure.group);
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) {
        parts.push_back(std::move(part));
      }
    }
  }
  return parts;
}

std::vector<std::string> GroupsOf(const std::vector<EvaluatedRow>& rows,
                                  const std::string& quantity) {
  std::vector<std::string> groups;
  for (const auto& [name, group] : PartsOf(rows)) {
    if (!quantity.empty() && name != quantity) continue;
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::optional<double> ValueOf(const Summary& summary, Statistic statistic) {
  switch (statistic) {
    case Statistic::kMean:
      return summary.errors.mean;
    case Statistic::kLargest:
      return summary.errors.largest;
    case Statistic::kHighest:
      return summary.errors.highest;
    case Statistic::kKendall:
      break;
  }
  return summary.kendall_tau;
}

void Judge(const Target& target, EvaluatedDataSet& evaluated) {
  const std::vector<std::string> groups = target.group == "each"
                                              ? GroupsOf(evaluated.rows, target.quantity)
                                              : std::vector<std::string>{target.group};
  for (const std::string& group : groups) {
    const Summary summary =
        SummarizeRows(evaluated.rows, target.quantity, group, /*predictions_only=*/true);
    evaluated.targets.push_back({target, group, ValueOf(summary, target.statistic)});
  }
}

}  // namespace

bool JudgedTarget::met() const {
  if (!value) return true;
  return target.statistic == Statistic::kKendall ? *value >= target.limit : *value <= target.limit;
}

int EvaluatedDataSet::calibration_rows() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(),
                                        [](const EvaluatedRow& row) { return !row.prediction(); }));
}

bool EvaluatedDataSet::met() const {
  return std::all_of(targets.begin(), targets.end(),
                     [](const JudgedTarget& target) { return target.met(); });
}

Summary SummarizeRows(const std::vector<EvaluatedRow>& rows, const std::string& quantity,
                      const std::string& group, bool predictions_only) {
  std::vector<double> errors;
  std::vector<Ranked> ranked;
  for (const EvaluatedRow& row : rows) {
    if (predictions_only && !row.prediction()) continue;
    for (const Figure& figure : row.figures) {
      if (!quantity.empty() && figure.quantity != quantity) continue;
      if (!group.empty() && figure.group != group) continue;
      errors.push_back(figure.error());
      ranked.push_back({figure.quantity, figure.measured, figure.simulated});
    }
  }
  return {quantity, group, Summarize(std::move(errors)), KendallTauB(ranked)};
}

absl::StatusOr<EvaluatedDataSet> EvaluateDataSet(const DataSet& data_set, CsvTable table,
                                                 const EvaluateOptions& options,
                                                 Simulator& simulator) {
  EvaluatedDataSet evaluated;
  evaluated.data_set = &data_set;
  evaluated.path = table.file.path;
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                           ReadRows(std::move(table), data_set.columns));
  evaluated.rows.reserve(rows.size());
  for (const Row& row : rows) {
    if (options.progress) {
      options.progress(
          absl::StrCat(data_set.name, ": row ", evaluated.rows.size() + 1, " of ", rows.size()));
    }
    OPTIMUS_ASSIGN_OR_RETURN(EvaluatedRow one, EvaluateRow(data_set, row, options, simulator));
    evaluated.rows.push_back(std::move(one));
  }
  evaluated.predictions = SummarizeRows(evaluated.rows, "", "", /*predictions_only=*/true);
  evaluated.all = SummarizeRows(evaluated.rows, "", "", /*predictions_only=*/false);
  for (const auto& [quantity, group] : PartsOf(evaluated.rows)) {
    evaluated.parts.push_back(
        SummarizeRows(evaluated.rows, quantity, group, /*predictions_only=*/true));
  }
  for (const Target& target : options.targets) {
    if (target.dataset == data_set.name) Judge(target, evaluated);
  }
  return evaluated;
}

}  // namespace optimus::validation
