#pragma once
// `optimus explain --json`.

#include <string>

#include "absl/types/span.h"
#include "tools/explain_report.h"
#include "tools/json_fields.h"

namespace optimus::tools {

std::string ExplainJson(const ExplainReport& report);
absl::Span<const JsonField> ExplainJsonFields();

}  // namespace optimus::tools
