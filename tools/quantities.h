#pragma once
// What can be compared with the paper: quantities by name, each with a unit and the way to get it
// from a simulated step.

#include <functional>
#include <optional>
#include <string>

#include "hw_profiles/profile.h"
#include "schedule/step/step.h"
#include "tools/layer_times.h"
#include "tools/report.h"

namespace optimus::tools {

// One experiment by one method, simulated.
struct PaperRun {
  Report report;
  hw::HardwareProfile profile;
  std::optional<LayerTimes> layers;  // absent without an encoder
};

// "iteration_time_s", "mfu_percent", "speedup_over_megatron", ...
bool IsQuantity(const std::string& name);
std::string QuantityNames();  // all, for messages
std::string UnitOf(const std::string& quantity);
// "%" and "percent" are the same, "" stands for any.
bool SameUnit(const std::string& given, const std::string& unit);
// With digits that suit the quantity.
std::string FormatQuantity(const std::string& quantity, double value);

// Whether an error in percent means something: a published planning time is of another machine.
bool HasError(const std::string& quantity);

// Method that `quantity` compares with ("megatron" of speedup_over_megatron); "" for none.
std::string ReferenceMethod(const std::string& quantity);

// Absent where the run has no such quantity (no bubble scheduler, memory unknown, ...), or where
// `reference` is needed and null.
std::optional<double> Evaluate(const std::string& quantity, const PaperRun& run,
                               const PaperRun* reference);

}  // namespace optimus::tools
