// Sends and collectives of the interpreter: wait until all are there, pay the latency, move the
// bytes, go on.

#include <algorithm>
#include <cmath>

#include "sim/interpreter.h"

namespace optimus::sim {

// Counts one more arrival; true for the last one.
bool Interpreter::AllArrived(Meeting& meeting, std::uint32_t instance, std::uint32_t slot) {
  if (meeting.sets.members() == 1) return true;
  std::uint32_t& arrived = meeting.arrived[instance * meeting.slots + slot];
  if (++arrived < static_cast<std::uint32_t>(meeting.sets.members())) return false;
  arrived = 0;
  return true;
}

void Interpreter::ArriveAtCollective(std::uint32_t entity, const Step& step) {
  const CollectiveStep& collective = programs_[entities_[entity].program].collectives[step.target];
  Meeting& meeting = meetings_[collective.group];
  const std::uint32_t instance = meeting.sets.InstanceOf(entity);
  if (!AllArrived(meeting, instance, collective.slot)) return;
  const TransferPrice& price = pricing_.collectives[collective.collective];
  Transfer transfer;
  transfer.set = collective.group;
  transfer.collective = collective.collective;
  transfer.role = step.role;
  transfer.instance = instance;
  transfer.slot = collective.slot;
  if (pricing_.UsesFlow(price)) {
    transfer.route = meeting.routes[price.scope == LinkScope::kNic ? 1 : 0][instance];
  }
  Launch(transfer, price);
}

void Interpreter::ArriveAtSend(std::uint32_t entity, unsigned stream, const Step& step) {
  const std::uint32_t program = entities_[entity].program;
  Meeting& meeting = meetings_.back();
  const std::uint32_t port = meeting.sets.InstanceOf(entity);
  if (!AllArrived(meeting, port, stream)) return;
  const SendStep& send = programs_[program].sends[step.target];
  const SendPath& path = send_paths_[program][send.peer_program][PlaceInProgram(port)];
  Transfer transfer;
  transfer.set = static_cast<std::int32_t>(meetings_.size() - 1);
  transfer.instance = port;
  transfer.slot = stream;
  transfer.program = static_cast<std::int32_t>(program);
  transfer.send = step.target;
  transfer.route = path.route;
  Launch(transfer, path.same_node ? pricing_.sends_in_node[send.transfer]
                                  : pricing_.sends_between_nodes[send.transfer]);
}

void Interpreter::Launch(const Transfer& transfer, const TransferPrice& price) {
  if (!recordings_.empty()) {
    for (const std::uint32_t member : meetings_[transfer.set].sets.Members(transfer.instance)) {
      const Entity& entity = entities_[member];
      if (entity.recorded) RecordStart(entity, StreamOfMember(transfer, member), now_);
    }
  }
  if (free_transfers_.empty()) {
    free_transfers_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t id = free_transfers_.back();
  free_transfers_.pop_back();
  transfers_[id] = transfer;
  if (transfer.role != OverlapRole::kNone) {
    for (const std::uint32_t member : meetings_[transfer.set].sets.Members(transfer.instance)) {
      ChangeLoad(member, transfer.role, +1);
    }
    if (transfer.role == OverlapRole::kNvlink &&
        pricing_.interference.collective_under_kernel != 1) {
      queue_.Push(now_, TimedEvent(EventKind::kCollectiveStart, id, 0, 0));
      return;
    }
  }
  MoveBytes(id, price);
}

void Interpreter::MoveBytes(std::uint32_t id, const TransferPrice& price) {
  transfers_[id].bytes = price.wire_bytes;
  if (pricing_.UsesFlow(price)) {
    queue_.Push(now_ + price.latency, TimedEvent(EventKind::kFlowStart, id, 0, 0));
  } else {
    queue_.Push(now_ + price.alone, TimedEvent(EventKind::kTransferEnd, id, 0, 0));
  }
}

void Interpreter::StartFlow(std::uint32_t id) {
  const Transfer& transfer = transfers_[id];
  const auto end = network_.Start(id, transfer.route, Bytes(transfer.bytes), now_);
  if (end.has_value()) {
    queue_.Push(end->time, TimedEvent(EventKind::kFlowEnd, id, 0, end->generation));
  }
}

void Interpreter::OnSharedFlowEnd(std::uint32_t id) {
  // A communication may end a fraction of a picosecond before an event that is already done.
  now_ = std::max(now_, FromSeconds(simgrid::s4u::Engine::get_clock()).value());
  if (IsTooLate()) return;
  EndTransfer(id);
  ArmAlarm();
}

void Interpreter::EndTransfer(std::uint32_t id) {
  const Transfer transfer = transfers_[id];
  free_transfers_.push_back(id);
  for (const std::uint32_t member : meetings_[transfer.set].sets.Members(transfer.instance)) {
    if (transfer.role != OverlapRole::kNone) ChangeLoad(member, transfer.role, -1);
    Complete(member, StreamOfMember(transfer, member));
    if (transfer.send >= 0) Deliver(member, programs_[transfer.program].sends[transfer.send]);
  }
}

// Rank (stage, d, t) sends to (peer stage, d, t), or to the like rank of another lane.
void Interpreter::Deliver(std::uint32_t sender, const SendStep& send) {
  if (send.receive < 0) return;
  const std::uint32_t entity = layout_.PeerOf(sender, send.peer_stage, send.peer_lane);
  received_[entity * receive_words_ + send.receive / 64] |= std::uint64_t{1} << (send.receive % 64);
  const ReceiveStep& receive = programs_[send.peer_program].receives[send.receive];
  if (entities_[entity].done[receive.stream] == receive.position) {
    Advance(entity, 1U << receive.stream);
  }
}

unsigned Interpreter::StreamOfMember(const Transfer& transfer, std::uint32_t entity) const {
  if (transfer.send >= 0 || !meetings_[transfer.set].by_issue) return transfer.slot;
  return programs_[entities_[entity].program].slot_stream[transfer.set][transfer.slot];
}

}  // namespace optimus::sim
