#pragma once
// Validations for people.

#include <string>

#include "tools/validation.h"

namespace optimus::tools {

// Of two timelines: step, parts of the step, kinds of work: all of them, or those that take
// longest.
std::string ComparisonText(const validation::Comparison& comparison, double tolerance,
                           bool all_work);

// Of a whole `optimus validate run`: one table of all experiments, then each in parts.
std::string ValidationText(const Validation& validation, bool all_work);

// What is outside the tolerance or ranked differently, in one line.
std::string OutsideText(const validation::Comparison& comparison, double tolerance);
std::string OutsideText(const Validation& validation);

}  // namespace optimus::tools
