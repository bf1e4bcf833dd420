#include "tools/sweep/store/schema.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

constexpr const char* kKindNames[] = {"axis", "derived", "metric", "condition"};

Column Metric(const char* name, const char* unit, const char* title, const char* better = "",
              const char* type = "REAL") {
  return {name, ColumnKind::kMetric, type, unit, title, better, ""};
}

Column Condition(const char* name, const char* type, const char* unit, const char* title) {
  return {name, ColumnKind::kCondition, type, unit, title, "", ""};
}

std::string Declaration(const Column& column) {
  return absl::StrCat(QuoteIdentifier(column.name), " ", column.type);
}

std::string Declarations(const std::vector<Column>& columns) {
  std::string text;
  for (const Column& column : columns) absl::StrAppend(&text, ", ", Declaration(column));
  return text;
}

std::string Names(const std::vector<Column>& columns, const std::string& table) {
  std::string text;
  for (const Column& column : columns) {
    absl::StrAppend(&text, ", ", table, QuoteIdentifier(column.name));
  }
  return text;
}

// "?1, ?2, ..., ?n"
std::string Parameters(std::size_t n) {
  std::string text;
  for (std::size_t i = 1; i <= n; ++i) absl::StrAppend(&text, i == 1 ? "" : ", ", "?", i);
  return text;
}

absl::Status WriteAbout(const Database& database, const About& about) {
  OPTIMUS_ASSIGN_OR_RETURN(Statement add,
                           database.Prepare("INSERT OR REPLACE INTO about VALUES(?1, ?2)"));
  const std::vector<std::pair<std::string, std::string>> values = {
      {"schema_version", absl::StrCat(kSchemaVersion)},
      {"version", about.version},
      {"sweep_name", about.sweep_name},
      {"description", about.description},
      {"sweep", about.sweep},
      {"sweep_hash", about.sweep_hash},
      {"objective", about.objective},
      {"points", absl::StrCat(about.points)},
      {"total_points", absl::StrCat(about.total_points)},
      {"excluded", absl::StrCat(about.excluded)}};
  for (const auto& [name, value] : values) OPTIMUS_RETURN_IF_ERROR(add.Run({name, value}));
  return absl::OkStatus();
}

absl::Status WriteColumns(const Database& database, const About& about) {
  OPTIMUS_ASSIGN_OR_RETURN(
      Statement column,
      database.Prepare(absl::StrCat("INSERT INTO columns VALUES(", Parameters(8), ")")));
  std::int64_t position = 0;
  for (const Column& c : about.columns) {
    OPTIMUS_RETURN_IF_ERROR(column.Run(
        {position++, c.name, KindName(c.kind), c.type, c.unit, c.title, c.better, c.field}));
  }
  return absl::OkStatus();
}

absl::Status MakeTables(const Database& database, const About& about) {
  const auto axes = ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived});
  const auto results = ColumnsOfKind(about, {ColumnKind::kMetric, ColumnKind::kCondition});
  OPTIMUS_RETURN_IF_ERROR(database.Execute(absl::StrCat(
      "CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;"
      "CREATE TABLE columns(position INTEGER PRIMARY KEY, name TEXT, kind TEXT, type TEXT, "
      "unit TEXT, title TEXT, better TEXT, field TEXT) STRICT;"
      "CREATE TABLE results(hash TEXT PRIMARY KEY, status TEXT NOT NULL, error TEXT",
      Declarations(results), ") STRICT, WITHOUT ROWID;",
      "CREATE TABLE points(point INTEGER PRIMARY KEY, hash TEXT NOT NULL", Declarations(axes),
      ") STRICT;", "CREATE VIEW sweep AS SELECT points.point", Names(axes, "points."),
      ", results.status, results.error", Names(results, "results."),
      ", points.hash FROM points LEFT JOIN results USING(hash);")));
  OPTIMUS_RETURN_IF_ERROR(WriteAbout(database, about));
  return WriteColumns(database, about);
}

absl::Status WrongFile(const Database& database, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(database.path(), ": ", what));
}

absl::StatusOr<std::map<std::string, std::string>> AboutValues(const Database& database) {
  absl::StatusOr<SqlTable> table = database.Query("SELECT name, value FROM about");
  if (absl::IsInvalidArgument(table.status())) {
    return WrongFile(database, "is not a database of optimus sweep");
  }
  if (!table.ok()) return table.status();
  std::map<std::string, std::string> values;
  for (const auto& row : table->rows) values[ToText(row[0])] = ToText(row[1]);
  return values;
}

absl::StatusOr<ColumnKind> ParseKind(const Database& database, const std::string& name) {
  for (std::size_t i = 0; i < std::size(kKindNames); ++i) {
    if (name == kKindNames[i]) return static_cast<ColumnKind>(i);
  }
  return WrongFile(database, absl::StrCat("a column is of unknown kind ", name));
}

