#pragma once
// The rows of several databases of one sweep, side by side in temporary tables, where SQL finds
// what contradicts and which row of several is kept (merge.h has the rules).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

class MergeRows {
 public:
  // Temporary tables of `out`, a database with the tables of `about`; must outlive the object.
  static absl::StatusOr<MergeRows> Make(const Database& out, const About& about);

  // Copies the rows of `source`. `about` is its own, with the columns of Make's.
  absl::Status Add(const Database& source, const About& about);

  // INVALID_ARGUMENT, naming files and values.
  absl::Status Check(bool allow_mixed_versions) const;

  // The points and results of `out` become the union. Within the caller's transaction.
  absl::Status Fill() const;

  std::vector<std::string> Versions() const;  // of the databases and their results, oldest first
  // Simulations with results of several versions, of which one is kept.
  absl::StatusOr<std::int64_t> OfSeveralVersions() const;

 private:
  // A version of optimus, and the first file that has it.
  struct Version {
    std::string version, file;
  };
  MergeRows(const Database& out, std::vector<Column> axes, std::vector<Column> results)
      : out_(&out), axes_(std::move(axes)), results_(std::move(results)) {}

  absl::Status CheckPoints() const;
  absl::Status CheckResults() const;
  absl::Status CheckVersions() const;
  absl::Status Copy(const Database& source, const std::string& table,
                    const std::vector<std::string>& columns) const;
  absl::Status AddVersions(const Database& source, const About& about);
  // "FILE: WHAT has COLUMN VALUE, in OTHER FILE it has OTHER VALUE" of the first difference between
  // the rows of `table` where `condition` holds of ?1, ?2, ... of `keys`.
  absl::Status Contradiction(const std::string& what, const std::string& table,
                             const std::vector<std::string>& columns, const std::string& condition,
                             absl::Span<const SqlValue> keys) const;
  std::vector<std::string> PointColumns() const;   // point, hash, AXES
  std::vector<std::string> ResultColumns() const;  // hash, status, error, METRICS, CONDITIONS
  std::vector<std::string> Determined() const;     // those of results that never differ by chance

  const Database* out_;
  std::vector<Column> axes_, results_;
  std::vector<std::string> files_;  // by the number of a source
  std::vector<Version> versions_;   // the oldest first
};

// Whether version `a` of optimus is older than `b`: number by number between the dots, so that
// 0.9.0 is older than 0.10.0; what is no number goes by its characters.
bool OlderVersion(const std::string& a, const std::string& b);

}  // namespace optimus::sweep
