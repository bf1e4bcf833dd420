// Where ranks are: rank = (stage * dp + d) * tp + t, node = rank / gpus_per_node. Everything here
// repeats itself with the period of the nodes, so the cost depends on the size of a node and not on
// that of the world.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"

namespace optimus::ir {
namespace {

// `count` positions, `stride` ranks apart.
struct Axis {
  std::int64_t stride = 1;
  std::int64_t count = 1;
};

// The axes of a set of ranks, inner first. Neighbours that follow each other without a gap are one
// axis.
class Axes {
 public:
  void Add(std::int64_t stride, std::int64_t count) {
    if (count == 1) return;
    if (!axes_.empty() && axes_.back().stride * axes_.back().count == stride) {
      axes_.back().count *= count;
    } else {
      axes_.push_back({stride, count});
    }
  }
  std::vector<Axis> Take() { return std::move(axes_); }

 private:
  std::vector<Axis> axes_;
};

// The members of one instance, from its first rank on.
std::vector<Axis> MemberAxes(const Parallelism& world, const Group& group) {
  Axes axes;
  if (group.over_tp && group.tp_block > 0) {
    axes.Add(1, group.tp_block);
  } else if (group.over_tp) {
    const std::int64_t stride = std::max(group.tp_stride, 1);
    axes.Add(stride, world.tp / stride);
  }
  if (group.over_dp) axes.Add(world.tp, world.dp);
  const std::int64_t stage = std::int64_t{world.tp} * world.dp;
  if (group.paired()) {
    axes.Add((group.pp_pair[1] - group.pp_pair[0]) * stage, 2);
  } else if (group.over_pp) {
    const std::int64_t stride = std::max(group.pp_stride, 1);
    axes.Add(stride * stage, world.pp / stride);
  }
  return axes.Take();
}

// The first ranks of all instances, from the lowest on.
std::vector<Axis> InstanceAxes(const Parallelism& world, const Group& group) {
  Axes axes;
  if (!group.over_tp) {
    axes.Add(1, world.tp);
  } else if (group.tp_block > 0) {
    axes.Add(group.tp_block, world.tp / group.tp_block);
  } else {
    axes.Add(1, std::max(group.tp_stride, 1));
  }
  if (!group.over_dp) axes.Add(world.tp, world.dp);
  if (group.paired()) return axes.Take();
  const std::int64_t stage = std::int64_t{world.tp} * world.dp;
  axes.Add(stage, group.over_pp ? std::max(group.pp_stride, 1) : world.pp);
  return axes.Take();
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
  axes.resize(3);  // there are no more
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

// Places in a node at which groups begin, the first of them at rank `first`.
std::vector<std::int64_t> FirstPlaces(std::int64_t first, std::vector<Axis> axes,
                                      std::int64_t node) {
  for (Axis& axis : axes) axis.count = std::min(axis.count, Period(axis, node));
  std::vector<std::int64_t> places;
  ForEachOffset(axes, [&](std::int64_t offset) { places.push_back((first + offset) % node); });
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

GroupShape ShapeOf(const Schedule& schedule, const Group& group) {
  const Parallelism& world = schedule.world;
  const std::int64_t node = schedule.gpus_per_node;
  GroupShape shape;
  shape.ranks = FirstInstance(schedule, group).ranks();
  shape.ranks_per_node = shape.ranks;
  if (shape.ranks == 1 || world.gpus() <= node) return shape;
  std::vector<Axis> members = MemberAxes(world, group);
  for (Axis& axis : members) axis = Shortened(axis, node);
  const std::int64_t lowest = RankOf(world, group.pp_pair[0], 0, 0);
  for (const std::int64_t first : FirstPlaces(lowest, InstanceAxes(world, group), node)) {
    shape.ranks_per_node = static_cast<int>(
        std::min<std::int64_t>(shape.ranks_per_node, FewestPerNode(members, first, node)));
  }
  return shape;
}

bool SameNode(const Schedule& schedule, int stage, int peer_stage, int d, int t, int peer_lane) {
  const int lanes_apart = peer_lane < 0 ? 0 : peer_lane - LaneOf(schedule, t);
  const int peer_t = t + lanes_apart * LaneWidth(schedule);
  return RankOf(schedule.world, stage, d, t) / schedule.gpus_per_node ==
         RankOf(schedule.world, peer_stage, d, peer_t) / schedule.gpus_per_node;
}

namespace {

// Let the ranks be `lower` + i and, `distance` further, its peer. They share a node where lower + i
// is at least `distance` places before the end of its node. As a stage has fewer ranks than a node
// here, that changes at three values of i at most.
SharedNodes SharedOverAllLanes(const Schedule& schedule, int stage, int peer_stage) {
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

// Of `count` neighbours from the place `first` of a node on, how many are at least `distance`
// places before the end of their node.
std::int64_t CountShared(std::int64_t first, std::int64_t count, std::int64_t distance,
                         std::int64_t node) {
  const auto before = [&](std::int64_t end) {  // among the places [0, end)
    return end / node * (node - distance) + std::min(end % node, node - distance);
  };
  return before(first + count) - before(first);
}

}  // namespace

// The ranks of a lane lie alike in a node again after a period of replicas.
SharedNodes SharedNodesOf(const Schedule& schedule, int stage, int peer_stage, int lane,
                          int peer_lane) {
  if (peer_lane < 0) peer_lane = lane;
  if (schedule.lanes == 1 || lane < 0) return SharedOverAllLanes(schedule, stage, peer_stage);
  const std::int64_t node = schedule.gpus_per_node;
  const std::int64_t tp = schedule.world.tp;
  const std::int64_t width = LaneWidth(schedule);
  const std::int64_t per_stage = schedule.world.dp * tp;
  const std::int64_t mine = stage * per_stage + lane * width;
  const std::int64_t peer = peer_stage * per_stage + peer_lane * width;
  const std::int64_t distance = std::abs(mine - peer);
  if (distance >= node) return {false, false, true};
  SharedNodes shared{false, true, true};
  const std::int64_t replicas =
      std::min<std::int64_t>(schedule.world.dp, node / std::gcd(tp, node));
  for (std::int64_t d = 0; d < replicas; ++d) {
    const std::int64_t first = (std::min(mine, peer) + d * tp) % node;
    const std::int64_t count = CountShared(first, width, distance, node);
    shared.any = shared.any || count > 0;
    shared.all = shared.all && count == width;
    shared.groups_agree = shared.groups_agree && (count == 0 || count == width);
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
