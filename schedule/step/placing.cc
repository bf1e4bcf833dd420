#include "schedule/step/placing.h"

namespace optimus::step {

std::vector<pipeline::Place> Placing::PlacesOf(int virtual_stage) const {
  const bool copies = placement == pipeline::Placement::kBidirectional;
  const int along = virtual_stage % stages;
  const int first = copies ? 0 : virtual_stage / stages;
  std::vector<pipeline::Place> places;
  for (int chunk = first; chunk <= (copies ? 1 : first); ++chunk) {
    // Down the stages or up them: pipeline/placement.h alone says which.
    const bool down = VirtualStageOf({along, chunk}) == virtual_stage;
    places.push_back({down ? along : stages - 1 - along, chunk});
  }
  return places;
}

bool Placing::StaysBehind(int virtual_stage) const {
  const pipeline::Place place = PlacesOf(virtual_stage).front();
  const auto next = pipeline::NextPlace(placement, stages, chunks, place);
  return next.has_value() && next->stage == place.stage;
}

int Placing::CrossedBoundaries() const {
  int crossed = 0;
  for (int v = 0; v + 1 < virtual_stages(); ++v) crossed += StaysBehind(v) ? 0 : 1;
  return crossed;
}

}  // namespace optimus::step
