#pragma once
// Reports for machines. The names are those of every command: snake_case with unit suffixes.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/report.h"

namespace optimus::tools {

// One report: the object itself. Several: {"results": [...]}, each with speed_up and
// reduction_percent against the first. What is not known (mfu, memory, ... of profiled stages or of
// a schedule file) is left out. Numbers have as many digits as it takes to read back the same
// value.
std::string ToJson(const std::vector<Report>& reports);

// Every name of `optimus simulate` with its meaning, for the command reference.
absl::Span<const JsonField> JsonFields();

}  // namespace optimus::tools
