#include "tools/sweep/show/answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/show/seeds.h"

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
absl::StatusOr<std::vector<Column>> ShownColumns(const Answer& answer, const Question& question,
                                                 const std::vector<Column>& measures) {
  const About& about = answer.about;
  const SeedMeans& seeds = answer.filter.seeds;
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
  for (const Column& column : measures) {
    AddOnce(column, columns);
    for (const std::string& name : {LeastName(column.name), MostName(column.name)}) {
      const Column* end = seeds.on() ? about.Find(name) : nullptr;
      if (end != nullptr) AddOnce(*end, columns);
    }
  }
  for (const char* name : kMainMetrics) {
    if (const Column* column = about.Find(name); column != nullptr) AddOnce(*column, columns);
  }
  const Column* ran = answer.summary.seeds_missing > 0 ? about.Find(kSeedsColumn) : nullptr;
  if (ran != nullptr) AddOnce(*ran, columns);
  const Column* fits = about.Find("fits");
  if (question.filter.not_fitting && fits != nullptr) AddOnce(*fits, columns);
  return columns;
}

// Only the best of something can be a lucky draw: errors alone are of single points.
absl::Status AverageSeeds(const Database& database, const Question& question, Answer& answer) {
  const bool only_errors = question.errors && !question.plot && !question.top &&
                           question.group_by.empty() && question.pareto.empty() &&
                           !question.sensitivity;
  if (question.per_seed || only_errors) return absl::OkStatus();
  std::vector<std::string> spread = {answer.about.objective};
  const std::string& sort = question.sort;
  const bool sign = !sort.empty() && (sort.front() == '-' || sort.front() == '+');
  spread.push_back(sign ? sort.substr(1) : sort);
  OPTIMUS_ASSIGN_OR_RETURN(answer.filter.seeds, UseSeedMeans(database, spread, answer.about));
  return absl::OkStatus();
}

absl::Status AskBest(const Database& database, const Question& question, Answer& answer) {
  const bool other = !question.group_by.empty() || !question.pareto.empty() ||
                     question.sensitivity || question.errors;
  if (other && !question.top) return absl::OkStatus();
  BestList best;
  OPTIMUS_ASSIGN_OR_RETURN(best.columns, ShownColumns(answer, question, {answer.aim.column}));
  OPTIMUS_ASSIGN_OR_RETURN(best.table, BestRows(database, best.columns, answer.filter, answer.aim,
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
                           ShownColumns(answer, question, {answer.aim.column}));
  OPTIMUS_ASSIGN_OR_RETURN(groups.table,
                           BestOfGroups(database, groups.by, columns, answer.filter, answer.aim));
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
  OPTIMUS_ASSIGN_OR_RETURN(answer.front_columns, ShownColumns(answer, question, measures));
  OPTIMUS_ASSIGN_OR_RETURN(answer.front,
                           FindFront(database, answer.front_columns, answer.filter, aims));
  return absl::OkStatus();
}

absl::Status AskSensitivity(const Database& database, const Question& question, Answer& answer) {
  if (!question.sensitivity) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(FindNumber(answer.about, "--sort", answer.aim.column.name).status());
  OPTIMUS_ASSIGN_OR_RETURN(answer.sensitivity,
                           FindSensitivity(database, answer.about, answer.filter, answer.aim));
  return absl::OkStatus();
}

absl::Status AskErrors(const Database& database, const Question& question, Answer& answer) {
  if (!question.errors) return absl::OkStatus();
  Filter points = answer.filter;
  points.seeds = {};
  OPTIMUS_RETURN_IF_ERROR(CheckWhere(database, answer.points_about, points));
  ErrorList errors;
  errors.axes = ColumnsOfKind(answer.points_about, {ColumnKind::kAxis, ColumnKind::kDerived});
  OPTIMUS_ASSIGN_OR_RETURN(errors.groups, GroupErrors(database, answer.points_about, points));
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
  OPTIMUS_ASSIGN_OR_RETURN(answer.points_about, ReadAbout(database));
  answer.about = answer.points_about;
  answer.filter = question.filter;
  OPTIMUS_RETURN_IF_ERROR(AverageSeeds(database, question, answer));
  OPTIMUS_RETURN_IF_ERROR(CheckWhere(database, answer.about, answer.filter));
  OPTIMUS_ASSIGN_OR_RETURN(
      answer.aim, ParseAim(answer.about, "--sort",
                           question.sort.empty() ? answer.about.objective : question.sort, false));
  OPTIMUS_ASSIGN_OR_RETURN(answer.summary, Summarize(database, answer.about, answer.filter));
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