absl::Status ReadColumns(const Database& database, std::vector<Column>& columns) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      database.Query("SELECT name, kind, type, unit, title, better, field FROM columns "
                     "ORDER BY position"));
  columns.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    OPTIMUS_ASSIGN_OR_RETURN(const ColumnKind kind, ParseKind(database, ToText(row[1])));
    columns.push_back({ToText(row[0]), kind, ToText(row[2]), ToText(row[3]), ToText(row[4]),
                       ToText(row[5]), ToText(row[6])});
  }
  return absl::OkStatus();
}

// SQLite finds damage only where it happens to look: this looks at every page.
absl::Status CheckUndamaged(const Database& database) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;  // larger ones take seconds
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(database.path(), ignored);
  if (!ignored && size > kMostBytes) return absl::OkStatus();
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable table, database.Query("PRAGMA quick_check(1)"));
  if (table.rows.size() == 1 && ToText(table.rows[0][0]) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      database.path(), ": the file is damaged: ",
      table.rows.empty() ? "" : absl::StrReplaceAll(ToText(table.rows[0][0]), {{"\n", " "}})));
}

}  // namespace

std::string KindName(ColumnKind kind) { return kKindNames[static_cast<int>(kind)]; }

const std::vector<Column>& MetricColumns() {
  static const auto* const columns = new std::vector<Column>{
      Metric("iteration_time_s", "s", "iteration time", "low"),
      Metric("mfu_percent", "%", "MFU", "high"),
      Metric("hfu_percent", "%", "HFU", "high"),
      Metric("aggregate_pflop_per_s", "PFLOP/s", "model FLOP/s of all GPUs", "high"),
      Metric("samples_per_s", "1/s", "samples a second", "high"),
      Metric("gpu_hours_per_1000_samples", "GPU h", "GPU hours for 1000 samples", "low"),
      Metric("compute_s", "s", "compute of a GPU"),
      Metric("optimizer_s", "s", "optimizer step"),
      Metric("bubble_s", "s", "bubbles of a GPU", "low"),
      Metric("bubble_percent", "%", "bubbles, of the iteration", "low"),
      Metric("dp_all_gather_s", "s", "bubble: data-parallel all-gather", "low"),
      Metric("dp_reduce_scatter_s", "s", "bubble: data-parallel reduce-scatter", "low"),
      Metric("pp_warmup_s", "s", "bubble: pipeline warm-up", "low"),
      Metric("pp_cooldown_s", "s", "bubble: pipeline cool-down", "low"),
      Metric("pp_other_s", "s", "bubble: other dependencies", "low"),
      Metric("tp_s", "s", "bubble: tensor parallelism", "low"),
      Metric("memory_gib", "GiB", "memory of the fullest GPU", "low"),
      Metric("fits", "", "1: the plan fits into a GPU's memory", "high", "INTEGER"),
      Metric("world_gpus", "GPUs", "GPUs", "", "INTEGER"),
      Metric("encoder_plans", "", "encoder plans (strategy OPTIMUS)", "", "TEXT"),
      Metric("llm_step_s", "s", "the LLM alone (strategy OPTIMUS)", "low"),
      Metric("fine_efficiency_percent", "%", "encoder work inside bubbles (strategy OPTIMUS)",
             "high"),
      Metric("fidelity", "", "fidelity of the simulation", "", "TEXT"),
      Metric("operations", "", "simulated operations", "", "INTEGER")};
  return *columns;
}

const std::vector<Column>& ConditionColumns() {
  static const auto* const columns = new std::vector<Column>{
      Condition("version", "TEXT", "", "version of optimus"),
      Condition("profile_hash", "TEXT", "", "hash of the hardware profile"),
      Condition("wall_s", "REAL", "s", "wall time of the simulation"),
      Condition("peak_memory_mib", "REAL", "MiB", "peak memory of the simulation")};
  return *columns;
}

const std::vector<Column>& PlainColumns() {
  static const auto* const columns = new std::vector<Column>{
      Condition("point", "INTEGER", "", "point"), Condition("status", "TEXT", "", "status"),
      Condition("error", "TEXT", "", "error"),
      Condition("hash", "TEXT", "", "hash of the simulation")};
  return *columns;
}

const Column* About::Find(const std::string& name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

std::vector<Column> ColumnsOfKind(const About& about, std::initializer_list<ColumnKind> kinds) {
  std::vector<Column> columns;
  for (const ColumnKind kind : kinds) {
    std::copy_if(about.columns.begin(), about.columns.end(), std::back_inserter(columns),
                 [&](const Column& column) { return column.kind == kind; });
  }
  return columns;
}

absl::StatusOr<bool> HasTables(const Database& database) {
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable tables,
                           database.Query("SELECT COUNT(*) FROM sqlite_schema"));
  return std::get<std::int64_t>(tables.rows[0][0]) > 0;
}

