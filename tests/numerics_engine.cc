#include "tests/numerics_engine.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/group_members.h"

namespace optimus::testing {
namespace {

using ir::OperationKind;

std::size_t Index(ir::Stream stream) { return static_cast<std::size_t>(stream); }

// What every member gets.
std::vector<std::vector<float>> Combine(CollectiveKind kind,
                                        const std::vector<std::vector<float>>& inputs) {
  const std::size_t members = inputs.size();
  if (kind == CollectiveKind::kAllGather) {
    std::vector<float> all;
    for (const auto& input : inputs) all.insert(all.end(), input.begin(), input.end());
    return std::vector<std::vector<float>>(members, all);
  }
  std::vector<float> sum(inputs.front().size(), 0.0F);
  for (const auto& input : inputs) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  if (kind == CollectiveKind::kAllReduce) return std::vector<std::vector<float>>(members, sum);
  std::vector<std::vector<float>> parts;
  const auto part = static_cast<std::ptrdiff_t>(sum.size() / members);
  for (std::size_t i = 0; i < members; ++i) {
    const auto begin = sum.begin() + static_cast<std::ptrdiff_t>(i) * part;
    parts.emplace_back(begin, begin + part);
  }
  return parts;
}

}  // namespace

void NumericsEngine::Reset() {
  ranks_.assign(schedule_.world.gpus(), {});
  meetings_.clear();
  meeting_of_.clear();
  messages_.clear();
  payloads_.clear();
  const ir::Parallelism& world = schedule_.world;
  for (int rank = 0; rank < world.gpus(); ++rank) {
    RankState& state = ranks_[rank];
    state.t = rank % world.tp;
    state.d = rank / world.tp % world.dp;
    state.stage = rank / world.tp / world.dp;
    state.program =
        &schedule_
             .programs[ir::ProgramIndex(schedule_, state.stage, ir::LaneOf(schedule_, state.t))];
    const auto& operations = state.program->operations;
    state.started.assign(operations.size(), 0);
    state.ended.assign(operations.size(), 0);
    state.start_time.assign(operations.size(), std::numeric_limits<int>::max());
    state.end_time = state.start_time;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      state.streams[Index(operations[id].stream)].push_back(id);
    }
  }
}

std::vector<std::int32_t> NumericsEngine::MembersOf(int rank, const ir::Operation& op) const {
  const RankState& state = ranks_[rank];
  const ir::Group& group = schedule_.groups[schedule_.collectives[op.work].group];
  return ir::RanksOf(schedule_, ir::MembersOf(schedule_, group, state.stage, state.d, state.t));
}

// Rank i of a lane talks to rank i of the peer's lane.
NumericsEngine::Address NumericsEngine::AddressOf(int rank, const ir::Operation& op) const {
  if (op.kind == OperationKind::kReceive) return {rank, op.message};
  const RankState& state = ranks_[rank];
  const int width = ir::LaneWidth(schedule_);
  const int lane = op.peer_lane < 0 ? state.program->lane : op.peer_lane;
  return {ir::RankOf(schedule_.world, op.peer_stage, state.d, lane * width + state.t % width),
          op.message};
}

bool NumericsEngine::MayStart(int rank, std::uint32_t id) const {
  const RankState& state = ranks_[rank];
  if (state.started[id] != 0) return false;
  const auto dependencies = state.program->DependenciesOf(At(rank, id));
  return std::all_of(dependencies.begin(), dependencies.end(),
                     [&](std::uint32_t before) { return state.ended[before] != 0; });
}

bool NumericsEngine::MayEnd(int rank, std::uint32_t id) const {
  if (ranks_[rank].started[id] == 0) return false;
  const ir::Operation& op = At(rank, id);
  if (op.kind == OperationKind::kReceive) {
    const auto found = messages_.find(AddressOf(rank, op));
    return found != messages_.end() && found->second.arrived;
  }
  if (op.kind != OperationKind::kCollective) return true;
  const Meeting& meeting = meeting_of_.at({rank, id});
  return meetings_.at(meeting).size() == MembersOf(rank, op).size();
}

