#include "schedule/pipeline/placement.h"

namespace optimus::pipeline {
namespace {

bool GoesBack(Placement placement, int chunk) {
  return placement != Placement::kLoop && chunk % 2 == 1;
}

Place Moved(Placement placement, int stages, Place place, int by) {
  if (placement == Placement::kBidirectional) {
    return {place.stage + (place.chunk == 0 ? by : -by), place.chunk};
  }
  const int moved = VirtualStageOf(placement, stages, place) + by;
  const int chunk = moved / stages;
  const int along = moved % stages;
  return {GoesBack(placement, chunk) ? stages - 1 - along : along, chunk};
}

}  // namespace

const char* ToString(Placement placement) {
  switch (placement) {
    case Placement::kLoop:
      return "loop";
    case Placement::kV:
      return "V";
    case Placement::kBidirectional:
      return "bidirectional";
  }
  return "unknown";
}

int VirtualStageCount(Placement placement, int stages, int chunks) {
  return placement == Placement::kBidirectional ? stages : stages * chunks;
}

int VirtualStageOf(Placement placement, int stages, Place place) {
  const int along = GoesBack(placement, place.chunk) ? stages - 1 - place.stage : place.stage;
  return placement == Placement::kBidirectional ? along : place.chunk * stages + along;
}

std::optional<Place> PreviousPlace(Placement placement, int stages, Place place) {
  if (VirtualStageOf(placement, stages, place) == 0) return std::nullopt;
  return Moved(placement, stages, place, -1);
}

std::optional<Place> NextPlace(Placement placement, int stages, int chunks, Place place) {
  const int last = VirtualStageCount(placement, stages, chunks) - 1;
  if (VirtualStageOf(placement, stages, place) == last) return std::nullopt;
  return Moved(placement, stages, place, 1);
}

}  // namespace optimus::pipeline
