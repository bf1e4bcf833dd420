#include "tools/sweep/show/answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

// Metrics that every list has, unless other columns are asked for.
constexpr const char* kMainMetrics[] = {"iteration_time_s", "mfu_percent", "memory_gib"};

void AddOnce(const Column& column, std::vector<Column>& columns) {
  const bool there = std::any_of(columns.begin(), columns.end(),
                                 [&](const Column& known) { return known.name == column.name; });
  if (!there) columns.push_back(column);
}

// The point's number is always first.
absl::StatusOr<std::vector<Column>> ShownColumns(const About& about, const Question& question,
                                                 const std::vector<Column>& measures) {
  std::vector<Column> columns;
  OPTIMUS_ASSIGN_OR_RETURN(const Column point, FindColumn(about, "--columns", "point"));
  columns.push_back(point);
  if (!question.columns.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Column> asked,
                             FindColumns(about, "--columns", question.columns));
    for (const Column& column : asked) AddOnce(column, columns);
    return columns;
  }
  for (const Column& column : ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived})) {
    AddOnce(column, columns);
  }
  for (const Column& column : measures) AddOnce(column, columns);
  for (const char* name : kMainMetrics) {
    if (const Column* column = about.Find(name); column != nullptr) AddOnce(*column, columns);
  }
  const Column* fits = about.Find("fits");
  if (question.filter.not_fitting && fits != nullptr) AddOnce(*fits, columns);
  return columns;
}

absl::Status AskBest(const Database& database, const Question& question, Answer& answer) {
  const bool other = !question.group_by.empty() || !question.pareto.empty() ||
                     question.sensitivity || question.errors;
  if (other && !question.top) return absl::OkStatus();
  BestList best;
  OPTIMUS_ASSIGN_OR_RETURN(best.columns, ShownColumns(answer.about, question, {answer.aim.column}));
  OPTIMUS_ASSIGN_OR_RETURN(best.table, BestRows(database, best.columns, question.filter, answer.aim,
                                                question.top.value_or(kTop)));
  best.of = answer.summary.selected - answer.summary.left_out;
  answer.best = std::move(best);
  return absl::OkStatus();
}

absl::Status AskGroups(const Database& database, const Question& question, Answer& answer) {
  if (question.group_by.empty()) return absl::OkStatus();
  GroupList groups;
  OPTIMUS_ASSIGN_OR_RETURN(groups.by, FindColumns(answer.about, "--group-by", question.group_by));
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Column> columns,
                           ShownColumns(answer.about, question, {answer.aim.column}));
  OPTIMUS_ASSIGN_OR_RETURN(groups.table,
                           BestOfGroups(database, groups.by, columns, question.filter, answer.aim));
  groups.columns = groups.by;
  groups.columns.push_back(
      {"points", ColumnKind::kDerived, "INTEGER", "", "points of the group", "", ""});
  for (const Column& column : columns) AddOnce(column, groups.columns);
  answer.groups = std::move(groups);
  return absl::OkStatus();
}

absl::Status AskFront(const Database& database, const Question& question, Answer& answer) {
  if (question.pareto.empty()) return absl::OkStatus();
  if (question.pareto.size() < 2) {
    return absl::InvalidArgumentError(
        "--pareto: takes two columns or more, as in --pareto=iteration_time_s,memory_gib");
  }
  std::vector<Aim> aims;
  std::vector<Column> measures;
  aims.reserve(question.pareto.size());
  measures.reserve(question.pareto.size());
  for (const std::string& text : question.pareto) {
    OPTIMUS_ASSIGN_OR_RETURN(Aim aim, ParseAim(answer.about, "--pareto", text, true));
    measures.push_back(aim.column);
    aims.push_back(std::move(aim));
  }
  OPTIMUS_ASSIGN_OR_RETURN(answer.front_columns, ShownColumns(answer.about, question, measures));
  OPTIMUS_ASSIGN_OR_RETURN(answer.front,
                           FindFront(database, answer.front_columns, question.filter, aims));
  return absl::OkStatus();
}

