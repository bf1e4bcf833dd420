#pragma once
// Validations for machines.

#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/validation.h"

namespace optimus::tools {

std::string ComparisonJson(const validation::Comparison& comparison, double tolerance);
std::string ValidationJson(const Validation& validation);

// Every name with its meaning, for the command reference. "a.b" is b of the object a, or of every
// object in the list a.
absl::Span<const JsonField> ComparisonJsonFields();
absl::Span<const JsonField> ValidationJsonFields();

}  // namespace optimus::tools
