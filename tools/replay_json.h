#pragma once
// `optimus replay --json`.

#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/replay_report.h"

namespace optimus::tools {

std::string ReplayJson(const ReplayReport& report);
absl::Span<const JsonField> ReplayJsonFields();

}  // namespace optimus::tools
