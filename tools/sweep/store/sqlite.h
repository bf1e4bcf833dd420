#pragma once
// A thin layer over SQLite's C interface: RAII, absl::Status, and nothing of ours about sweeps.

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace optimus::sweep {

// A field of a row: NULL, INTEGER, REAL or TEXT.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

// "dp" -> "\"dp\"": an identifier in SQL, whatever characters it has.
std::string QuoteIdentifier(const std::string& name);

// `value` as SQLite prints it: REAL with the fewest digits that read back as the same number.
// NULL: empty.
std::string ToText(const SqlValue& value);

class Statement {
 public:
  Statement(Statement&& other) noexcept = default;
  Statement& operator=(Statement&& other) noexcept = default;

  // Parameters ?1, ?2, ... from the first one. Forgets the row that was read before.
  absl::Status Bind(absl::Span<const SqlValue> values);
  // True: there is a row. False: there is none left.
  absl::StatusOr<bool> Step();
  // Binds and steps to the end: INSERT, UPDATE, ....
  absl::Status Run(absl::Span<const SqlValue> values);

  int columns() const;
  std::string ColumnName(int column) const;
  SqlValue Value(int column) const;  // of the row that Step found; a BLOB as text
  bool IsBlob(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}

  sqlite3* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

struct SqlTable {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
};

class Database {
 public:
  enum class Mode { kReadOnly, kReadWrite, kCreate };
  // kCreate makes the file where it is missing. NOT_FOUND: no such file; INVALID_ARGUMENT: not a
  // SQLite database; else as ToStatus. Strings in double quotes are identifiers, never text, so
  // that a misspelt column is an error.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode);
  static absl::StatusOr<Database> InMemory();

  // From now on statements may only compute, the same every time and not for long: no functions of
  // chance, time or this connection, no recursion, no writing, at most a million characters and
  // ten million steps between two calls of ForgetSteps. Others are INVALID_ARGUMENT.
  void OnlyCompute();
  void ForgetSteps() const;
  // Statements that go on for longer than this are INVALID_ARGUMENT.
  void LimitTime(double seconds);

  Database(Database&& other) noexcept = default;
  Database& operator=(Database&& other) noexcept = default;

  // INVALID_ARGUMENT with SQLite's message ("no such column: pq"), without the file's name, where
  // `sql` is not valid. One statement only.
  absl::StatusOr<Statement> Prepare(const std::string& sql) const;
  // Statements without results, separated by semicolons.
  absl::Status Execute(const std::string& sql) const;
  absl::StatusOr<SqlTable> Query(const std::string& sql,
                                 absl::Span<const SqlValue> values = {}) const;
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return database_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  // How far the statement that runs may still go. On the heap: SQLite keeps a pointer to it.
  struct Budget {
    std::int64_t calls_left = 0;
    std::chrono::steady_clock::time_point deadline;
  };
  explicit Database(std::string path) : path_(std::move(path)) {}
  static absl::StatusOr<Database> OpenNamed(const std::string& path, const std::string& name,
                                            int flags);

  std::string path_;
  std::unique_ptr<Budget> budget_;
  std::unique_ptr<sqlite3, Close> database_;
};

// The last error of `database`: RESOURCE_EXHAUSTED for a full disk or one's quota,
// UNAVAILABLE for a lock that another process holds or a file that cannot be read or written,
// DATA_LOSS for a damaged file, INVALID_ARGUMENT for bad SQL or a file of another kind, INTERNAL
// else.
absl::Status ToStatus(sqlite3* database, int code);

}  // namespace optimus::sweep
