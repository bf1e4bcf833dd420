#pragma once
// The obvious twin of the simulator for tests: every GPU, one picosecond after the other. Links are
// not shared, so transfers last what they last alone. Slow, and nothing in it is clever.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/cost_model.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/schedule.h"

namespace optimus::sim::testing {

// Kernels that are not kFixed are slower by 5/4 under an NVLink collective and by 3/2 under one of
// the network card: of 15 parts of a picosecond's work, 12 or 10 are done in a picosecond.
inline constexpr Interference kTwinFactors{1.25, 1.5, 1.0};
inline constexpr std::int64_t kParts = 15, kPartsUnderNvlink = 12, kPartsUnderNic = 10;

class TimeStepper {
 public:
  // `collective_factor`: an NVLink collective lasts so much longer if a kernel that can be slowed
  // runs on a member when it starts. `slow_rank` has kernels slower by `slow_factor`.
  TimeStepper(const ir::Schedule& schedule, const CostModel& costs, double collective_factor,
              int slow_rank, double slow_factor)
      : schedule_(schedule),
        costs_(costs),
        collective_factor_(collective_factor),
        slow_rank_(slow_rank),
        slow_factor_(slow_factor),
        ranks_(schedule.world.gpus()) {
    for (int rank = 0; rank < schedule.world.gpus(); ++rank) SetUp(rank);
  }

  void Run() {
    while (unfinished_ > 0) {
      while (StartAll()) {
      }
      SlowNewCollectives();
      OnePicosecond();
    }
  }

  std::int64_t start(int rank, std::uint32_t id) const { return ranks_[rank].times[id].first; }
  std::int64_t end(int rank, std::uint32_t id) const { return ranks_[rank].times[id].second; }

 private:
  static constexpr std::int64_t kNotYet = -1;
  struct Rank {
    const ir::Program* program = nullptr;
    std::array<std::vector<std::uint32_t>, ir::kStreamCount> streams;
    std::array<std::size_t, ir::kStreamCount> next{};
    std::vector<std::pair<std::int64_t, std::int64_t>> times;  // start and end, by operation
    std::vector<std::int64_t> left;                            // by operation, in parts
    std::map<int, int> issued;                                 // by group: collectives so far
    std::vector<int> issue;                                    // by operation
    std::int64_t carry = 0, carry_time = kNotYet;
  };
  // By group, first member and issue.
  using Instance = std::tuple<int, int, int>;
  struct Collective {
    std::vector<std::int32_t> members;
    std::vector<std::uint32_t> operations;
    std::vector<int> arrived;
    std::int64_t left = kNotYet;  // picoseconds
    LinkScope scope = LinkScope::kNone;
  };

  void SetUp(int rank) {
    const ir::Parallelism& world = schedule_.world;
    Rank& state = ranks_[rank];
    const int lane = ir::LaneOf(schedule_, rank % world.tp);
    state.program =
        &schedule_.programs[ir::ProgramIndex(schedule_, rank / (world.dp * world.tp), lane)];
    const auto& operations = state.program->operations;
    state.times.assign(operations.size(), {kNotYet, kNotYet});
    state.left.assign(operations.size(), 0);
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      state.streams[static_cast<int>(operations[id].stream)].push_back(id);
      const bool collective = operations[id].kind == ir::OperationKind::kCollective;
      const int group = collective ? schedule_.collectives[operations[id].work].group : -1;
      state.issue.push_back(collective ? state.issued[group]++ : 0);
    }
    unfinished_ += operations.size();
  }

