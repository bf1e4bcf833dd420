#include "executor/runtime/runtime.h"

namespace optimus::executor {

RankPlace PlaceOf(const ir::Schedule& schedule, int rank) {
  const ir::Parallelism& world = schedule.world;
  RankPlace place;
  place.t = rank % world.tp;
  place.d = rank / world.tp % world.dp;
  place.stage = rank / world.tp / world.dp;
  place.program = ir::ProgramIndex(schedule, place.stage, ir::LaneOf(schedule, place.t));
  return place;
}

}  // namespace optimus::executor
