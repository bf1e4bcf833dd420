#include "tools/sweep/store/sqlite.h"

#include <array>
#include <charconv>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

constexpr int kBusyTimeoutMs = 5000;

std::string DoubleText(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

absl::StatusCode CodeOf(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT:  // tables that contradict themselves
    case SQLITE_MISMATCH:
      return absl::StatusCode::kDataLoss;
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Beyond a quota or a limit of file sizes SQLite sees an input/output error, and forgets its errno.
bool IsFailedWrite(int code) {
  return code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_TRUNCATE ||
         code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_FSYNC;
}

constexpr int kStepsOfACall = 1000;
constexpr std::int64_t kMostSteps = 10'000'000;

// What an expression may do: compute from its arguments.
int AllowComputing(void* /*data*/, int action, const char* /*first*/, const char* function,
                   const char* /*database*/, const char* /*trigger*/) {
  static constexpr const char* kRefused[] = {"random",
                                             "randomblob",
                                             "date",
                                             "time",
                                             "datetime",
                                             "julianday",
                                             "unixepoch",
                                             "strftime",
                                             "current_date",
                                             "current_time",
                                             "current_timestamp",
                                             "load_extension",
                                             "changes",
                                             "total_changes",
                                             "last_insert_rowid",
                                             "sqlite_version",
                                             "sqlite_source_id",
                                             "sqlite_compileoption_get",
                                             "sqlite_compileoption_used",
                                             "timediff"};
  if (action == SQLITE_SELECT || action == SQLITE_READ) return SQLITE_OK;
  if (action != SQLITE_FUNCTION) return SQLITE_DENY;
  for (const char* refused : kRefused) {
    if (sqlite3_stricmp(function, refused) == 0) return SQLITE_DENY;
  }
  return SQLITE_OK;
}

struct BindValue {
  sqlite3_stmt* statement;
  int index;
  int operator()(std::monostate /*null*/) const { return sqlite3_bind_null(statement, index); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(statement, index, value); }
  int operator()(double value) const { return sqlite3_bind_double(statement, index, value); }
  int operator()(const std::string& value) const {
    return sqlite3_bind_text64(statement, index, value.data(), value.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
};

}  // namespace

std::string QuoteIdentifier(const std::string& name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

std::string ToText(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&value)) return DoubleText(*real);
  return "";
}

absl::Status ToStatus(sqlite3* database, int code) {
  std::string message = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  absl::StatusCode status = CodeOf(code);
  if ((code & 0xff) == SQLITE_INTERRUPT) message = "takes too long";
  if ((code & 0xff) == SQLITE_AUTH) {
    absl::StrAppend(&message, "; an expression has to give the same every time, and at once");
  }
  if (IsFailedWrite(code)) {
    status = absl::StatusCode::kResourceExhausted;
    absl::StrAppend(&message, " while writing; the disk or a limit of file sizes may be full");
  }
  return absl::Status(status, message);
}

absl::Status Statement::Bind(absl::Span<const SqlValue> values) {
  sqlite3_reset(statement_.get());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int code = std::visit(BindValue{statement_.get(), static_cast<int>(i) + 1}, values[i]);
    if (code != SQLITE_OK) return ToStatus(database_, code);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  absl::Status status = ToStatus(database_, code);
  sqlite3_reset(statement_.get());
  return status;
}

absl::Status Statement::Run(absl::Span<const SqlValue> values) {
  OPTIMUS_RETURN_IF_ERROR(Bind(values));
  for (;;) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) break;
  }
  sqlite3_reset(statement_.get());
  return absl::OkStatus();
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

std::string Statement::ColumnName(int column) const {
  return sqlite3_column_name(statement_.get(), column);
}

SqlValue Statement::Value(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_NULL:
      return std::monostate{};
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement_.get(), column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement_.get(), column);
    default: {
      const auto* text = sqlite3_column_blob(statement_.get(), column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
      return size == 0 ? std::string() : std::string(static_cast<const char*>(text), size);
    }
  }
}

