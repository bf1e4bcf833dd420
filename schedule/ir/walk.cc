#include "schedule/ir/walk.h"

#include <algorithm>
#include <utility>

#include "schedule/ir/group_members.h"

namespace optimus::ir {

Walk::Walk(const Schedule& schedule) : schedule_(schedule), programs_(schedule.programs.size()) {
  for (const Group& group : schedule.groups) rendezvous_.push_back(MakeRendezvous(group));
  for (std::size_t p = 0; p < programs_.size(); ++p) IndexProgram(static_cast<std::int32_t>(p));
  for (Rendezvous& rendezvous : rendezvous_) {
    for (Instance& instance : rendezvous.instances) {
      std::size_t most = 0;
      for (const std::int32_t p : instance.programs) {
        most = std::max(most, rendezvous.issued[p].size());
      }
      instance.arrived.resize(most, 0);
    }
  }
}

Walk::Rendezvous Walk::MakeRendezvous(const Group& group) const {
  Rendezvous rendezvous;
  if (!ir::SpansPrograms(schedule_, group)) return rendezvous;
  rendezvous.issued.resize(programs_.size());
  rendezvous.instance_of.resize(programs_.size());
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    std::vector<std::int32_t> members =
        ProgramsOf(schedule_, MembersOf(schedule_, group, schedule_.programs[p]));
    const auto first = static_cast<std::size_t>(members.front());
    if (first < p) {
      rendezvous.instance_of[p] = rendezvous.instance_of[first];
      continue;
    }
    rendezvous.instance_of[p] = rendezvous.instances.size();
    rendezvous.instances.push_back({std::move(members), {}});
  }
  return rendezvous;
}

void Walk::IndexProgram(std::int32_t program) {
  const std::vector<Operation>& operations = schedule_.programs[program].operations;
  ProgramState& state = programs_[program];
  state.ended.resize(operations.size(), 0);
  remaining_ += operations.size();
  std::array<std::size_t, kStreamCount> counts{};
  for (const Operation& op : operations) ++counts[static_cast<std::size_t>(op.stream)];
  for (std::size_t s = 0; s < kStreamCount; ++s) state.streams[s].operations.reserve(counts[s]);
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    const Operation& op = operations[id];
    state.streams[static_cast<std::size_t>(op.stream)].operations.push_back(id);
    if (SpansPrograms(op)) {
      rendezvous_[schedule_.collectives[op.work].group].issued[program].push_back(id);
    }
  }
}

bool Walk::SpansPrograms(const Operation& operation) const {
  return operation.kind == OperationKind::kCollective &&
         !rendezvous_[schedule_.collectives[operation.work].group].instances.empty();
}

void Walk::Run(Visit visit) {
  for (std::size_t p = programs_.size(); p > 0; --p) Enqueue(static_cast<std::int32_t>(p - 1));
  while (!queue_.empty()) {
    const std::int32_t program = queue_.back();
    queue_.pop_back();
    programs_[program].queued = false;
    Advance(program, visit);
  }
}

void Walk::Enqueue(std::int32_t program) {
  if (programs_[program].queued) return;
  programs_[program].queued = true;
  queue_.push_back(program);
}

void Walk::Advance(std::int32_t program, Visit visit) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (StreamState& stream : programs_[program].streams) {
      while (TryHead(program, stream, visit)) progress = true;
    }
  }
}

bool Walk::TryHead(std::int32_t program, StreamState& stream, Visit visit) {
  if (stream.arrived || stream.next == stream.operations.size()) return false;
  const OperationRef ref{program, stream.operations[stream.next]};
  const Operation& op = schedule_.programs[program].operations[ref.operation];
  if (!DependenciesMet(program, op, stream)) return false;
  if (op.kind == OperationKind::kReceive && !Sent(op.message)) return false;
  if (SpansPrograms(op)) return TryRendezvous(ref, stream, visit);
  visit(absl::MakeConstSpan(&ref, 1));
  End(ref);
  if (op.kind == OperationKind::kSend) {
    sent_.insert(op.message);
    Enqueue(PeerProgram(schedule_, schedule_.programs[program], op));
  }
  return true;
}

bool Walk::DependenciesMet(std::int32_t program, const Operation& operation, StreamState& stream) {
  const auto dependencies = schedule_.programs[program].DependenciesOf(operation);
  const std::vector<std::uint8_t>& ended = programs_[program].ended;
  while (stream.dependencies_met < dependencies.size()) {
    if (ended[dependencies[stream.dependencies_met]] == 0) return false;
    ++stream.dependencies_met;
  }
  return true;
}

// The last member to come runs the collective for all.
bool Walk::TryRendezvous(OperationRef ref, StreamState& stream, Visit visit) {
  const Operation& op = schedule_.programs[ref.program].operations[ref.operation];
  Rendezvous& rendezvous = rendezvous_[schedule_.collectives[op.work].group];
  const std::size_t index = IssueIndex(ref);
  stream.arrived = true;
  Instance& instance = rendezvous.instances[rendezvous.instance_of[ref.program]];
  if (++instance.arrived[index] < static_cast<std::int32_t>(instance.programs.size())) return false;
  std::vector<OperationRef> members;
  members.reserve(instance.programs.size());
  for (const std::int32_t p : instance.programs) {
    members.push_back({p, rendezvous.issued[p][index]});
  }
  visit(members);
  for (const OperationRef member : members) {
    End(member);
    if (member.program != ref.program) Enqueue(member.program);
  }
  return true;
}

void Walk::End(OperationRef ref) {
  ProgramState& state = programs_[ref.program];
  const Operation& op = schedule_.programs[ref.program].operations[ref.operation];
  StreamState& stream = state.streams[static_cast<std::size_t>(op.stream)];
  state.ended[ref.operation] = 1;
  ++stream.next;
  stream.dependencies_met = 0;
  stream.arrived = false;
  --remaining_;
}

std::optional<std::uint32_t> Walk::Head(std::int32_t program, Stream stream) const {
  const StreamState& state = programs_[program].streams[static_cast<std::size_t>(stream)];
  if (state.next == state.operations.size()) return std::nullopt;
  return state.operations[state.next];
}

bool Walk::HasArrived(OperationRef ref) const {
  const Operation& op = schedule_.programs[ref.program].operations[ref.operation];
  return Head(ref.program, op.stream) == ref.operation &&
         programs_[ref.program].streams[static_cast<std::size_t>(op.stream)].arrived;
}

std::size_t Walk::IssueIndex(OperationRef ref) const {
  const Operation& op = schedule_.programs[ref.program].operations[ref.operation];
  const auto& issued = Issued(schedule_.collectives[op.work].group, ref.program);
  const auto place = std::lower_bound(issued.begin(), issued.end(), ref.operation);
  return static_cast<std::size_t>(place - issued.begin());
}

}  // namespace optimus::ir
