#include "executor/runtime/plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "executor/runtime/order.h"

namespace optimus::executor {
namespace {

struct Sender {
  std::int32_t program = -1;
  std::uint32_t operation = 0;
};
using Senders = absl::flat_hash_map<std::int32_t, Sender>;  // by message

Senders SendersTo(const ir::Schedule& schedule, std::int32_t receiver) {
  Senders senders;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const ir::Program& program = schedule.programs[p];
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      if (op.kind != ir::OperationKind::kSend) continue;
      if (ir::PeerProgram(schedule, program, op) != receiver) continue;
      senders[op.message] = {static_cast<std::int32_t>(p), id};
    }
  }
  return senders;
}

class Planner {
 public:
  Planner(const ir::Schedule& schedule, const Channels& channels, int rank)
      : schedule_(schedule), channels_(channels), rank_(rank) {
    plan_.place = PlaceOf(schedule, rank);
  }

  Plan Make() {
    const ir::Program& program = schedule_.programs[plan_.place.program];
    senders_ = SendersTo(schedule_, plan_.place.program);
    plan_.order = EnqueueOrder(program);
    const std::vector<std::vector<std::uint32_t>> waits = NeededWaits(program, plan_.order);
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      PlannedOperation op = PlanOne(program, id);
      op.first_wait = static_cast<std::uint32_t>(plan_.waits.size());
      op.wait_count = static_cast<std::uint32_t>(waits[id].size());
      plan_.waits.insert(plan_.waits.end(), waits[id].begin(), waits[id].end());
      plan_.operations.push_back(op);
    }
    return std::move(plan_);
  }

 private:
  PlannedOperation PlanOne(const ir::Program& program, std::uint32_t id) {
    const ir::Operation& op = program.operations[id];
    PlannedOperation planned;
    planned.kind = op.kind;
    planned.stream = op.stream;
    planned.work = op.work;
    planned.stamp = planned.carried = StampOf(program, id, rank_, -1);
    switch (op.kind) {
      case ir::OperationKind::kKernel:
        planned.work = InternKernel(op.work);
        break;
      case ir::OperationKind::kCollective:
        PlanCollective(id, planned);
        break;
      case ir::OperationKind::kSend:
        PlanMessage(program, op, planned);
        break;
      case ir::OperationKind::kReceive: {
        PlanMessage(program, op, planned);
        const Sender& sender = senders_.at(op.message);
        planned.carried =
            StampOf(schedule_.programs[sender.program], sender.operation, planned.peer, -1);
        plan_.receives.push_back(id);
        break;
      }
    }
    return planned;
  }

  void PlanCollective(std::uint32_t id, PlannedOperation& planned) const {
    planned.channel = channels_.channel_of[plan_.place.program][id];
    const FirstMember& first = channels_.first_of[plan_.place.program][id];
    planned.carried = StampOf(schedule_.programs[first.program], first.operation, rank_, -1);
    planned.carried.operation = planned.stamp.operation;
  }

  // Rank i of a lane talks to rank i of the peer's lane.
  void PlanMessage(const ir::Program& program, const ir::Operation& op,
                   PlannedOperation& planned) const {
    const std::int32_t peer_lane = op.peer_lane < 0 ? program.lane : op.peer_lane;
    const std::int32_t peer_t =
        plan_.place.t + (peer_lane - program.lane) * ir::LaneWidth(schedule_);
    planned.peer = ir::RankOf(schedule_.world, op.peer_stage, plan_.place.d, peer_t);
    planned.message = op.message;
  }

  // Index into Plan::kernels. Entries of the Schedule's table may be equal.
  std::int32_t InternKernel(std::int32_t work) {
    const auto [entry, added] = kernel_of_work_.try_emplace(work, 0);
    if (!added) return entry->second;
    const Kernel& kernel = schedule_.kernels[work];
    const auto found = std::find(plan_.kernels.begin(), plan_.kernels.end(), kernel);
    entry->second = static_cast<std::int32_t>(found - plan_.kernels.begin());
    if (found == plan_.kernels.end()) plan_.kernels.push_back(kernel);
    return entry->second;
  }

  const ir::Schedule& schedule_;
  const Channels& channels_;
  const int rank_;
  Senders senders_;
  absl::flat_hash_map<std::int32_t, std::int32_t> kernel_of_work_;
  Plan plan_;
};

}  // namespace

Plan MakePlan(const ir::Schedule& schedule, const Channels& channels, int rank) {
  return Planner(schedule, channels, rank).Make();
}

}  // namespace optimus::executor
