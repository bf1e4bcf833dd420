#pragma once
// What --numerics found, for people and machines.

#include <nlohmann/json.hpp>
#include <string>

#include "executor/numerics/numerics.h"

namespace optimus::tools {

struct NumericsOutcome {
  executor::NumericsReport report;
  double tolerance = 0;
  // NaN is above every tolerance.
  bool within() const {
    return report.worst_loss_error <= tolerance && report.worst_gradient_error <= tolerance;
  }
};

// What computes in such a run.
inline constexpr char kNumericsDevice[] =
    "plain f32 loops of optimus itself, not oneDNN: the times of a numerics run say nothing about "
    "speed";

void AppendNumerics(const NumericsOutcome& numerics, std::string& out);
// What exceeds the tolerance, in one line.
std::string ExceededText(const NumericsOutcome& numerics);
nlohmann::ordered_json NumericsJson(const NumericsOutcome& numerics);

}  // namespace optimus::tools
