#include "executor/emulated/emulated_pacing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor {
namespace {

// Calls `visit` with the ranks of every instance of `group`.
template <class Visit>
void ForEachInstance(const ir::Schedule& schedule, const ir::Group& group, Visit visit) {
  const ir::Parallelism& world = schedule.world;
  for (int stage = 0; stage < world.pp; ++stage) {
    if (!ir::HasPart(group, stage)) continue;
    for (int d = 0; d < world.dp; ++d) {
      for (int t = 0; t < world.tp; ++t) {
        std::vector<std::int32_t> ranks =
            ir::RanksOf(schedule, ir::MembersOf(schedule, group, stage, d, t));
        if (ranks.front() == ir::RankOf(world, stage, d, t)) {
          visit(std::move(ranks));
        }
      }
    }
  }
}

// As ir::ShapeOf, of ranks that are no group of the Schedule.
GroupShape ShapeInNodes(absl::Span<const std::int32_t> ranks, std::int32_t node) {
  GroupShape shape;
  shape.ranks = shape.ranks_per_node = static_cast<int>(ranks.size());
  for (std::size_t i = 0; node > 0 && i < ranks.size();) {
    std::size_t end = i;
    while (end < ranks.size() && ranks[end] / node == ranks[i] / node) ++end;
    shape.ranks_per_node = std::min(shape.ranks_per_node, static_cast<int>(end - i));
    i = end;
  }
  return shape;
}

}  // namespace

void EmulatedPacing::Connect(const ir::Schedule& schedule) {
  gpus_per_node_ = schedule.gpus_per_node;
  shapes_.clear();
  for (const ir::Group& group : schedule.groups) {
    const GroupShape shape = ir::ShapeOf(schedule, group);
    ForEachInstance(schedule, group, [&](std::vector<std::int32_t> ranks) {
      const auto [entry, added] = shapes_.try_emplace(std::move(ranks), shape);
      if (!added) {
        entry->second.ranks_per_node = std::min(entry->second.ranks_per_node, shape.ranks_per_node);
      }
    });
  }
  fixed_messages_.clear();
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kSend) {
        continue;
      }
      const ir::Transfer& transfer = schedule.transfers[op.work];
      if (transfer.fixed > Picoseconds(0) || transfer.free()) {
        fixed_messages_[op.message] = transfer.fixed;
      }
    }
  }
}

std::int64_t EmulatedPacing::After(std::int64_t ready_ns, Picoseconds time) const {
  const double scaled_ns = time_scale_ * static_cast<double>(time.value()) / 1000.0;
  constexpr auto kLatest = std::numeric_limits<std::int64_t>::max() / 2;
  if (scaled_ns >= static_cast<double>(kLatest - ready_ns)) {
    return kLatest;
  }
  return ready_ns + std::llround(scaled_ns);
}

GroupShape EmulatedPacing::ShapeOf(absl::Span<const std::int32_t> ranks) const {
  const auto found = shapes_.find(ranks);
  return found != shapes_.end() ? found->second : ShapeInNodes(ranks, gpus_per_node_);
}

std::int64_t EmulatedPacing::KernelEndNs(const Kernel& kernel, std::int64_t ready_ns) const {
  return After(ready_ns, costs_.KernelTime(kernel));
}

std::int64_t EmulatedPacing::CollectiveEndNs(const CollectiveWork& work,
                                             absl::Span<const std::int32_t> ranks,
                                             std::int64_t ready_ns) const {
  return After(ready_ns, UncontendedTime(costs_, costs_.CollectiveCost(work, ShapeOf(ranks))));
}

std::int64_t EmulatedPacing::MessageEndNs(std::int32_t message, Bytes bytes, std::int32_t source,
                                          std::int32_t destination, std::int64_t ready_ns) const {
  if (const auto fixed = fixed_messages_.find(message); fixed != fixed_messages_.end()) {
    return After(ready_ns, fixed->second);
  }
  const bool same_node =
      gpus_per_node_ <= 0 || source / gpus_per_node_ == destination / gpus_per_node_;
  return After(ready_ns, UncontendedTime(costs_, costs_.SendCost(bytes, same_node)));
}

}  // namespace optimus::executor
