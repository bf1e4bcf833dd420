#pragma once
// What an order keeps of its micro-batches, at most, on every stage.

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// A forward starts to hold one micro-batch of one chunk; the data gradient frees all but
// `weight_share` of it, the weight gradient the rest; a whole backward frees all.
struct ActivationShares {
  // What a weight gradient needs, of what a forward leaves: M_W / M_B in Qi et al., arXiv
  // 2401.10241, Table 1. 1: everything is held until the weight gradient. Above 1 where activations
  // are computed again for the data gradients.
  double weight_share = 1;
  std::vector<double> by_stage = {};  // where the stages differ: instead of weight_share
  double Of(std::size_t stage) const { return by_stage.empty() ? weight_share : by_stage[stage]; }
};

// INVALID_ARGUMENT for a share below 0 or not finite, and for another number of them than `stages`.
absl::Status CheckShares(const ActivationShares& shares, int stages);

// The most that is held at once, by stage, in activations of one micro-batch of one chunk: with V
// equal chunks, divide by V for whole micro-batches of a stage. INVALID_ARGUMENT for an order that
// ValidateOrder refuses and for shares that CheckShares refuses.
absl::StatusOr<std::vector<double>> PeakActivations(const Order& order,
                                                    const ActivationShares& shares = {});

}  // namespace optimus::pipeline