absl::Status AskSensitivity(const Database& database, const Question& question, Answer& answer) {
  if (!question.sensitivity) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(FindNumber(answer.about, "--sort", answer.aim.column.name).status());
  OPTIMUS_ASSIGN_OR_RETURN(answer.sensitivity,
                           FindSensitivity(database, answer.about, question.filter, answer.aim));
  return absl::OkStatus();
}

absl::Status AskErrors(const Database& database, const Question& question, Answer& answer) {
  if (!question.errors) return absl::OkStatus();
  ErrorList errors;
  errors.axes = ColumnsOfKind(answer.about, {ColumnKind::kAxis, ColumnKind::kDerived});
  OPTIMUS_ASSIGN_OR_RETURN(errors.groups, GroupErrors(database, answer.about, question.filter));
  answer.errors = std::move(errors);
  return absl::OkStatus();
}

SqlTable FrontTable(const Front& front) {
  SqlTable table{front.table.columns, {}};
  table.rows.reserve(front.members.size());
  for (const std::size_t member : front.members) table.rows.push_back(front.table.rows[member]);
  return table;
}

SqlValue OrNull(const std::optional<double>& value) {
  return value ? SqlValue(*value) : SqlValue(std::monostate{});
}

SqlTable SensitivityTable(const Sensitivity& sensitivity) {
  SqlTable table{
      {"axis", "value", "points", "best", "geometric_mean", "reference", "pairs", "ratio"}, {}};
  for (const AxisEffect& effect : sensitivity.axes) {
    for (const AxisValue& value : effect.values) {
      table.rows.push_back({effect.axis.name, value.value, value.points, value.best,
                            value.geometric_mean, effect.reference.value_or(std::monostate{}),
                            value.pairs, OrNull(value.ratio)});
    }
  }
  return table;
}

SqlTable ErrorTable(const ErrorList& errors) {
  SqlTable table{{"status", "points", "point"}, {}};
  for (const Column& axis : errors.axes) table.columns.push_back(axis.name);
  table.columns.emplace_back("error");
  table.rows.reserve(errors.groups.size());
  for (const ErrorGroup& group : errors.groups) {
    std::vector<SqlValue> row = {group.status, group.points, group.example};
    row.insert(row.end(), group.axes.begin(), group.axes.end());
    row.emplace_back(group.error);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

absl::StatusOr<Answer> Ask(const Database& database, const Question& question) {
  Answer answer;
  OPTIMUS_ASSIGN_OR_RETURN(answer.about, ReadAbout(database));
  OPTIMUS_RETURN_IF_ERROR(CheckWhere(database, answer.about, question.filter));
  answer.filter = question.filter;
  OPTIMUS_ASSIGN_OR_RETURN(
      answer.aim, ParseAim(answer.about, "--sort",
                           question.sort.empty() ? answer.about.objective : question.sort, false));
  OPTIMUS_ASSIGN_OR_RETURN(answer.summary, Summarize(database, answer.about, question.filter));
  OPTIMUS_RETURN_IF_ERROR(AskBest(database, question, answer));
  OPTIMUS_RETURN_IF_ERROR(AskGroups(database, question, answer));
  OPTIMUS_RETURN_IF_ERROR(AskFront(database, question, answer));
  OPTIMUS_RETURN_IF_ERROR(AskSensitivity(database, question, answer));
  OPTIMUS_RETURN_IF_ERROR(AskErrors(database, question, answer));
  return answer;
}

absl::StatusOr<SqlTable> TableOf(const Answer& answer) {
  std::vector<SqlTable> tables;
  if (answer.best) tables.push_back(answer.best->table);
  if (answer.groups) tables.push_back(answer.groups->table);
  if (answer.front) tables.push_back(FrontTable(*answer.front));
  if (answer.sensitivity) tables.push_back(SensitivityTable(*answer.sensitivity));
  if (answer.errors) tables.push_back(ErrorTable(*answer.errors));
  if (tables.size() == 1) return tables.front();
  return absl::InvalidArgumentError(
      "--csv: takes one table: one of --top, --group-by, --pareto, --sensitivity and --errors");
}

}  // namespace optimus::sweep
