#include "tools/sweep/run/engine.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/run/file_lock.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kApplicationId = 0x4f707377;  // "Opsw", in the header of the file

SqlValue ToSql(const PointOutcome::Metric& metric) {
  switch (metric.value_case()) {
    case PointOutcome::Metric::kInteger:
      return std::int64_t{metric.integer()};
    case PointOutcome::Metric::kReal:
      return metric.real();
    case PointOutcome::Metric::kText:
      return metric.text();
    default:
      return std::monostate{};
  }
}

// Every result is kept as soon as it is written, whatever becomes of this process; after a crash of
// the machine the last ones may be missing, and are simulated again.
absl::Status UseWriteAheadLog(const Database& database) {
  return database.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
}

About MakeAbout(const LoadedSweep& sweep, const Survey& survey) {
  About about;
  about.version = OPTIMUS_VERSION;
  about.sweep_name = sweep.spec().name();
  about.description = sweep.spec().description();
  about.sweep = sweep.spec().DebugString();
  about.sweep_hash = survey.sweep_hash;
  about.objective = sweep.objective();
  about.points = survey.points;
  about.total_points = survey.all_points;
  about.excluded = sweep.excluded_in_all();
  about.columns = sweep.columns();
  about.columns.insert(about.columns.end(), MetricColumns().begin(), MetricColumns().end());
  about.columns.insert(about.columns.end(), ConditionColumns().begin(), ConditionColumns().end());
  if (sweep.keeps_reports()) {
    about.columns.push_back({"report", ColumnKind::kCondition, "TEXT", "",
                             "what optimus simulate --json prints", "", ""});
  }
  return about;
}

class Engine {
 public:
  Engine(LoadedSweep& sweep, const EngineOptions& options) : sweep_(sweep), options_(options) {}
  absl::StatusOr<EngineResult> Run();

 private:
  absl::Status OpenDatabase();
  absl::Status Claim();
  void RemoveNew();
  absl::Status Begin();  // a new database: its points and impossible results
  absl::Status FillTables();
  absl::Status Resume();
  absl::Status CompareWithPoints(const About& about);
  absl::Status CheckSame(const About& about) const;
  absl::Status FindRemaining();
  absl::Status Simulate();
  absl::Status Done(JobOutcome job);
  absl::Status Keep(const UniquePoint& simulation, const PointOutcome& outcome, double wall_s,
                    double peak_memory_mib);
  void ShowProgress() const;
  absl::Status Explained(const absl::Status& status) const;

  LoadedSweep& sweep_;
  const EngineOptions& options_;
  // In this order: the lock is given back last.
  std::optional<FileLock> lock_;
  std::optional<Database> database_;
  std::optional<Writer> writer_;
  bool is_new_ = false;  // there was no file, or an empty one
  EngineResult result_;
  std::vector<std::int64_t> remaining_;  // indices of simulations, the next one last
  std::int64_t to_do_ = 0;
  Clock::time_point begin_;
};

absl::Status Engine::OpenDatabase() {
  const std::string& path = options_.database;
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  const bool missing = kind == std::filesystem::file_type::not_found;
  if (!missing && kind != std::filesystem::file_type::regular) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  const bool is_new = missing || std::filesystem::file_size(path, ignored) == 0;
  if (!is_new && !options_.resume) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": is there already; --resume goes on with it, or give another --db"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(lock_, FileLock::Take(path));
  is_new_ = is_new;
  OPTIMUS_ASSIGN_OR_RETURN(database_, Database::Open(path, Database::Mode::kCreate));
  return absl::OkStatus();
}

// A database without tables is ours where it is new, or was begun by a sweep that was killed before
// it knew its points. Nobody else's is touched.
absl::Status Engine::Claim() {
  if (!is_new_) {
    OPTIMUS_ASSIGN_OR_RETURN(const SqlTable id, database_->Query("PRAGMA application_id"));
    if (id.rows[0][0] != SqlValue(kApplicationId)) {
      return absl::InvalidArgumentError(
          absl::StrCat(options_.database, ": is not a database of optimus sweep"));
    }
  }
  is_new_ = true;
  return database_->Execute(absl::StrCat("PRAGMA application_id = ", kApplicationId));
}

// A file without tables would be in the way of the next try.
void Engine::RemoveNew() {
  if (!is_new_) return;
  writer_.reset();
  database_.reset();
  for (const char* ending : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    std::filesystem::remove(absl::StrCat(options_.database, ending), ignored);
  }
}

