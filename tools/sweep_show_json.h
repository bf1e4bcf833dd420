#pragma once
// optimus sweep show --json.

#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/sweep/show/answer.h"

namespace optimus::tools {

std::string SweepShowJson(const sweep::Answer& answer);
absl::Span<const JsonField> SweepShowJsonFields();

}  // namespace optimus::tools
