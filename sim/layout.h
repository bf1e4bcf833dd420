#pragma once
// Who is simulated: the entities of one fidelity, the sets of entities that act together, and the
// ports by which they reach the network.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "schedule/ir/schedule.h"
#include "sim/simgrid_runner.h"

namespace optimus::sim {

struct Coordinates {
  int stage = 0, d = 0, t = 0;  // t: along the tensor-parallel axis, in entities
};

// Entities are numbered by (stage, d, t), as ranks are; a folded axis has length 1.
class Layout {
 public:
  // `lockstep`: the ranks of a lane do everything at the same instants (see WhyGroupIsNotExact).
  // Then they share one port: a link of it stands for the like link of every rank.
  Layout(const ir::Schedule& schedule, Fidelity fidelity, bool lockstep);

  int stages() const { return stages_; }
  int replicas() const { return replicas_; }          // along the data-parallel axis
  int tensor_ranks() const { return tensor_ranks_; }  // along the tensor-parallel axis
  int lanes() const { return lanes_; }                // of the Schedule
  int entities_per_lane() const { return tensor_ranks_ / lanes_; }  // of one stage and replica
  int entities() const { return stages_ * replicas_ * tensor_ranks_; }
  int gpus_per_entity() const { return gpus_per_entity_; }
  bool lockstep() const { return lockstep_; }
  std::uint32_t Entity(Coordinates at) const {
    return static_cast<std::uint32_t>((at.stage * replicas_ + at.d) * tensor_ranks_ + at.t);
  }
  Coordinates At(std::uint32_t entity) const;
  std::int32_t FirstRank(std::uint32_t entity) const;
  // Index into Schedule::programs.
  std::uint32_t ProgramOf(Coordinates at) const {
    return static_cast<std::uint32_t>(at.stage * lanes_ + at.t / entities_per_lane());
  }
  // The entity at the same place of another stage and lane; lane -1: the same lane.
  std::uint32_t PeerOf(std::uint32_t entity, int peer_stage, int peer_lane) const;
  // Whether an instance of the group is within one entity.
  bool WithinEntity(const ir::Schedule& schedule, const ir::Group& group) const;

 private:
  ir::Parallelism world_;
  int stages_, replicas_, lanes_, tensor_ranks_, gpus_per_entity_;
  bool lockstep_;
};

// The instances of a group: which entities meet. In lockstep the ranks of a lane meet for every
// transfer, as they reach it together.
class MemberSets {
 public:
  MemberSets(const Layout& layout, const ir::Schedule& schedule, const ir::Group& group);
  int members() const { return members_; }  // of one instance
  int instances() const { return static_cast<int>(flat_.size()) / members_; }
  // Of an entity that has part in the group (ir::HasPart).
  std::uint32_t InstanceOf(std::uint32_t entity) const { return instance_of_[entity]; }
  // Ascending.
  absl::Span<const std::uint32_t> Members(std::uint32_t instance) const {
    return absl::MakeConstSpan(flat_).subspan(static_cast<std::size_t>(instance) * members_,
                                              members_);
  }

 private:
  int members_ = 1;
  std::vector<std::uint32_t> instance_of_;  // by entity
  std::vector<std::uint32_t> flat_;         // members of instance 0, of instance 1, ...
};

// What sends meet for: the ranks behind one port.
MemberSets PortSets(const Layout& layout, const ir::Schedule& schedule);

}  // namespace optimus::sim
