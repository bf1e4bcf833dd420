// Where ranks are: rank = (stage * dp + d) * tp + t, node = rank / gpus_per_node.

#include <algorithm>

#include "schedule/ir/critical_path.h"

namespace optimus::ir {
namespace {

// Fewest ranks that the group of rank (stage, d, t) has in a node it touches. Members are visited
// in ascending order of rank, so those of one node follow each other.
int FewestPerNode(const Schedule& schedule, const Group& group, int stage, int d, int t) {
  const Parallelism& world = schedule.world;
  int fewest = world.gpus();
  int node = -1;
  int here = 0;
  auto leave_node = [&] {
    if (here > 0) fewest = std::min(fewest, here);
    here = 0;
  };
  for (int s = group.over_pp ? 0 : stage; s < (group.over_pp ? world.pp : stage + 1); ++s) {
    for (int i = group.over_dp ? 0 : d; i < (group.over_dp ? world.dp : d + 1); ++i) {
      for (int j = group.over_tp ? 0 : t; j < (group.over_tp ? world.tp : t + 1); ++j) {
        const int its_node = RankOf(world, s, i, j) / schedule.gpus_per_node;
        if (its_node != node) leave_node();
        node = its_node;
        ++here;
      }
    }
  }
  leave_node();
  return fewest;
}

}  // namespace

GroupShape ShapeOf(const Schedule& schedule, const Group& group) {
  const Parallelism& world = schedule.world;
  const int stages = group.over_pp ? world.pp : 1;
  const int replicas = group.over_dp ? world.dp : 1;
  const int tensor_ranks = group.over_tp ? world.tp : 1;
  GroupShape shape;
  shape.ranks = stages * replicas * tensor_ranks;
  shape.ranks_per_node = shape.ranks;
  for (int s = 0; s < world.pp / stages; ++s) {
    for (int d = 0; d < world.dp / replicas; ++d) {
      for (int t = 0; t < world.tp / tensor_ranks; ++t) {
        shape.ranks_per_node =
            std::min(shape.ranks_per_node, FewestPerNode(schedule, group, s, d, t));
      }
    }
  }
  return shape;
}

bool SameNode(const Schedule& schedule, int stage, int peer_stage, int d, int t) {
  return RankOf(schedule.world, stage, d, t) / schedule.gpus_per_node ==
         RankOf(schedule.world, peer_stage, d, t) / schedule.gpus_per_node;
}

}  // namespace optimus::ir
