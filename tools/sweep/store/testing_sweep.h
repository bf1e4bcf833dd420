#pragma once
// Small databases of sweeps for tests, written by the functions that write real ones.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

struct TestingPoint {
  std::vector<SqlValue> axes;
  std::map<std::string, SqlValue> metrics;  // the others are NULL
  std::string status = kStatusOk;
  std::string error = {};
};

inline Column TestingAxis(const std::string& name, const std::string& type,
                          const std::string& unit = "") {
  return {name, ColumnKind::kAxis, type, unit, name, "", "plan." + name};
}

// Points 0, 1, ...; each with a result of its own.
inline absl::StatusOr<Database> MakeTestingSweep(const std::string& path,
                                                 const std::vector<Column>& axes,
                                                 const std::vector<TestingPoint>& points) {
  OPTIMUS_ASSIGN_OR_RETURN(Database database, path == ":memory:"
                                                  ? Database::InMemory()
                                                  : Database::Open(path, Database::Mode::kCreate));
  About about;
  about.version = OPTIMUS_VERSION;
  about.sweep_name = "a_test";
  about.sweep_hash = "00000000000000aa";
  about.objective = "iteration_time_s";
  about.points = static_cast<std::int64_t>(points.size());
  about.total_points = about.points;
  about.columns = axes;
  about.columns.insert(about.columns.end(), MetricColumns().begin(), MetricColumns().end());
  about.columns.insert(about.columns.end(), ConditionColumns().begin(), ConditionColumns().end());
  OPTIMUS_RETURN_IF_ERROR(CreateTables(database, about));
  OPTIMUS_ASSIGN_OR_RETURN(Writer writer, Writer::Make(database, about));
  OPTIMUS_RETURN_IF_ERROR(database.Execute("BEGIN"));  // one write to the disk, not one a row
  for (std::size_t i = 0; i < points.size(); ++i) {
    ResultRow row{absl::StrCat("hash", i), points[i].status, points[i].error, {}, {}};
    for (const Column& column : MetricColumns()) {
      const auto found = points[i].metrics.find(column.name);
      row.metrics.push_back(found == points[i].metrics.end() ? SqlValue() : found->second);
    }
    row.conditions = {OPTIMUS_VERSION, std::string("00000000000000bb"), 0.1, 20.0};
    OPTIMUS_RETURN_IF_ERROR(
        writer.AddPoint(static_cast<std::int64_t>(i), row.hash, points[i].axes));
    OPTIMUS_RETURN_IF_ERROR(writer.AddResult(row));
  }
  OPTIMUS_RETURN_IF_ERROR(database.Execute("COMMIT"));
  return database;
}

}  // namespace optimus::sweep
