#pragma once
// What each axis of a sweep does to the objective.
//
// Means over all points of a value mislead where values do not meet the same company: large tp may
// have been tried with small models only. Matched pairs compare like with like: two points that
// differ in this axis alone.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

struct AxisValue {
  SqlValue value;
  std::int64_t points = 0;
  double best = 0;            // of the objective, over all points of this value
  double geometric_mean = 0;  // of the same points
  std::int64_t pairs = 0;     // with points of the reference; of the reference itself: 0
  // Geometric mean of objective / objective of the reference, over the pairs; absent without any.
  // 1 for the reference.
  std::optional<double> ratio;
};

struct AxisEffect {
  Column axis;
  std::vector<std::string> zipped;  // axes that always change together with this one
  // The first value that has a pair with another; absent where no two points differ in this axis
  // only.
  std::optional<SqlValue> reference;
  std::vector<AxisValue> values;  // numbers ascending, texts in the order of the sweep
  std::optional<double> spread;   // largest ratio / smallest ratio: 1 is no effect
};

struct Sensitivity {
  Aim objective;
  std::int64_t points = 0;       // that it is made of
  std::int64_t left_out = 0;     // without an objective above zero: it has no geometric mean
  std::vector<AxisEffect> axes;  // of more than one value; largest spread first, without one last
};

// One point: the values of all axes, and an objective above zero.
struct Observation {
  std::vector<SqlValue> axes;
  double objective = 0;
};

// `observations` in the order of their points, with values for each of `axes`.
std::vector<AxisEffect> AxisEffects(const std::vector<Column>& axes,
                                    const std::vector<Observation>& observations,
                                    bool high_is_better);

absl::StatusOr<Sensitivity> FindSensitivity(const Database& database, const About& about,
                                            const Filter& filter, const Aim& objective);

}  // namespace optimus::sweep