absl::StatusOr<PointCounts> CountPoints(const Database& database) {
  PointCounts counts;
  const std::map<std::string, std::int64_t*> by_status = {
      {kStatusOk, &counts.ok},           {kStatusImpossible, &counts.impossible},
      {kStatusFailed, &counts.failed},   {kStatusOutOfMemory, &counts.out_of_memory},
      {kStatusTimeout, &counts.timeout}, {"", &counts.missing}};
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      // main: readers may have a view of that name before it.
      database.Query("SELECT status, COUNT(*), SUM(fits = 0) FROM main.sweep GROUP BY status"));
  for (const auto& row : table.rows) {
    const std::string status = ToText(row[0]);
    const auto found = by_status.find(status);
    if (found == by_status.end()) return WrongFile(database, "unknown status " + status);
    *found->second = std::get<std::int64_t>(row[1]);
    const auto* does_not_fit = std::get_if<std::int64_t>(&row[2]);
    if (status == kStatusOk && does_not_fit != nullptr) counts.does_not_fit = *does_not_fit;
  }
  return counts;
}

std::string WithoutNumbers(const std::string& error) {
  std::string out;
  for (const char c : error) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      out.push_back(c);
    } else if (out.empty() || out.back() != '#') {
      out.push_back('#');
    }
  }
  return out;
}

absl::Status CreateTables(const Database& database, const About& about) {
  // Inside a transaction of the caller's as well: a savepoint is one where there is none.
  OPTIMUS_RETURN_IF_ERROR(database.Execute("SAVEPOINT create_tables"));
  absl::Status status = MakeTables(database, about);
  if (!status.ok()) {
    database.Execute("ROLLBACK TO create_tables").IgnoreError();  // what happened first is said
  }
  const absl::Status released = database.Execute("RELEASE create_tables");
  return status.ok() ? released : status;
}

absl::Status UpdateAbout(const Database& database, const About& about) {
  return WriteAbout(database, about);
}

absl::StatusOr<About> ReadAbout(const Database& database) {
  OPTIMUS_ASSIGN_OR_RETURN(auto values, AboutValues(database));
  OPTIMUS_RETURN_IF_ERROR(CheckUndamaged(database));
  int schema_version = 0;
  if (!absl::SimpleAtoi(values["schema_version"], &schema_version) ||
      schema_version != kSchemaVersion) {
    return WrongFile(database, absl::StrCat("has schema_version ", values["schema_version"],
                                            ", this optimus reads ", kSchemaVersion));
  }
  About about;
  about.path = database.path();
  about.version = values["version"];
  about.sweep_name = values["sweep_name"];
  about.description = values["description"];
  about.sweep = values["sweep"];
  about.sweep_hash = values["sweep_hash"];
  about.objective = values["objective"];
  if (!absl::SimpleAtoi(values["points"], &about.points) ||
      !absl::SimpleAtoi(values["total_points"], &about.total_points) ||
      !absl::SimpleAtoi(values["excluded"], &about.excluded)) {
    return WrongFile(database, "does not say how many points it has");
  }
  OPTIMUS_RETURN_IF_ERROR(ReadColumns(database, about.columns));
  return about;
}

absl::StatusOr<Writer> Writer::Make(const Database& database, const About& about) {
  const auto axes = ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived});
  const auto results = ColumnsOfKind(about, {ColumnKind::kMetric, ColumnKind::kCondition});
  OPTIMUS_ASSIGN_OR_RETURN(Statement point,
                           database.Prepare(absl::StrCat("INSERT INTO points VALUES(",
                                                         Parameters(2 + axes.size()), ")")));
  OPTIMUS_ASSIGN_OR_RETURN(Statement result,
                           database.Prepare(absl::StrCat("INSERT OR REPLACE INTO results VALUES(",
                                                         Parameters(3 + results.size()), ")")));
  return Writer(std::move(point), std::move(result));
}

absl::Status Writer::AddPoint(std::int64_t point, const std::string& hash,
                              absl::Span<const SqlValue> axes) {
  std::vector<SqlValue> values = {point, hash};
  values.insert(values.end(), axes.begin(), axes.end());
  return point_.Run(values);
}

absl::Status Writer::AddResult(const ResultRow& row) {
  std::vector<SqlValue> values = {row.hash, row.status, row.error};
  values.insert(values.end(), row.metrics.begin(), row.metrics.end());
  if (row.metrics.empty()) values.resize(3 + MetricColumns().size());
  values.insert(values.end(), row.conditions.begin(), row.conditions.end());
  return result_.Run(values);
}

}  // namespace optimus::sweep