  // Starts what can start now; true if that, or an end at once, may let more start.
  bool StartAll() {
    bool changed = false;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      Rank& state = ranks_[rank];
      for (int stream = 0; stream < ir::kStreamCount; ++stream) {
        if (state.next[stream] == state.streams[stream].size()) continue;
        const std::uint32_t id = state.streams[stream][state.next[stream]];
        if (Ready(state, id)) changed = Start(rank, id) || changed;
      }
    }
    return changed;
  }

  static bool Ready(const Rank& state, std::uint32_t id) {
    for (const std::uint32_t other : state.program->DependenciesOf(state.program->operations[id])) {
      if (state.times[other].second == kNotYet) return false;
    }
    return true;
  }

  bool Start(int rank, std::uint32_t id) {
    Rank& state = ranks_[rank];
    const ir::Operation& op = state.program->operations[id];
    const bool first = state.times[id].first == kNotYet;
    if (op.kind == ir::OperationKind::kReceive) {
      if (first) state.times[id].first = now_;
      if (delivered_.count({rank, op.message}) == 0) return false;
      End(rank, id);
      return true;
    }
    if (!first) return false;
    if (op.kind == ir::OperationKind::kCollective) return Arrive(rank, id);
    state.times[id].first = now_;
    const std::int64_t duration =
        op.kind == ir::OperationKind::kKernel ? KernelTime(rank, op) : SendTime(rank, op);
    state.left[id] = duration * kParts;
    if (duration == 0) {
      End(rank, id);
    } else if (Slowable(op) && state.carry_time == now_) {
      state.left[id] -= state.carry;
    }
    return true;
  }

  std::int64_t KernelTime(int rank, const ir::Operation& op) const {
    const std::int64_t time = costs_.KernelTime(schedule_.kernels[op.work]).value();
    if (rank != slow_rank_) return time;
    return std::llround(static_cast<double>(time) * slow_factor_);
  }

  int PeerOf(int rank, const ir::Operation& op) const {
    const ir::Parallelism& world = schedule_.world;
    const int t = rank % world.tp;
    const int width = ir::LaneWidth(schedule_);
    const int lane = op.peer_lane < 0 ? t / width : op.peer_lane;
    return ir::RankOf(world, op.peer_stage, rank / world.tp % world.dp, lane * width + t % width);
  }

  std::int64_t SendTime(int rank, const ir::Operation& op) const {
    const ir::Transfer& transfer = schedule_.transfers[op.work];
    if (transfer.fixed > Picoseconds(0) || transfer.free()) return transfer.fixed.value();
    const int node = schedule_.gpus_per_node;
    const bool same_node = rank / node == PeerOf(rank, op) / node;
    return UncontendedTime(costs_, costs_.SendCost(transfer.bytes, same_node)).value();
  }

  bool Slowable(const ir::Operation& op) const {
    return op.kind == ir::OperationKind::kKernel &&
           schedule_.kernels[op.work].kind != KernelKind::kFixed;
  }

  bool Arrive(int rank, std::uint32_t id) {
    const ir::Parallelism& world = schedule_.world;
    const ir::Operation& op = ranks_[rank].program->operations[id];
    const int group = schedule_.collectives[op.work].group;
    const auto members = ir::RanksOf(
        schedule_, ir::MembersOf(schedule_, schedule_.groups[group], rank / (world.dp * world.tp),
                                 rank / world.tp % world.dp, rank % world.tp));
    Collective& collective = collectives_[{group, members.front(), ranks_[rank].issue[id]}];
    if (std::count(collective.arrived.begin(), collective.arrived.end(), rank) > 0) return false;
    collective.members = members;
    collective.arrived.push_back(rank);
    collective.operations.push_back(id);
    if (collective.arrived.size() < members.size()) return false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      ranks_[collective.arrived[i]].times[collective.operations[i]].first = now_;
    }
    const TransferCost cost = costs_.CollectiveCost(
        schedule_.collectives[op.work].work, ir::ShapeOf(schedule_, schedule_.groups[group]));
    collective.scope = cost.scope;
    collective.left = UncontendedTime(costs_, cost).value();
    if (collective.left > 0) {
      new_.push_back(&collective);
    } else {
      EndCollective(collective);
    }
    return true;
  }

  // At the end of the instant in which they start.
  void SlowNewCollectives() {
    for (Collective* collective : new_) {
      if (collective->scope == LinkScope::kNvlink && AnyRuns(*collective)) {
        collective->left = std::llround(static_cast<double>(collective->left) * collective_factor_);
      }
      in_flight_.push_back(collective);
    }
    new_.clear();
  }

  bool AnyRuns(const Collective& collective) const {
    return std::any_of(collective.members.begin(), collective.members.end(), [this](int rank) {
      const Rank& state = ranks_[rank];
      if (state.next[0] == state.streams[0].size()) return false;
      const std::uint32_t id = state.streams[0][state.next[0]];
      return Slowable(state.program->operations[id]) && state.times[id].first != kNotYet;
    });
  }

  void OnePicosecond() {
    std::vector<std::int64_t> parts(ranks_.size(), kParts);
    for (const Collective* collective : in_flight_) {
      if (collective->scope == LinkScope::kNone) continue;
      const bool nvlink = collective->scope == LinkScope::kNvlink;
      for (const int rank : collective->members) {
        parts[rank] = std::min(parts[rank], nvlink ? kPartsUnderNvlink : kPartsUnderNic);
      }
    }
    ++now_;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) Advance(rank, parts[rank]);
    std::vector<Collective*> still;
    for (Collective* collective : in_flight_) {
      if (--collective->left > 0) {
        still.push_back(collective);
      } else {
        EndCollective(*collective);
      }
    }
    in_flight_ = still;
  }

  void Advance(int rank, std::int64_t parts) {
    Rank& state = ranks_[rank];
    for (int stream = 0; stream < ir::kStreamCount; ++stream) {
      if (state.next[stream] == state.streams[stream].size()) continue;
      const std::uint32_t id = state.streams[stream][state.next[stream]];
      const ir::Operation& op = state.program->operations[id];
      const bool local =
          op.kind == ir::OperationKind::kKernel || op.kind == ir::OperationKind::kSend;
      if (!local || state.times[id].first == kNotYet) continue;
      state.left[id] -= Slowable(op) ? parts : kParts;
      if (state.left[id] > 0) continue;
      if (Slowable(op)) {
        state.carry = -state.left[id];
        state.carry_time = now_;
      }
      End(rank, id);
    }
  }

  void EndCollective(const Collective& collective) {
    for (std::size_t i = 0; i < collective.arrived.size(); ++i) {
      End(collective.arrived[i], collective.operations[i]);
    }
  }

  void End(int rank, std::uint32_t id) {
    Rank& state = ranks_[rank];
    const ir::Operation& op = state.program->operations[id];
    state.times[id].second = now_;
    ++state.next[static_cast<int>(op.stream)];
    --unfinished_;
    if (op.kind == ir::OperationKind::kSend) delivered_[{PeerOf(rank, op), op.message}] = true;
  }

  const ir::Schedule& schedule_;
  const CostModel& costs_;
  double collective_factor_;
  int slow_rank_;
  double slow_factor_;
  std::vector<Rank> ranks_;
  std::map<Instance, Collective> collectives_;
  std::vector<Collective*> new_, in_flight_;
  std::map<std::pair<int, int>, bool> delivered_;  // by rank and message
  std::int64_t now_ = 0;
  std::size_t unfinished_ = 0;
};

}  // namespace optimus::sim::testing