absl::Status NumericsEngine::StartOperation(int rank, std::uint32_t id) {
  RankState& state = ranks_[rank];
  const ir::Operation& op = At(rank, id);
  state.started[id] = 1;
  state.start_time[id] = time_;
  if (op.kind == OperationKind::kKernel) {
    OPTIMUS_ASSIGN_OR_RETURN(const auto kernel, workloads_[rank]->Kernel(id));
    OPTIMUS_RETURN_IF_ERROR(kernel());
    return EndOperation(rank, id);
  }
  OPTIMUS_ASSIGN_OR_RETURN(executor::Payload payload, workloads_[rank]->Data(id));
  std::vector<float> input;
  if (payload.input) {
    const absl::Span<const float> span = payload.input();
    input.assign(span.begin(), span.end());
  }
  if (op.kind == OperationKind::kSend) messages_[AddressOf(rank, op)].data = input;
  if (op.kind == OperationKind::kCollective) {
    const std::int32_t group = schedule_.collectives[op.work].group;
    const Meeting meeting = {group, MembersOf(rank, op).front(), state.issued[group]++};
    meeting_of_[{rank, id}] = meeting;
    meetings_[meeting].push_back({rank, id, payload, std::move(input)});
  }
  payloads_[{rank, id}] = std::move(payload);
  return absl::OkStatus();
}

absl::Status NumericsEngine::EndCollective(const Meeting& meeting) {
  std::vector<Member>& members = meetings_[meeting];
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.rank < b.rank; });
  std::vector<std::vector<float>> inputs;
  inputs.reserve(members.size());
  for (const Member& member : members) inputs.push_back(member.input);
  const ir::Operation& op = At(members.front().rank, members.front().operation);
  for (const auto& input : inputs) {
    if (input.size() == inputs.front().size()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the members of ", schedule_.collectives[op.work].work.name,
                     " bring different amounts: their collectives are not the same"));
  }
  const auto outputs = Combine(schedule_.collectives[op.work].work.kind, inputs);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const absl::Span<float> out = members[i].payload.output();
    std::copy_n(outputs[i].begin(), std::min(out.size(), outputs[i].size()), out.begin());
    members[i].payload.done();
    RankState& state = ranks_[members[i].rank];
    state.ended[members[i].operation] = 1;
    state.end_time[members[i].operation] = time_;
    ++state.next[Index(At(members[i].rank, members[i].operation).stream)];
  }
  return absl::OkStatus();
}

absl::Status NumericsEngine::EndOperation(int rank, std::uint32_t id) {
  const ir::Operation& op = At(rank, id);
  if (op.kind == OperationKind::kCollective) {
    return EndCollective(meeting_of_.at({rank, id}));
  }
  if (op.kind == OperationKind::kReceive) {
    const std::vector<float>& data = messages_[AddressOf(rank, op)].data;
    const absl::Span<float> out = payloads_[{rank, id}].output();
    if (out.size() != data.size()) {
      return absl::FailedPreconditionError(absl::StrCat("rank ", rank, " operation ", id,
                                                        " receives ", data.size(), " numbers for ",
                                                        out.size()));
    }
    std::copy(data.begin(), data.end(), out.begin());
  }
  if (op.kind == OperationKind::kSend) messages_[AddressOf(rank, op)].arrived = true;
  if (op.kind != OperationKind::kKernel) payloads_[{rank, id}].done();
  ranks_[rank].ended[id] = 1;
  ranks_[rank].end_time[id] = time_;
  ++ranks_[rank].next[Index(op.stream)];
  return absl::OkStatus();
}

absl::Status NumericsEngine::Step(int step) {
  Reset();
  for (executor::Workload* workload : workloads_) OPTIMUS_RETURN_IF_ERROR(workload->Begin(step));
  while (true) {
    std::vector<std::pair<int, std::uint32_t>> ready, put_off;
    bool left = false;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      const RankState& state = ranks_[rank];
      for (std::size_t s = 0; s < ir::kStreamCount; ++s) {
        if (state.next[s] == state.streams[s].size()) continue;
        left = true;
        const std::uint32_t id = state.streams[s][state.next[s]];
        if (!MayStart(rank, id) && !MayEnd(rank, id)) continue;
        (put_off_ && put_off_(rank, id) ? put_off : ready).emplace_back(rank, id);
      }
    }
    if (!left) return absl::OkStatus();
    if (ready.empty()) ready = std::move(put_off);
    if (ready.empty()) return absl::FailedPreconditionError("nothing can run any more");
    const auto [rank, id] = ready[random_() % ready.size()];
    ++time_;
    OPTIMUS_RETURN_IF_ERROR(MayEnd(rank, id) ? EndOperation(rank, id) : StartOperation(rank, id));
  }
}

}  // namespace optimus::testing
