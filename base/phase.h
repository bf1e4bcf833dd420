#pragma once
// The part of a training step an operation belongs to; part of every operation's tag.

#include <cstdint>

namespace optimus {

enum class Phase : std::uint8_t {
  kForward,
  kRecompute,  // forward again, inside the backward pass (activation recomputation)
  kBackward,   // data gradients (and everything else of the backward pass on its critical chain)
  kWeightGradient,  // weight gradients
  kParameterSync,   // distributed optimizer: parameter all-gather
  kGradientSync,    // gradient reduce-scatter or all-reduce, gradient norm
  kOptimizer,
};

const char* ToString(Phase phase);

}  // namespace optimus
