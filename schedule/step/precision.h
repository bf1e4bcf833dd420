#pragma once
// Bytes a parameter, in what is held and in what travels.

#include "schedule/step/experiment.pb.h"

namespace optimus::step {

inline constexpr int kParameterBytes = 2;  // bf16

// Of gradients as they are summed over micro-batches and over ranks.
inline int GradientBytes(const Plan& plan) { return plan.grad_reduce_in_bf16() ? 2 : 4; }

}  // namespace optimus::step
