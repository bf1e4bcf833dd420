#include "sim/layout.h"

namespace optimus::sim {

Layout::Layout(const ir::Schedule& schedule, Fidelity fidelity, bool lockstep)
    : world_(schedule.world),
      stages_(schedule.world.pp),
      replicas_(fidelity == Fidelity::kFolded ? 1 : schedule.world.dp),
      lanes_(fidelity == Fidelity::kGpu ? schedule.world.tp : 1),
      gpus_per_entity_(schedule.world.gpus() / (stages_ * replicas_ * lanes_)),
      lockstep_(lockstep) {}

Coordinates Layout::At(std::uint32_t entity) const {
  const int index = static_cast<int>(entity);
  return {index / (replicas_ * lanes_), index / lanes_ % replicas_, index % lanes_};
}

std::int32_t Layout::FirstRank(std::uint32_t entity) const {
  const Coordinates at = At(entity);
  return ir::RankOf(world_, at.stage, at.d, at.t);
}

MemberSets::MemberSets(const Layout& layout, const ir::Group& group) {
  const bool over_tp = group.over_tp || layout.lockstep();
  const int stages = group.over_pp ? 1 : layout.stages();
  const int replicas = group.over_dp ? 1 : layout.replicas();
  const int lanes = over_tp ? 1 : layout.lanes();
  const int instances = stages * replicas * lanes;
  members_ = layout.entities() / instances;
  instance_of_.resize(static_cast<std::size_t>(layout.entities()));
  flat_.resize(instance_of_.size());
  std::vector<int> filled(static_cast<std::size_t>(instances), 0);
  for (std::uint32_t entity = 0; entity < instance_of_.size(); ++entity) {
    const Coordinates at = layout.At(entity);
    const int stage = group.over_pp ? 0 : at.stage;
    const int d = group.over_dp ? 0 : at.d;
    const int t = over_tp ? 0 : at.t;
    const int instance = (stage * replicas + d) * lanes + t;
    instance_of_[entity] = static_cast<std::uint32_t>(instance);
    flat_[static_cast<std::size_t>(instance) * members_ + filled[instance]++] = entity;
  }
}

MemberSets PortSets(const Layout& layout) { return MemberSets(layout, ir::Group{"port"}); }

}  // namespace optimus::sim
