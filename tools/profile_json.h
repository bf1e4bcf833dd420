#pragma once
// What the JSON of `optimus profile` means.

#include "absl/types/span.h"
#include "tools/json_fields.h"

namespace optimus::tools {

absl::Span<const JsonField> ProfileJsonFields();

}  // namespace optimus::tools