absl::Status Engine::FillTables() {
  // What is said about the sweep is known when all points are.
  About about = MakeAbout(sweep_, result_.survey);
  OPTIMUS_RETURN_IF_ERROR(CreateTables(*database_, about));
  OPTIMUS_ASSIGN_OR_RETURN(writer_, Writer::Make(*database_, about));
  OPTIMUS_ASSIGN_OR_RETURN(
      result_.survey,
      SurveyPoints(
          sweep_, options_.shard,
          [&](const Point& point, bool first) -> absl::Status {
            OPTIMUS_RETURN_IF_ERROR(writer_->AddPoint(point.number, point.hash, point.columns));
            if (!first || point.problem.ok()) return absl::OkStatus();
            PointOutcome outcome;
            outcome.set_status(kStatusImpossible);
            outcome.set_error(std::string(point.problem.message()));
            return Keep({point.hash, point.number, true}, outcome, 0, 0);
          },
          options_.stop));
  return UpdateAbout(*database_, MakeAbout(sweep_, result_.survey));
}

// All or nothing: a database that has tables has all its points.
absl::Status Engine::Begin() {
  OPTIMUS_RETURN_IF_ERROR(Claim());
  OPTIMUS_RETURN_IF_ERROR(UseWriteAheadLog(*database_));
  OPTIMUS_RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  OPTIMUS_RETURN_IF_ERROR(FillTables());
  OPTIMUS_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  is_new_ = false;
  return absl::OkStatus();
}

// The survey, beside what the table of points says.
absl::Status Engine::CompareWithPoints(const About& about) {
  std::string columns;
  for (const Column& column : sweep_.columns()) {
    absl::StrAppend(&columns, ", ", QuoteIdentifier(column.name));
  }
  OPTIMUS_ASSIGN_OR_RETURN(
      Statement find,
      database_->Prepare(absl::StrCat("SELECT hash", columns, " FROM points WHERE point = ?1")));
  std::optional<std::int64_t> other;  // a point that is another one
  const auto compare = [&](const Point& point, bool /*first*/) -> absl::Status {
    OPTIMUS_RETURN_IF_ERROR(find.Bind({point.number}));
    OPTIMUS_ASSIGN_OR_RETURN(const bool there, find.Step());
    bool same = there && find.Value(0) == SqlValue(point.hash);
    for (std::size_t i = 0; same && i < point.columns.size(); ++i) {
      same = find.Value(static_cast<int>(i) + 1) == point.columns[i];
    }
    if (!same && !other) other = point.number;
    return absl::OkStatus();
  };
  OPTIMUS_ASSIGN_OR_RETURN(result_.survey,
                           SurveyPoints(sweep_, options_.shard, compare, options_.stop));
  OPTIMUS_RETURN_IF_ERROR(CheckSame(about));
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable count, database_->Query("SELECT count(*) FROM points"));
  if (!other && count.rows[0][0] == SqlValue(result_.survey.points)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(about.path, ": the table of points is damaged (",
                   other ? absl::StrCat("point ", *other) : std::string("there are too many"),
                   "); give another --db"));
}

absl::Status Engine::Resume() {
  OPTIMUS_ASSIGN_OR_RETURN(const About about, ReadAbout(*database_));
  if (about.version != OPTIMUS_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat(about.path, ": was made by optimus ",
                                                      about.version, ", this is ", OPTIMUS_VERSION,
                                                      "; give another --db"));
  }
  OPTIMUS_RETURN_IF_ERROR(CompareWithPoints(about));
  OPTIMUS_RETURN_IF_ERROR(UseWriteAheadLog(*database_));
  OPTIMUS_ASSIGN_OR_RETURN(writer_, Writer::Make(*database_, about));
  return absl::OkStatus();
}

absl::Status Engine::CheckSame(const About& about) const {
  if (about.sweep_hash != result_.survey.sweep_hash) {
    return absl::FailedPreconditionError(absl::StrCat(
        about.path, ": holds the results of another sweep (", about.sweep_name, ", hash ",
        about.sweep_hash, "; now ", sweep_.spec().name(), ", ", result_.survey.sweep_hash,
        "): the sweep, its base or a file that they name has changed; give another --db"));
  }
  if (about.points != result_.survey.points) {
    return absl::FailedPreconditionError(
        absl::StrCat(about.path, ": has ", about.points, " points, but shard ",
                     options_.shard.index, "/", options_.shard.count, " has ",
                     result_.survey.points, "; give the --shard that it was made with"));
  }
  return absl::OkStatus();
}

absl::Status Engine::FindRemaining() {
  OPTIMUS_ASSIGN_OR_RETURN(const SqlTable table,
                           database_->Query("SELECT hash FROM results WHERE status IN (?1, ?2)",
                                            std::vector<SqlValue>{std::string(kStatusOk),
                                                                  std::string(kStatusImpossible)}));
  std::set<std::string> done;
  for (const auto& row : table.rows) done.insert(ToText(row[0]));
  const auto& simulations = result_.survey.simulations;
  for (std::size_t i = simulations.size(); i-- > 0;) {
    if (done.count(simulations[i].hash) == 0) remaining_.push_back(static_cast<std::int64_t>(i));
  }
  to_do_ = static_cast<std::int64_t>(remaining_.size());
  result_.found = static_cast<std::int64_t>(done.size());
  for (const auto& simulation : simulations)
    result_.found -= static_cast<int>(simulation.impossible);
  return absl::OkStatus();
}

