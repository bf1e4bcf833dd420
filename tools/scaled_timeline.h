#pragma once
// A timeline with all its times multiplied: of a run whose clock was stretched.

#include "schedule/ir/timeline.h"

namespace optimus::tools {

// Rounded to a picosecond each, so order is kept; what rounding takes from an account is put to its
// compute, so that compute + optimizer + bubbles = step still holds exactly. `factor` is above 0.
ir::Timeline Scaled(ir::Timeline timeline, double factor);

}  // namespace optimus::tools
