#pragma once
// Traces of PyTorch's profiler mostly have no stream events: which stream waited for which is not
// said. Two kinds of waiting are plain all the same, and without them no what-if of kernels would
// move communication, or the other way round:
//   - a process group's stream waits for all that was launched on the compute stream before the
//     communication (ProcessGroupNCCL does so at every call);
//   - a kernel that was launched long before, whose stream was free, and that began within
//     kWakesWithin of the end of a communication, waited for that one.
// Neither is inferred where the recorded times contradict it.

#include "traces/recording/recording.h"

namespace optimus::traces {

inline constexpr Picoseconds kWakesWithin{50'000'000};  // 50 us

// Adds these waits as kEvent dependencies to ranks of a Kineto trace that have no event at all,
// with a remark that counts them.
void InferStreamWaits(Recording& recording);

}  // namespace optimus::traces