absl::Status Engine::Keep(const UniquePoint& simulation, const PointOutcome& outcome, double wall_s,
                          double peak_memory_mib) {
  ResultRow row{simulation.hash, outcome.status(), outcome.error(), {}, {}};
  row.metrics.reserve(static_cast<std::size_t>(outcome.metrics_size()));
  for (const auto& metric : outcome.metrics()) row.metrics.push_back(ToSql(metric));
  row.conditions = {OPTIMUS_VERSION, outcome.profile_hash(), wall_s, peak_memory_mib};
  if (sweep_.keeps_reports()) row.conditions.emplace_back(outcome.report());
  return writer_->AddResult(row);
}

absl::Status Engine::Done(JobOutcome job) {
  const auto index = static_cast<std::size_t>(job.job);
  PointOutcome outcome;
  if (job.result.ok()) {
    if (!outcome.ParseFromString(*job.result)) return absl::InternalError("outcome of a point");
  } else {
    const absl::Status& status = job.result.status();
    outcome.set_status(absl::IsDeadlineExceeded(status)    ? kStatusTimeout
                       : absl::IsResourceExhausted(status) ? kStatusOutOfMemory
                                                           : kStatusFailed);
    outcome.set_error(std::string(status.message()));
  }
  OPTIMUS_RETURN_IF_ERROR(
      Keep(result_.survey.simulations[index], outcome, job.wall_s, job.peak_memory_mib));
  ++result_.simulated;
  ShowProgress();
  return absl::OkStatus();
}

void Engine::ShowProgress() const {
  if (!options_.progress) return;
  options_.progress(
      {result_.simulated, to_do_, std::chrono::duration<double>(Clock::now() - begin_).count()});
}

absl::Status Engine::Simulate() {
  Pool pool;
  pool.workers = options_.workers;
  pool.limits = options_.limits;
  pool.stop = options_.stop;
  pool.independent = true;
  pool.next = [&]() -> std::optional<std::int64_t> {
    if (remaining_.empty()) return std::nullopt;
    const std::int64_t next = remaining_.back();
    remaining_.pop_back();
    return next;
  };
  pool.work = [&](std::int64_t job) -> absl::StatusOr<std::string> {
    const auto& simulation = result_.survey.simulations[static_cast<std::size_t>(job)];
    OPTIMUS_ASSIGN_OR_RETURN(const Point point, sweep_.MakeAgain(simulation.first_point));
    return options_.evaluate(point).SerializeAsString();
  };
  pool.done = [&](JobOutcome job) { return Done(std::move(job)); };
  begin_ = Clock::now();
  ShowProgress();
  return RunPool(pool);
}

// Errors of SQLite do not name the file.
absl::Status Engine::Explained(const absl::Status& status) const {
  const std::string message(status.message());
  if (absl::IsResourceExhausted(status)) {
    return absl::UnavailableError(absl::StrCat(
        options_.database, ": cannot be written: ", message, "; ", result_.simulated,
        " new results are kept; free some space", is_new_ ? "" : " and go on with --resume"));
  }
  if (status.ok() || message.find(options_.database) != std::string::npos ||
      message.find(sweep_.path()) != std::string::npos) {
    return status;
  }
  return {status.code(), absl::StrCat(options_.database, ": ", message)};
}

absl::StatusOr<EngineResult> Engine::Run() {
  const auto begin = Clock::now();
  const auto steps = [&]() -> absl::Status {
    OPTIMUS_RETURN_IF_ERROR(OpenDatabase());
    OPTIMUS_ASSIGN_OR_RETURN(const bool resumed, HasTables(*database_));
    OPTIMUS_RETURN_IF_ERROR(resumed ? Resume() : Begin());
    if (options_.surveyed) options_.surveyed(result_.survey);
    OPTIMUS_RETURN_IF_ERROR(FindRemaining());
    OPTIMUS_RETURN_IF_ERROR(Simulate());
    OPTIMUS_ASSIGN_OR_RETURN(result_.counts, CountPoints(*database_));
    return absl::OkStatus();
  };
  const absl::Status status = steps();
  if (!status.ok()) {
    RemoveNew();
    return Explained(status);
  }
  result_.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<EngineResult> RunSweep(LoadedSweep& sweep, const EngineOptions& options) {
  return Engine(sweep, options).Run();
}

}  // namespace optimus::sweep
