#pragma once
// Plans for machines.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/types/span.h"
#include "tools/report.h"
#include "tools/report_json.h"

namespace optimus::tools {

// The object `optimus` of a report of strategy OPTIMUS: the plan that was simulated.
nlohmann::ordered_json OptimusJson(const OptimusReport& optimus);

// The whole output of `optimus plan --json`.
std::string PlanJson(const Report& report);

// Every name of PlanJson with its meaning, for the command reference. "a.b" is b of the object a.
absl::Span<const JsonField> PlanJsonFields();

}  // namespace optimus::tools
