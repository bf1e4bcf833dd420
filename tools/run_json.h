#pragma once
// What the JSON of `optimus run` has beside the names of `optimus simulate`.

#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"

namespace optimus::tools {

std::string RunJsonIntroduction();
absl::Span<const JsonField> RunJsonFields();

}  // namespace optimus::tools
