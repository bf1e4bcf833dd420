#pragma once
// Validations for people.

#include <string>

#include "tools/validation.h"

namespace optimus::tools {

// Of two timelines: step, parts of the step, kinds of work.
std::string ComparisonText(const validation::Comparison& comparison, double tolerance);

// Of a whole `optimus validate run`: one table of all experiments, then each in parts.
std::string ValidationText(const Validation& validation);

}  // namespace optimus::tools
