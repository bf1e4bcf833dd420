#pragma once
// The way of a micro-batch: forward through all virtual stages, then its data gradient back through
// them. With K virtual stages these are 2 K steps.

#include <vector>

#include "base/units.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

class MicroBatchPath {
 public:
  explicit MicroBatchPath(const ZbProblem& problem);

  int steps() const { return static_cast<int>(places_.size()); }
  Place place(int step) const { return places_[step]; }
  Picoseconds time(int step) const { return times_[step]; }
  // From the end of `step` to when the next one may start, on an idle stage and with no other
  // message on the way.
  Picoseconds transfer(int step) const { return transfers_[step]; }
  // Whether the result of `step` goes to another stage.
  bool Sends(int step) const {
    return step + 1 < steps() && places_[step + 1].stage != places_[step].stage;
  }
  // From the first start of a lone micro-batch to its arrival at `step`.
  Picoseconds arrival(int step) const { return arrivals_[step]; }

  int ForwardStep(Place place) const { return forward_steps_[place.stage][place.chunk]; }
  int BackwardStep(Place place) const { return steps() - 1 - ForwardStep(place); }
  // Of a forward or a data gradient.
  int StepOf(Place place, SlotKind kind) const {
    return kind == SlotKind::kForward ? ForwardStep(place) : BackwardStep(place);
  }

 private:
  std::vector<Place> places_;
  std::vector<Picoseconds> times_, transfers_, arrivals_;  // by step
  std::vector<std::vector<int>> forward_steps_;            // by stage and chunk
};

}  // namespace optimus::pipeline
