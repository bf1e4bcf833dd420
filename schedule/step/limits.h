#pragma once
// How large a step may be. Counted from the blocks, before anything of its size is made: an
// experiment that is too large is refused at once and not by the machine's memory.

#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/placing.h"
#include "schedule/step/stack.h"
#include "schedule/step/virtual_stages.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {

// Operations of all programs of a schedule. Building and simulating takes 106 bytes an operation
// (measured: 1.3 GB for 12 million), so this is 4 GiB. The largest published job, 12288 GPUs, has
// some 10^6.
inline constexpr double kMaxOperations = 4e7;

// Operations of one micro-batch on its way through all stages, forward and backward, with FSDP's
// collectives, without those of data parallelism and the optimizer (a few a stage and step). Where
// an encoder is frozen this counts gradient messages that are not sent. In double, so that no input
// can overflow it.
double OperationsPerMicroBatch(const Plan& plan, const Placing& placing, const Stack& stack,
                               const BlockTable& blocks);
double OperationsPerMicroBatch(const Placing& placing, const ProfiledBlocks& blocks);

// INVALID_ARGUMENT with the count, the limit and the field that is large, for a step of more than
// kMaxOperations (of half as many under warm-up BEST, which holds two orders), or whose activations
// do not fit 63 bits.
absl::Status CheckStepSize(const Experiment& experiment, const Placing& placing, const Stack& stack,
                           const BlockTable& blocks);
absl::Status CheckStepSize(const Experiment& experiment, const Placing& placing,
                           const ProfiledBlocks& blocks);

// INVALID_ARGUMENT where the sum, which the balanced layout makes, does not fit 63 bits.
absl::Status CheckLayerTimes(const std::vector<Picoseconds>& layer_times);

}  // namespace optimus::step
