#pragma once
// Tables of a sweep as comma-separated values: what scripts read and tests compare byte for byte.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

// A header of the columns' names, then a line for each row. Numbers have the fewest digits that
// read back as the same; NULL is empty. Quoted as RFC 4180 says, where a text needs it; lines end
// in "\n".
std::string ToCsv(const SqlTable& table);

// The columns of TableCsv: point, axes and derived values, status, error, metrics, version and
// profile_hash. The wall time and memory of simulations are left out: they differ from run to run.
std::vector<std::string> TableColumns(const About& about);

// Every point of the sweep, in its order, whether or not it is done: status is empty where it is
// not. Errors are those of the database.
absl::StatusOr<std::string> TableCsv(const Database& database, const About& about);

}  // namespace optimus::sweep