bool Statement::IsBlob(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_BLOB;
}

absl::StatusOr<Database> Database::OpenNamed(const std::string& path, const std::string& name,
                                             int flags) {
  Database database(path);
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  database.database_.reset(handle);
  if (code == SQLITE_OK) code = sqlite3_extended_result_codes(handle, 1);
  if (code == SQLITE_OK) code = sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  if (code == SQLITE_OK) {
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
    // Whether it is a database is only found out when it is read.
    code = sqlite3_exec(handle, "PRAGMA schema_version", nullptr, nullptr, nullptr);
  }
  if (code == SQLITE_OK) return database;
  const absl::Status status = ToStatus(handle, code);
  return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
}

absl::StatusOr<Database> Database::Open(const std::string& path, Mode mode) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (kind == std::filesystem::file_type::not_found && mode != Mode::kCreate) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::regular) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, kind == std::filesystem::file_type::directory ? ": is a folder, not a database"
                                                            : ": is no regular file"));
  }
  int flags = SQLITE_OPEN_READWRITE;
  if (mode == Mode::kReadOnly) flags = SQLITE_OPEN_READONLY;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  // SQLite has names of its own, ":memory:" and "file:...": here all are names of files.
  const bool special = path[0] == ':' || path.rfind("file:", 0) == 0;
  return OpenNamed(path, special ? absl::StrCat("./", path) : path, flags);
}

absl::StatusOr<Database> Database::InMemory() {
  return OpenNamed("(in memory)", ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

void Database::OnlyCompute() {
  constexpr int kMostCharacters = 1'000'000;
  sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, kMostCharacters);
  sqlite3_set_authorizer(database_.get(), AllowComputing, nullptr);
  budget_ = std::make_unique<Budget>();
  ForgetSteps();
  sqlite3_progress_handler(
      database_.get(), kStepsOfACall,
      [](void* budget) { return --static_cast<Budget*>(budget)->calls_left < 0 ? 1 : 0; },
      budget_.get());
}

void Database::ForgetSteps() const { budget_->calls_left = kMostSteps / kStepsOfACall; }

void Database::LimitTime(double seconds) {
  budget_ = std::make_unique<Budget>();
  budget_->deadline = std::chrono::steady_clock::now() +
                      std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
  sqlite3_progress_handler(
      database_.get(), kStepsOfACall,
      [](void* budget) {
        const auto now = std::chrono::steady_clock::now();
        return now > static_cast<Budget*>(budget)->deadline ? 1 : 0;
      },
      budget_.get());
}

absl::StatusOr<Statement> Database::Prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, &tail);
  Statement result(database_.get(), statement);
  if (code != SQLITE_OK) return ToStatus(database_.get(), code);
  if (statement == nullptr) return absl::InvalidArgumentError("no SQL statement");
  const std::string rest(tail, sql.data() + sql.size());
  if (rest.find_first_not_of(" \t\n;") != std::string::npos) {
    return absl::InvalidArgumentError("more than one SQL statement");
  }
  return result;
}

absl::Status Database::Execute(const std::string& sql) const {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ToStatus(database_.get(), code);
}

absl::StatusOr<SqlTable> Database::Query(const std::string& sql,
                                         absl::Span<const SqlValue> values) const {
  OPTIMUS_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  OPTIMUS_RETURN_IF_ERROR(statement.Bind(values));
  SqlTable table;
  table.columns.reserve(static_cast<std::size_t>(statement.columns()));
  for (int i = 0; i < statement.columns(); ++i) table.columns.push_back(statement.ColumnName(i));
  for (;;) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return table;
    std::vector<SqlValue>& values_of_row = table.rows.emplace_back();
    values_of_row.reserve(table.columns.size());
    for (int i = 0; i < statement.columns(); ++i) values_of_row.push_back(statement.Value(i));
  }
}

}  // namespace optimus::sweep
