#pragma once
// Accounts every idle picosecond of a compute stream to its cause. Shared by all runners.
//
// The rule: a compute operation checks its dependencies in listed order. While the one it is at has
// not ended, the idle time belongs to that dependency's class; then it goes on to the next. The
// idle tail after a rank's last compute operation belongs, up to the end of the rank's own last
// other operation, to that operation's class, and from there on to the pipeline cool-down.
//
// Encoders that run beside the LLM (ModuleInfo::pipelines above 0) fill its bubbles, so what they
// leave keeps the name of the bubble that it is in: warm-up lasts until the first kernel, and
// cool-down begins after the last kernel, that is not theirs. Waiting for a message of theirs is
// waiting for the pipeline, for a tensor-parallel collective of theirs kTp, and for the
// synchronisation of their parameters or gradients data-parallel, also where its group is over the
// pipeline or over blocks of tensor-parallel ranks: those are replicas of the encoder. So is that
// of a model of two copies, whose group is over the data-parallel ranks of a pair of stages.

#include <vector>

#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::ir {

// Class of waiting for `dependency`, for a compute operation at the given place of its program.
// `before_first` / `after_last`: before the rank's first / after its last forward-or-backward
// compute, without that of encoders beside the LLM.
BubbleClass ClassifyWait(const Schedule& schedule, const Operation& dependency, bool before_first,
                         bool after_last);

// Class of the idle tail that lasts until `operation`, which is not of the compute stream, ends.
BubbleClass TailClass(const Schedule& schedule, const Operation& operation);

// Forward, recomputation, backward and weight-gradient kernels of the compute stream: what warm-up
// comes before and cool-down after.
bool IsForwardOrBackwardCompute(const Operation& operation);
bool IsCompute(const Operation& operation);           // any kernel of the compute stream
bool IsOptimizerCompute(const Operation& operation);  // RankAccount::optimizer, not ::compute

// One entry per entry of program.dependencies (entries of non-compute operations are unspecified).
std::vector<BubbleClass> ClassifyDependencies(const Schedule& schedule, const Program& program);

// Breakdown of one rank from recorded spans alone: the slow twin that checks the runners' accounts.
// `ends` and `starts` are indexed by operation id and count from the start of the step.
RankAccount AccountFromSpans(const Schedule& schedule, const Program& program,
                             const std::vector<Picoseconds>& starts,
                             const std::vector<Picoseconds>& ends, Picoseconds step);

}  // namespace optimus::ir
