// Where ranks are: rank = (stage * dp + d) * tp + t, node = rank / gpus_per_node. Everything here
// repeats itself with the period of the nodes, so the cost depends on the size of a node and not on
// that of the world.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/ir/critical_path.h"

namespace optimus::ir {
namespace {

// `count` positions, `stride` ranks apart.
struct Axis {
  std::int64_t stride = 1;
  std::int64_t count = 1;
};

// The axes that the chosen coordinates span, inner first. Neighbours that follow each other without
// a gap are one axis.
std::vector<Axis> AxesOf(const Parallelism& world, bool stages, bool replicas, bool tensor_ranks) {
  std::vector<Axis> axes;
  const auto add = [&](std::int64_t stride, std::int64_t count) {
    if (count == 1) return;
    if (!axes.empty() && axes.back().stride * axes.back().count == stride) {
      axes.back().count *= count;
    } else {
      axes.push_back({stride, count});
    }
  };
  if (tensor_ranks) add(1, world.tp);
  if (replicas) add(world.tp, world.dp);
  if (stages) add(std::int64_t{world.tp} * world.dp, world.pp);
  return axes;
}

// After how many positions an axis is at the same place of a node again.
std::int64_t Period(Axis axis, std::int64_t node) { return node / std::gcd(axis.stride, node); }

// An axis that sees all nodes that the whole one sees: both of its ends, and between them at least
// two periods.
Axis Shortened(Axis axis, std::int64_t node) {
  const std::int64_t period = Period(axis, node);
  if (axis.count >= 4 * period) axis.count = 3 * period + axis.count % period;
  return axis;
}

// Calls `visit` with the offset of every position of up to three axes, in ascending order.
template <class Visit>
void ForEachOffset(std::vector<Axis> axes, Visit visit) {
  axes.resize(3);  // AxesOf gives no more
  for (std::int64_t i = 0; i < axes[2].count; ++i) {
    for (std::int64_t j = 0; j < axes[1].count; ++j) {
      for (std::int64_t k = 0; k < axes[0].count; ++k) {
        visit(i * axes[2].stride + j * axes[1].stride + k * axes[0].stride);
      }
    }
  }
}

// Fewest ranks that a group has in a node it touches, if its first rank is `first`. Members come in
// ascending order, so those of one node follow each other.
std::int64_t FewestPerNode(const std::vector<Axis>& members, std::int64_t first,
                           std::int64_t node) {
  std::int64_t fewest = node;
  std::int64_t its_node = -1;
  std::int64_t here = 0;
  ForEachOffset(members, [&](std::int64_t offset) {
    const std::int64_t next = (first + offset) / node;
    if (next != its_node && here > 0) {
      fewest = std::min(fewest, here);
      here = 0;
    }
    its_node = next;
    ++here;
  });
  return std::min(fewest, here);
}

// Places in a node at which groups begin.
std::vector<std::int64_t> FirstPlaces(std::vector<Axis> axes, std::int64_t node) {
  for (Axis& axis : axes) axis.count = std::min(axis.count, Period(axis, node));
  std::vector<std::int64_t> places;
  ForEachOffset(axes, [&](std::int64_t offset) { places.push_back(offset % node); });
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

GroupShape ShapeOf(const Schedule& schedule, const Group& group) {
  const Parallelism& world = schedule.world;
  const std::int64_t node = schedule.gpus_per_node;
  GroupShape shape;
  shape.ranks = (group.over_pp ? world.pp : 1) * (group.over_dp ? world.dp : 1) *
                (group.over_tp ? world.tp : 1);
  shape.ranks_per_node = shape.ranks;
  if (shape.ranks == 1 || world.gpus() <= node) return shape;
  std::vector<Axis> members = AxesOf(world, group.over_pp, group.over_dp, group.over_tp);
  for (Axis& axis : members) axis = Shortened(axis, node);
  for (const std::int64_t first :
       FirstPlaces(AxesOf(world, !group.over_pp, !group.over_dp, !group.over_tp), node)) {
    shape.ranks_per_node = static_cast<int>(
        std::min<std::int64_t>(shape.ranks_per_node, FewestPerNode(members, first, node)));
  }
  return shape;
}

bool SameNode(const Schedule& schedule, int stage, int peer_stage, int d, int t) {
  return RankOf(schedule.world, stage, d, t) / schedule.gpus_per_node ==
         RankOf(schedule.world, peer_stage, d, t) / schedule.gpus_per_node;
}

// Let the ranks be `lower` + i and, `distance` further, its peer. They share a node where lower + i
// is at least `distance` places before the end of its node. As a stage has fewer ranks than a node
// here, that changes at three values of i at most.
SharedNodes SharedNodesOf(const Schedule& schedule, int stage, int peer_stage) {
  const std::int64_t node = schedule.gpus_per_node;
  const std::int64_t ranks = std::int64_t{schedule.world.dp} * schedule.world.tp;
  const std::int64_t place = std::min(stage, peer_stage) * ranks % node;
  const std::int64_t distance = std::abs(stage - peer_stage) * ranks;
  if (distance == 0) return {true, true, true};
  if (distance >= node) return {false, false, true};
  const bool first = place < node - distance;
  SharedNodes shared{first, first, true};
  for (const std::int64_t change :
       {node - distance - place, node - place, 2 * node - distance - place}) {
    if (change <= 0 || change >= ranks) continue;
    shared.any = true;
    shared.all = false;
    if (change % schedule.world.tp != 0) shared.groups_agree = false;
  }
  return shared;
}

absl::Status CheckNodeSize(const Schedule& schedule, const CostModel& costs) {
  const int priced = costs.gpus_per_node();
  if (priced == 0 || priced == schedule.gpus_per_node) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("schedule '", schedule.name, "': gpus_per_node is ", schedule.gpus_per_node,
                   ", but the hardware profile has nodes of ", priced,
                   " GPUs; hint: use the profile that the schedule was made for"));
}

}  // namespace optimus::ir
