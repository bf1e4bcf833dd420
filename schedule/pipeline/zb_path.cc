#include "schedule/pipeline/zb_path.h"

#include <cstddef>

namespace optimus::pipeline {

MicroBatchPath::MicroBatchPath(const ZbProblem& problem) {
  const int virtual_stages = VirtualStageCount(problem.placement, problem.stages, problem.chunks);
  const auto steps = static_cast<std::size_t>(virtual_stages) * 2;
  places_.resize(steps);
  forward_steps_.assign(problem.stages, std::vector<int>(problem.chunks));
  for (int s = 0; s < problem.stages; ++s) {
    for (int c = 0; c < problem.chunks; ++c) {
      const int k = VirtualStageOf(problem.placement, problem.stages, {s, c});
      places_[k] = places_[steps - 1 - k] = {s, c};
      forward_steps_[s][c] = k;
    }
  }
  times_.resize(steps);
  transfers_.resize(steps);
  arrivals_.resize(steps);
  for (std::size_t step = 0; step < steps; ++step) {
    const Place place = places_[step];
    const bool forward = step < steps / 2;
    times_[step] =
        (forward ? problem.times.forward : problem.times.backward_data)[place.stage][place.chunk];
    if (step + 1 == steps) break;
    const bool same_stage = places_[step + 1].stage == place.stage;
    transfers_[step] = same_stage ? Picoseconds(0) : problem.times.communication;
    arrivals_[step + 1] = arrivals_[step] + times_[step] + transfers_[step];
  }
}

}  // namespace optimus::pipeline
