#pragma once
// The communicator group that a rank is in, of a Group of a Schedule: its members, its name and its
// role.

#include <cstdint>

#include "schedule/ir/schedule.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// A place in the world: rank = (stage * dp + replica) * tp + tensor_rank.
struct Place {
  std::int32_t stage = 0, replica = 0, tensor_rank = 0;
};
Place PlaceOf(const ir::Parallelism& world, std::int32_t rank);

// Which instance of `group` the rank at `place` is in: its lowest rank tells it from the others.
struct Instance {
  std::int32_t first_rank = 0;
  std::int32_t members = 1;
};
Instance InstanceAt(const ir::Schedule& schedule, const ir::Group& group, const Place& place);

// "tp of stage 3, replica 0": the group's name and the coordinates that its members share; of an
// axis of one rank nothing is said. The role is that of the axes: one that is not narrowed has its
// own name (dp, tp, pp). Copies of the same parameters are data-parallel, whatever axis they lie
// along: a stride of stages or tensor ranks, and a pair of stages with all their replicas. A group
// over pipeline and tensor ranks (the gradient norm's) is "pp", its slower axis; one of all ranks
// is "world".
CommunicatorGroup GroupAt(const ir::Schedule& schedule, const ir::Group& group, const Place& place);

}  // namespace optimus::traces
