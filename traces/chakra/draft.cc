#include "traces/chakra/draft.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::Node;
namespace schema = ::optimus::chakra;

constexpr std::size_t kMostNodes = std::size_t{1} << 30;
constexpr std::size_t kMostParents = std::size_t{1} << 31;

CommunicationKind KindOf(std::int64_t comm_type) {
  switch (comm_type) {
    case schema::ALL_REDUCE:
      return CommunicationKind::kAllReduce;
    case schema::REDUCE:
      return CommunicationKind::kReduce;
    case schema::ALL_GATHER:
      return CommunicationKind::kAllGather;
    case schema::GATHER:
      return CommunicationKind::kGather;
    case schema::SCATTER:
      return CommunicationKind::kScatter;
    case schema::BROADCAST:
      return CommunicationKind::kBroadcast;
    case schema::ALL_TO_ALL:
      return CommunicationKind::kAllToAll;
    case schema::REDUCE_SCATTER:
    case schema::REDUCE_SCATTER_BLOCK:
      return CommunicationKind::kReduceScatter;
    case schema::BARRIER:
      return CommunicationKind::kBarrier;
    default:
      return CommunicationKind::kUnknown;
  }
}

absl::Status NodeError(const Node& node, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("node ", node.id(), ": ", what));
}

bool IsCommunication(const Node& node) {
  return node.type() == schema::COMM_SEND_NODE || node.type() == schema::COMM_RECV_NODE ||
         node.type() == schema::COMM_COLL_NODE;
}

OpKind OpKindOf(const Node& node, const NodeFacts& facts) {
  if (facts.is_cpu_op) return OpKind::kHost;
  if (IsCommunication(node)) return OpKind::kCommunication;
  const bool moves = node.type() == schema::MEM_LOAD_NODE || node.type() == schema::MEM_STORE_NODE;
  return moves ? OpKind::kCopy : OpKind::kCompute;
}

LaneClass UnnumberedLane(const Node& node) {
  switch (node.type()) {
    case schema::MEM_LOAD_NODE:
    case schema::MEM_STORE_NODE:
      return LaneClass::kCopy;
    case schema::COMM_SEND_NODE:
      return LaneClass::kSend;
    case schema::COMM_RECV_NODE:
      return LaneClass::kReceive;
    case schema::COMM_COLL_NODE:
      return LaneClass::kCommunication;
    default:
      return LaneClass::kCompute;
  }
}

void ChooseLane(const Node& node, const NodeFacts& facts, DraftOp& op) {
  if (op.kind == OpKind::kHost) {
    op.lane = facts.tid.has_value() ? LaneClass::kThread : LaneClass::kHost;
    op.lane_id = facts.tid.value_or(0);
  } else if (facts.stream.has_value() || facts.tid.has_value()) {
    op.lane = LaneClass::kStream;
    op.lane_id = facts.stream.has_value() ? *facts.stream : *facts.tid;
  } else {
    op.lane = UnnumberedLane(node);
  }
}

}  // namespace

DraftBuilder::DraftBuilder(Draft& draft, RecordingTables& tables, std::int32_t rank)
    : draft_(draft), tables_(tables), rank_(rank) {}

void DraftBuilder::Note(const char* what, const char* effect, const Node& node) {
  tables_.Note(
      {.what = what, .effect = effect, .rank = rank_, .name = node.name(), .time = Picoseconds(0)});
}

absl::Status DraftBuilder::AddId(std::uint64_t id, std::uint32_t index) {
  if (draft_.index.try_emplace(id, index).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("node ", id, ": a second node of this id"));
}

absl::Status DraftBuilder::AddParents(const Node& node, std::vector<Parents>& to) {
  const std::size_t count = static_cast<std::size_t>(node.data_deps_size()) +
                            static_cast<std::size_t>(node.ctrl_deps_size());
  if (draft_.parents.size() + count > kMostParents || to.size() >= kMostNodes) {
    return NodeError(node, "too many nodes or dependencies in one file");
  }
  to.push_back({.first = static_cast<std::uint32_t>(draft_.parents.size()),
                .data = static_cast<std::uint32_t>(node.data_deps_size()),
                .control = static_cast<std::uint32_t>(node.ctrl_deps_size())});
  draft_.parents.insert(draft_.parents.end(), node.data_deps().begin(), node.data_deps().end());
  draft_.parents.insert(draft_.parents.end(), node.ctrl_deps().begin(), node.ctrl_deps().end());
  return absl::OkStatus();
}

