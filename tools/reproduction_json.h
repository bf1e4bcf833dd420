#pragma once
// A reproduction for machines.

#include <string>

#include "absl/types/span.h"
#include "tools/report_json.h"
#include "tools/reproduction.h"

namespace optimus::tools {

std::string ReproductionJson(const Reproduction& reproduction);

// Every name with its meaning, for the command reference. "a.b" is b of the object a, or of every
// object in the list a.
absl::Span<const JsonField> ReproduceJsonFields();

}  // namespace optimus::tools
