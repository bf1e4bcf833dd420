#include "sim/layout.h"

#include "schedule/ir/group_members.h"

namespace optimus::sim {

Layout::Layout(const ir::Schedule& schedule, Fidelity fidelity, bool lockstep)
    : world_(schedule.world),
      stages_(schedule.world.pp),
      replicas_(fidelity == Fidelity::kFolded ? 1 : schedule.world.dp),
      lanes_(schedule.lanes),
      tensor_ranks_(fidelity == Fidelity::kGpu ? schedule.world.tp : schedule.lanes),
      gpus_per_entity_(schedule.world.gpus() / (stages_ * replicas_ * tensor_ranks_)),
      lockstep_(lockstep) {}

Coordinates Layout::At(std::uint32_t entity) const {
  const int index = static_cast<int>(entity);
  return {index / (replicas_ * tensor_ranks_), index / tensor_ranks_ % replicas_,
          index % tensor_ranks_};
}

std::int32_t Layout::FirstRank(std::uint32_t entity) const {
  const Coordinates at = At(entity);
  return ir::RankOf(world_, at.stage, at.d, at.t * (world_.tp / tensor_ranks_));
}

std::uint32_t Layout::PeerOf(std::uint32_t entity, int peer_stage, int peer_lane) const {
  Coordinates at = At(entity);
  at.stage = peer_stage;
  if (peer_lane >= 0) at.t = peer_lane * entities_per_lane() + at.t % entities_per_lane();
  return Entity(at);
}

bool Layout::WithinEntity(const ir::Schedule& schedule, const ir::Group& group) const {
  const ir::GroupMembers members = ir::FirstInstance(schedule, group);
  const int tensor = tensor_ranks_ == world_.tp ? members.tensor_ranks.count : members.lanes.count;
  return members.stages.count == 1 && (members.replicas.count == 1 || replicas_ == 1) &&
         tensor == 1;
}

namespace {

// Entities of the instance of `group` that the entity at `at` is in, ascending.
std::vector<std::uint32_t> EntitiesOf(const Layout& layout, const ir::Schedule& schedule,
                                      const ir::Group& group, Coordinates at) {
  const int first_t = at.t * (schedule.world.tp / layout.tensor_ranks());
  const ir::GroupMembers members = ir::MembersOf(schedule, group, at.stage, at.d, first_t);
  std::vector<int> along_tensor;
  if (layout.lockstep()) {
    const int per_lane = layout.entities_per_lane();
    for (int i = 0; i < members.lanes.count; ++i) {
      for (int j = 0; j < per_lane; ++j) along_tensor.push_back(members.lanes[i] * per_lane + j);
    }
  } else {
    for (int i = 0; i < members.tensor_ranks.count; ++i) {
      along_tensor.push_back(members.tensor_ranks[i]);
    }
  }
  const int replicas = layout.replicas() == 1 ? 1 : members.replicas.count;
  std::vector<std::uint32_t> entities;
  for (int s = 0; s < members.stages.count; ++s) {
    for (int d = 0; d < replicas; ++d) {
      for (const int t : along_tensor) {
        entities.push_back(layout.Entity({members.stages[s], members.replicas[d], t}));
      }
    }
  }
  return entities;
}

}  // namespace

MemberSets::MemberSets(const Layout& layout, const ir::Schedule& schedule, const ir::Group& group) {
  constexpr auto kNone = static_cast<std::uint32_t>(-1);
  const auto entities = static_cast<std::uint32_t>(layout.entities());
  instance_of_.assign(entities, kNone);
  flat_.reserve(entities);
  std::uint32_t instances = 0;
  for (std::uint32_t entity = 0; entity < entities; ++entity) {
    if (instance_of_[entity] != kNone) continue;
    if (!ir::HasPart(group, layout.At(entity).stage)) continue;
    const auto members = EntitiesOf(layout, schedule, group, layout.At(entity));
    for (const std::uint32_t member : members) instance_of_[member] = instances;
    flat_.insert(flat_.end(), members.begin(), members.end());
    members_ = static_cast<int>(members.size());
    ++instances;
  }
}

MemberSets PortSets(const Layout& layout, const ir::Schedule& schedule) {
  return MemberSets(layout, schedule, ir::Group{"port"});
}

}  // namespace optimus::sim