Communication DraftBuilder::Collective(const Node& node, const NodeFacts& facts) {
  Communication communication;
  if (facts.comm_type.has_value()) communication.kind = KindOf(*facts.comm_type);
  if (communication.kind == CommunicationKind::kUnknown) {
    Note(facts.comm_type.has_value() ? "collective of a comm_type that the schema does not have"
                                     : "collective without comm_type",
         "its kind is not known (and it is not taken for an all-reduce)", node);
  }
  if (facts.comm_size.has_value()) {
    communication.bytes = Bytes(*facts.comm_size);
  } else if (communication.kind != CommunicationKind::kBarrier) {
    Note("communication without comm_size", "its size is not known", node);
  }
  return communication;
}

absl::StatusOr<Communication> DraftBuilder::Message(const Node& node, const NodeFacts& facts) {
  const bool sends = node.type() == schema::COMM_SEND_NODE;
  const std::optional<std::int64_t>& own = sends ? facts.comm_src : facts.comm_dst;
  const std::optional<std::int64_t>& peer = sends ? facts.comm_dst : facts.comm_src;
  if (own.has_value() && *own != rank_) {
    return NodeError(
        node, absl::StrCat(sends ? "comm_src " : "comm_dst ", *own, " in the file of rank ", rank_,
                           "; hint: the rank is the number in the file's name"));
  }
  Communication communication;
  communication.kind = sends ? CommunicationKind::kSend : CommunicationKind::kReceive;
  communication.peer = static_cast<std::int32_t>(peer.value_or(-1));
  communication.tag = facts.comm_tag.value_or(-1);
  if (!peer.has_value()) Note("message without the other side's rank", "cannot be paired", node);
  if (facts.comm_size.has_value()) {
    communication.bytes = Bytes(*facts.comm_size);
  } else {
    Note("communication without comm_size", "its size is not known", node);
  }
  return communication;
}

absl::Status DraftBuilder::AddCommunication(const Node& node, const NodeFacts& facts, DraftOp& op) {
  DraftCommunication draft;
  if (node.type() == schema::COMM_COLL_NODE) {
    draft.communication = Collective(node, facts);
    draft.has_group = true;
  } else {
    OPTIMUS_ASSIGN_OR_RETURN(draft.communication, Message(node, facts));
    draft.has_group = facts.pg_name.has_value();
  }
  draft.group = facts.pg_name.value_or("");
  op.communication = static_cast<std::int32_t>(draft_.communications.size());
  draft_.communications.push_back(std::move(draft));
  return absl::OkStatus();
}

absl::Status DraftBuilder::AddOp(const Node& node) {
  OPTIMUS_ASSIGN_OR_RETURN(const NodeFacts facts, ReadFacts(node));
  DraftOp op;
  op.id = node.id();
  op.start_us = node.start_time_micros();
  op.duration_us = node.duration_micros();
  op.start_ps = facts.start_ps.value_or(-1);
  op.duration_ps = facts.duration_ps.value_or(-1);
  op.name = tables_.Name(node.name());
  op.kind = OpKindOf(node, facts);
  ChooseLane(node, facts, op);
  if (op.kind == OpKind::kCommunication) {
    OPTIMUS_RETURN_IF_ERROR(AddCommunication(node, facts, op));
  } else if (facts.is_cpu_op && IsCommunication(node)) {
    Note("communication node that is marked as a CPU operation",
         "taken for the call that issues it", node);
  }
  if (op.kind != OpKind::kCommunication &&
      (facts.num_ops.value_or(0) > 0 || facts.tensor_size.value_or(0) > 0)) {
    op.work = static_cast<std::int32_t>(draft_.works.size());
    draft_.works.push_back(
        {.flops = facts.num_ops.value_or(0), .bytes = Bytes(facts.tensor_size.value_or(0))});
  }
  OPTIMUS_RETURN_IF_ERROR(AddId(node.id(), static_cast<std::uint32_t>(draft_.ops.size())));
  OPTIMUS_RETURN_IF_ERROR(AddParents(node, draft_.op_parents));
  draft_.ops.push_back(op);
  return absl::OkStatus();
}

absl::Status DraftBuilder::Add(const Node& node) {
  if (!schema::NodeType_IsValid(node.type())) {
    return NodeError(node, absl::StrCat("type ", static_cast<int>(node.type()),
                                        ", which Chakra's schema 0.0.4 and 1.0.0 does not have"));
  }
  if (node.type() != schema::METADATA_NODE && node.type() != schema::INVALID_NODE) {
    return AddOp(node);
  }
  if (absl::StrContains(node.inputs().values(), "pg_name") &&
      !AddProcessGroups(node.inputs().values(), draft_.groups)) {
    Note("process groups of a metadata node that cannot be read", "left out", node);
  }
  OPTIMUS_RETURN_IF_ERROR(AddId(
      node.id(), Draft::kSkipped | static_cast<std::uint32_t>(draft_.skipped_parents.size())));
  return AddParents(node, draft_.skipped_parents);
}

}  // namespace optimus::traces::chakra
