#include "sim/pricing.h"

#include <array>
#include <cmath>
#include <set>

#include "schedule/ir/critical_path.h"

namespace optimus::sim {
namespace {

TransferPrice PriceOf(const CostModel& costs, const TransferCost& cost) {
  return {cost.latency.value(), UncontendedTime(costs, cost).value(), cost.wire_bytes.value(),
          cost.scope};
}

TransferPrice PriceOfSend(const CostModel& costs, const ir::Transfer& transfer, bool same_node) {
  if (transfer.fixed > Picoseconds(0) || transfer.free()) {
    return {transfer.fixed.value(), transfer.fixed.value(), 0, LinkScope::kNone};
  }
  return PriceOf(costs, costs.SendCost(transfer.bytes, same_node));
}

// Which streams use the NVLink of a program's GPUs, per direction; a stream is (program, stream).
class NvlinkUsers {
 public:
  explicit NvlinkUsers(const ir::Schedule& schedule)
      : schedule_(schedule), out_(schedule.programs.size()), in_(schedule.programs.size()) {}

  void Add(const Pricing& pricing, const ir::Program& program, const ir::Operation& op) {
    const int own = ir::ProgramIndex(schedule_, program.stage, program.lane);
    const int user = own * ir::kStreamCount + static_cast<int>(op.stream);
    if (op.kind == ir::OperationKind::kCollective) {
      if (!OnNvlink(pricing.collectives[op.work])) return;
      out_[own].insert(user);
      in_[own].insert(user);
    } else if (op.kind == ir::OperationKind::kSend) {
      if (!OnNvlink(pricing.sends_in_node[op.work])) return;
      const ir::SharedNodes shared =
          ir::SharedNodesOf(schedule_, program.stage, op.peer_stage, program.lane, op.peer_lane);
      if (!shared.any) return;
      out_[own].insert(user);
      in_[ir::PeerProgram(schedule_, program, op)].insert(user);
    }
  }
  bool AnyShared() const {
    for (const auto* direction : {&out_, &in_}) {
      for (const std::set<int>& users : *direction) {
        if (users.size() > 1) return true;
      }
    }
    return false;
  }

 private:
  static bool OnNvlink(const TransferPrice& price) {
    return price.scope == LinkScope::kNvlink && price.wire_bytes > 0;
  }
  const ir::Schedule& schedule_;
  std::vector<std::set<int>> out_, in_;  // by program
};

// Operations that use NVLink alike are looked at once: kind, stream, work and peer decide.
bool NvlinkContends(const ir::Schedule& schedule, const Pricing& pricing) {
  NvlinkUsers users(schedule);
  for (const ir::Program& program : schedule.programs) {
    std::set<std::array<int, 5>> seen;
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kCollective && op.kind != ir::OperationKind::kSend) {
        continue;
      }
      const std::array<int, 5> use{static_cast<int>(op.kind), static_cast<int>(op.stream), op.work,
                                   op.peer_stage, op.peer_lane};
      if (seen.insert(use).second) users.Add(pricing, program, op);
    }
  }
  return users.AnyShared();
}

}  // namespace

Pricing::Pricing(const ir::Schedule& schedule, const CostModel& costs, const Interference& factors)
    : interference(factors),
      overlap_counts(factors.kernel_under_nvlink != 1 || factors.kernel_under_nic != 1 ||
                     factors.collective_under_kernel != 1) {
  for (const Kernel& kernel : schedule.kernels) {
    kernels.push_back(costs.KernelTime(kernel).value());
    priced.push_back(kernel.kind != KernelKind::kFixed);
  }
  for (const ir::Collective& collective : schedule.collectives) {
    const GroupShape shape = ir::ShapeOf(schedule, schedule.groups[collective.group]);
    collectives.push_back(PriceOf(costs, costs.CollectiveCost(collective.work, shape)));
  }
  for (const ir::Transfer& transfer : schedule.transfers) {
    sends_in_node.push_back(PriceOfSend(costs, transfer, /*same_node=*/true));
    sends_between_nodes.push_back(PriceOfSend(costs, transfer, /*same_node=*/false));
  }
  nvlink_contends = NvlinkContends(schedule, *this);
}

OverlapRole Pricing::RoleOf(const ir::Operation& op) const {
  if (!overlap_counts) return OverlapRole::kNone;
  if (op.kind == ir::OperationKind::kKernel) {
    return priced[op.work] ? OverlapRole::kKernel : OverlapRole::kNone;
  }
  if (op.kind != ir::OperationKind::kCollective) return OverlapRole::kNone;
  switch (collectives[op.work].scope) {
    case LinkScope::kNvlink:
      return OverlapRole::kNvlink;
    case LinkScope::kNic:
      return OverlapRole::kNic;
    case LinkScope::kNone:
      break;
  }
  return OverlapRole::kNone;
}

std::int64_t Slowed(std::int64_t picoseconds, double factor) {
  if (factor == 1.0) return picoseconds;
  return std::llround(static_cast<double>(picoseconds) * factor);
}

TransferPrice SlowedTransfer(const TransferPrice& price, double factor) {
  const auto slowed = [factor](std::int64_t value) {
    return RoundSaturated(static_cast<double>(value) * factor);
  };
  return {slowed(price.latency), slowed(price.alone), slowed(price.wire_bytes), price.scope};
}

}  // namespace optimus::sim
