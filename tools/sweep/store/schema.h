#pragma once
// The tables of a sweep's database, for readers and writers alike (docs/sweeps.md):
//
//   about(name, value)       schema_version, version, sweep_name, description, sweep (its text),
//                            sweep_hash, points, total_points, excluded, objective
//   columns(position, name, kind, type, unit, title, better, field)
//                            every column of `points` and `results` that has a meaning; kind: axis,
//                            derived, metric or condition; better: low, high or empty
//   results(hash, status, error, METRICS..., version, profile_hash, wall_s, peak_memory_mib)
//                            one row for each different simulation, made as it ends
//   points(point, hash, AXES...)
//                            the points of the sweep, from 0, in its order
//   sweep                    a view: every point beside its result
//
// wall_s and peak_memory_mib are the only columns that differ from run to run.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/sweep/store/sqlite.h"

namespace optimus::sweep {

inline constexpr int kSchemaVersion = 1;

// Values of results.status.
inline constexpr char kStatusOk[] = "ok";
inline constexpr char kStatusImpossible[] = "impossible";  // the input is refused
inline constexpr char kStatusFailed[] = "failed";          // our own bug, or an engine that stopped
inline constexpr char kStatusOutOfMemory[] = "out_of_memory";  // of this machine, not of the GPUs
inline constexpr char kStatusTimeout[] = "timeout";

enum class ColumnKind { kAxis, kDerived, kMetric, kCondition };

struct Column {
  std::string name;  // "tp", "iteration_time_s"
  ColumnKind kind = ColumnKind::kMetric;
  std::string type;    // INTEGER, REAL or TEXT
  std::string unit;    // "s", "GiB", "%"; empty: a count or a name
  std::string title;   // "iteration time": of axes of plots
  std::string better;  // "low", "high"; empty: neither
  std::string field;   // of axes: "plan.tensor_parallel"
};

std::string KindName(ColumnKind kind);  // "axis"

// The metrics of every sweep, and the conditions of every result, in their order.
const std::vector<Column>& MetricColumns();
const std::vector<Column>& ConditionColumns();

// What the view has besides: point, status, error, hash.
const std::vector<Column>& PlainColumns();

// Of a database of a sweep. INVALID_ARGUMENT "PATH: ..." where it is none, or of another
// schema_version.
struct About {
  std::string path;
  std::string version, sweep_name, description, sweep, sweep_hash;
  std::string objective;          // the metric that best lists go by unless told otherwise
  std::int64_t points = 0;        // of this database: of a shard its own only
  std::int64_t total_points = 0;  // of the whole sweep, all shards
  std::int64_t excluded = 0;      // combinations that the sweep's conditions leave out
  std::vector<Column> columns;
  const Column* Find(const std::string& name) const;
};
absl::StatusOr<About> ReadAbout(const Database& database);

// False: a file that a sweep has begun and not yet filled, or an empty one.
absl::StatusOr<bool> HasTables(const Database& database);

// By results.status.
struct PointCounts {
  std::int64_t ok = 0, impossible = 0, failed = 0, out_of_memory = 0, timeout = 0;
  std::int64_t missing = 0;       // without a result so far
  std::int64_t does_not_fit = 0;  // of `ok`: need more memory than a GPU has
  // A bug of ours or a lack of this machine's: --resume tries these again.
  std::int64_t by_chance() const { return failed + out_of_memory + timeout; }
  std::int64_t done() const { return ok + impossible + by_chance(); }
  std::int64_t all() const { return done() + missing; }
};
absl::StatusOr<PointCounts> CountPoints(const Database& database);

// "tp 16 of 12 heads" -> "tp # of # heads": what makes errors of one kind alike.
std::string WithoutNumbers(const std::string& error);

// Makes the tables of a new sweep, empty but for `about` and `columns`. The caller may have begun a
// transaction.
absl::Status CreateTables(const Database& database, const About& about);
// Writes `about` anew, but for its columns.
absl::Status UpdateAbout(const Database& database, const About& about);

// Axes and derived values first, by name, as `points` has them.
std::vector<Column> ColumnsOfKind(const About& about, std::initializer_list<ColumnKind> kinds);

struct ResultRow {
  std::string hash, status, error;
  std::vector<SqlValue> metrics;     // as MetricColumns; empty: none
  std::vector<SqlValue> conditions;  // as ConditionColumns
};

// Statements that are used many times.
class Writer {
 public:
  static absl::StatusOr<Writer> Make(const Database& database, const About& about);
  absl::Status AddPoint(std::int64_t point, const std::string& hash,
                        absl::Span<const SqlValue> axes);
  absl::Status AddResult(const ResultRow& row);  // replaces one of the same hash

 private:
  Writer(Statement point, Statement result)
      : point_(std::move(point)), result_(std::move(result)) {}
  Statement point_, result_;
};

}  // namespace optimus::sweep
