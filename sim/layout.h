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
  int stage = 0, d = 0, t = 0;
};

// Entities are numbered by (stage, d, t), as ranks are; a folded axis has length 1.
class Layout {
 public:
  // `lockstep`: the ranks of a tensor-parallel group do everything at the same instants (see
  // GroupIsExact). Then they share one port: a link of it stands for the like link of every rank.
  Layout(const ir::Schedule& schedule, Fidelity fidelity, bool lockstep);

  int stages() const { return stages_; }
  int replicas() const { return replicas_; }  // along the data-parallel axis
  int lanes() const { return lanes_; }        // along the tensor-parallel axis
  int entities() const { return stages_ * replicas_ * lanes_; }
  int gpus_per_entity() const { return gpus_per_entity_; }
  bool lockstep() const { return lockstep_; }
  std::uint32_t Entity(Coordinates at) const {
    return static_cast<std::uint32_t>((at.stage * replicas_ + at.d) * lanes_ + at.t);
  }
  Coordinates At(std::uint32_t entity) const;
  std::int32_t FirstRank(std::uint32_t entity) const;

 private:
  ir::Parallelism world_;
  int stages_, replicas_, lanes_, gpus_per_entity_;
  bool lockstep_;
};

// The instances of a group: which entities meet. In lockstep the ranks of a tensor-parallel group
// meet for every transfer, as they reach it together.
class MemberSets {
 public:
  MemberSets(const Layout& layout, const ir::Group& group);
  int members() const { return members_; }  // of one instance
  int instances() const { return static_cast<int>(flat_.size()) / members_; }
  std::uint32_t InstanceOf(std::uint32_t entity) const { return instance_of_[entity]; }
  // Ascending.
  absl::Span<const std::uint32_t> Members(std::uint32_t instance) const {
    return absl::MakeConstSpan(flat_).subspan(static_cast<std::size_t>(instance) * members_,
                                              members_);
  }

 private:
  int members_;
  std::vector<std::uint32_t> instance_of_;  // by entity
  std::vector<std::uint32_t> flat_;         // members of instance 0, of instance 1, ...
};

// What sends meet for: the ranks behind one port.
MemberSets PortSets(const Layout& layout);

}  // namespace optimus::sim
