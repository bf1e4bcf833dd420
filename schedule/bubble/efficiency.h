#pragma once
// How much of the encoders is hidden in bubbles of the LLM (decision 11 of the calibration notes).

#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble {

// Encoder time of one micro-batch on one stage in one direction when it runs by itself, operations
// in order: kernels, and collectives no kernel hides. By encoder stage.
std::vector<Picoseconds> TimeAlone(const std::vector<StageWork>& stages);

// From the starts of operations, delta_f and latency of `result`. What lies between the LLM's
// operations is inside bubbles. What lies outside of the LLM's own [first_start, last_end] is
// inside as far as the bubble there is long enough: first_start before, and after last_end until
// the LLM alone would have reduced its last gradient.
Efficiency EfficiencyOf(const Problem& problem, const Result& result);

}  // namespace optimus::bubble
