// Every message has one send and one receive, and both say the same of it.

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

struct Ends {
  OperationRef send, receive;  // program -1: not there
};

// Messages in the order in which the programs name them first, so that errors do not depend on
// hashing.
struct Messages {
  absl::flat_hash_map<std::int32_t, std::size_t> index;
  std::vector<Ends> ends;
};

const Operation& At(const Schedule& schedule, OperationRef ref) {
  return schedule.programs[ref.program].operations[ref.operation];
}

std::string NamePeer(const Schedule& schedule, OperationRef end) {
  return NameProgram(schedule,
                     PeerProgram(schedule, schedule.programs[end.program], At(schedule, end)));
}

absl::Status AddEnd(const Schedule& schedule, OperationRef ref, Messages& messages) {
  const Operation& op = At(schedule, ref);
  const auto [entry, added] = messages.index.try_emplace(op.message, messages.ends.size());
  if (added) messages.ends.emplace_back();
  Ends& ends = messages.ends[entry->second];
  const bool send = op.kind == OperationKind::kSend;
  OperationRef& mine = send ? ends.send : ends.receive;
  if (mine.program < 0) {
    mine = ref;
    return absl::OkStatus();
  }
  return OperationError(schedule, ref, "message",
                        absl::StrCat("message ", op.message, " is ", send ? "sent" : "received",
                                     " twice, first by ", NameOperation(schedule, mine)),
                        "a message id names one send and one receive");
}

absl::StatusOr<Messages> CollectMessages(const Schedule& schedule) {
  Messages messages;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const std::vector<Operation>& operations = schedule.programs[p].operations;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      const OperationKind kind = operations[id].kind;
      if (kind != OperationKind::kSend && kind != OperationKind::kReceive) continue;
      OPTIMUS_RETURN_IF_ERROR(AddEnd(schedule, {static_cast<std::int32_t>(p), id}, messages));
    }
  }
  return messages;
}

// Where `end` looks for the other side of its message, against where that is.
absl::Status CheckPeer(const Schedule& schedule, OperationRef end, OperationRef other) {
  const Operation& op = At(schedule, end);
  const std::int32_t named = PeerProgram(schedule, schedule.programs[end.program], op);
  if (named == other.program) return absl::OkStatus();
  const bool send = op.kind == OperationKind::kSend;
  const bool other_stage = named / schedule.lanes != other.program / schedule.lanes;
  return OperationError(
      schedule, end, other_stage ? "peer_stage" : "peer_lane",
      absl::StrCat("message ", op.message, " is ", send ? "received" : "sent", " by ",
                   NameOperation(schedule, other)),
      absl::StrCat(send ? "send to" : "receive from", " the ", other_stage ? "stage" : "lane",
                   " that ", send ? "receives" : "sends"));
}

absl::Status CheckPair(const Schedule& schedule, const Ends& ends) {
  OPTIMUS_RETURN_IF_ERROR(CheckPeer(schedule, ends.send, ends.receive));
  OPTIMUS_RETURN_IF_ERROR(CheckPeer(schedule, ends.receive, ends.send));
  const Operation& send = At(schedule, ends.send);
  const Operation& receive = At(schedule, ends.receive);
  const Transfer& sent = schedule.transfers[send.work];
  const Transfer& expected = schedule.transfers[receive.work];
  if (sent.bytes == expected.bytes && sent.fixed == expected.fixed) return absl::OkStatus();
  return OperationError(
      schedule, ends.receive, "work",
      absl::StrCat("expects ", expected.bytes.value(), " bytes (fixed ", expected.fixed.value(),
                   " ps) but ", NameOperation(schedule, ends.send), " sends ", sent.bytes.value(),
                   " bytes (fixed ", sent.fixed.value(), " ps) as message ", send.message),
      "both ends of a message use one transfer");
}

}  // namespace

absl::Status CheckMessages(const Schedule& schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(const Messages messages, CollectMessages(schedule));
  for (const Ends& ends : messages.ends) {
    if (ends.receive.program < 0) {
      return OperationError(
          schedule, ends.send, "message",
          absl::StrCat("message ", At(schedule, ends.send).message, " is never received"),
          absl::StrCat(NamePeer(schedule, ends.send), " needs a receive for it"));
    }
    if (ends.send.program < 0) {
      return OperationError(
          schedule, ends.receive, "message",
          absl::StrCat("message ", At(schedule, ends.receive).message, " is never sent"),
          absl::StrCat(NamePeer(schedule, ends.receive), " needs a send for it"));
    }
    OPTIMUS_RETURN_IF_ERROR(CheckPair(schedule, ends));
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
