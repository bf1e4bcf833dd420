#include "traces/chakra/node_writer.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "traces/chakra/groups.h"
#include "traces/chakra/own_attributes.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::Node;
namespace schema = ::optimus::chakra;

constexpr std::int64_t kPicosPerMicro = 1'000'000;

// -1: the schema has none.
std::int64_t CommTypeOf(CommunicationKind kind) {
  switch (kind) {
    case CommunicationKind::kAllReduce:
      return schema::ALL_REDUCE;
    case CommunicationKind::kAllGather:
      return schema::ALL_GATHER;
    case CommunicationKind::kReduceScatter:
      return schema::REDUCE_SCATTER;
    case CommunicationKind::kBroadcast:
      return schema::BROADCAST;
    case CommunicationKind::kReduce:
      return schema::REDUCE;
    case CommunicationKind::kGather:
      return schema::GATHER;
    case CommunicationKind::kScatter:
      return schema::SCATTER;
    case CommunicationKind::kAllToAll:
      return schema::ALL_TO_ALL;
    case CommunicationKind::kBarrier:
      return schema::BARRIER;
    default:
      return -1;
  }
}

// What a reader takes for what it is. The rest takes its time, and nobody guesses.
bool IsReadable(const Communication& communication) {
  if (IsPointToPoint(communication.kind)) return HasMessageTag(communication);
  return CommTypeOf(communication.kind) >= 0 && communication.group >= 0;
}

schema::NodeType TypeOf(const RecordedRank& rank, const RecordedOp& op, const std::string& name) {
  if (op.kind == OpKind::kCopy && op.work >= 0 &&
      rank.works[static_cast<std::size_t>(op.work)].bytes > Bytes(0)) {
    return absl::StrContains(name, "DtoH") ? schema::MEM_STORE_NODE : schema::MEM_LOAD_NODE;
  }
  const Communication* communication = rank.CommunicationOf(op);
  if (communication == nullptr || !IsReadable(*communication)) return schema::COMP_NODE;
  if (communication->kind == CommunicationKind::kSend) return schema::COMM_SEND_NODE;
  if (communication->kind == CommunicationKind::kReceive) return schema::COMM_RECV_NODE;
  return schema::COMM_COLL_NODE;
}

std::uint64_t NearestMicros(Picoseconds time) {
  const std::int64_t whole = time.value() / kPicosPerMicro;
  const bool up = time.value() % kPicosPerMicro >= kPicosPerMicro / 2;
  return static_cast<std::uint64_t>(whole + (up ? 1 : 0));
}

// Whether the indices of `field` are not those that counting them up would give, and could not be
// read back from a list of their own either: something of the table is used by no operation.
bool HasGaps(const RecordedRank& rank, std::int32_t RecordedOp::*field) {
  std::int64_t used = 0, size = 0;
  for (const RecordedOp& op : rank.ops) {
    if (op.*field < 0) continue;
    ++used;
    size = std::max<std::int64_t>(size, op.*field + std::int64_t{1});
  }
  return size > used;
}

}  // namespace

bool IsWorldGroup(const Recording& recording, const CommunicatorGroup& group) {
  if (group.ranks.empty()) {
    return group.role == "world" || IsWorldName(group.name) ||
           (recording.world > 0 && group.size == recording.world);
  }
  return recording.world > 0 && group.ranks.size() == static_cast<std::size_t>(recording.world) &&
         group.ranks.front() == 0 && group.ranks.back() == recording.world - 1;
}

NodeWriter::NodeWriter(const Recording& recording, const RecordedRank& rank,
                       const std::vector<std::int32_t>& tags)
    : recording_(recording),
      rank_(rank),
      tags_(tags),
      last_of_lane_(rank.lanes.size(), -1),
      seen_(rank.ops.size(), 0) {
  NumberLanes();
  FindGaps();
}

void NodeWriter::NumberLanes() {
  lane_numbers_.reserve(rank_.lanes.size());
  absl::flat_hash_map<std::pair<LaneKind, std::int64_t>, int> uses;
  for (const Lane& lane : rank_.lanes) ++uses[{lane.kind, lane.id}];
  for (std::size_t i = 0; i < rank_.lanes.size(); ++i) {
    const Lane& lane = rank_.lanes[i];
    const bool own = uses[{lane.kind, lane.id}] == 1;
    lane_numbers_.push_back(own ? lane.id : static_cast<std::int64_t>(i));
  }
  // A number of a lane without one of its own may be another's own: then all count by place.
  std::vector<std::pair<LaneKind, std::int64_t>> numbers;
  numbers.reserve(rank_.lanes.size());
  for (std::size_t i = 0; i < rank_.lanes.size(); ++i) {
    numbers.emplace_back(rank_.lanes[i].kind, lane_numbers_[i]);
  }
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end()) return;
  for (std::size_t i = 0; i < lane_numbers_.size(); ++i) {
    lane_numbers_[i] = static_cast<std::int64_t>(i);
  }
}

void NodeWriter::FindGaps() {
  communications_have_gaps_ = HasGaps(rank_, &RecordedOp::communication);
  works_have_gaps_ = HasGaps(rank_, &RecordedOp::work);
  std::uint64_t used = 0, size = 0;
  for (const RecordedOp& op : rank_.ops) {
    used += op.dependency_count;
    size = std::max(size, std::uint64_t{op.first_dependency} + op.dependency_count);
  }
  dependencies_have_gaps_ = size > used;
}

void NodeWriter::AddTimes(const RecordedOp& op, Node& node) const {
  if (!op.timed()) return;
  node.set_start_time_micros(NearestMicros(op.start));
  if (op.duration() == Picoseconds(0)) return;
  node.set_duration_micros(std::max<std::uint64_t>(1, NearestMicros(op.duration())));
}

// Without `stream`, a reader does not take the lane's operations for ordered.
void NodeWriter::AddLane(const RecordedOp& op, Node& node) const {
  const auto lane = static_cast<std::size_t>(op.lane);
  AddBool(*node.mutable_attr(), "is_cpu_op", op.kind == OpKind::kHost);
  if (op.kind == OpKind::kHost) {
    AddInt64(*node.mutable_attr(), "tid", lane_numbers_[lane]);
  } else if (rank_.lanes[lane].in_order) {
    AddInt64(*node.mutable_attr(), "stream", lane_numbers_[lane]);
  }
}

void NodeWriter::AddWork(const RecordedOp& op, Node& node) const {
  if (op.work < 0) return;
  const Work& work = rank_.works[static_cast<std::size_t>(op.work)];
  if (work.flops > 0) {
    AddInt64(*node.mutable_attr(), "num_ops",
             std::max<std::int64_t>(1, RoundSaturated(work.flops)));
  }
  if (work.bytes > Bytes(0)) {
    AddUint64(*node.mutable_attr(), "tensor_size", static_cast<std::uint64_t>(work.bytes.value()));
  }
}

void NodeWriter::AddSize(const Communication& communication, Node& node) const {
  std::int64_t bytes = communication.bytes.value();
  if (communication.kind == CommunicationKind::kAllGather ||
      communication.kind == CommunicationKind::kGather) {
    const std::int64_t ranks =
        recording_.groups[static_cast<std::size_t>(communication.group)].size;
    if (ranks <= 0) return;
    bytes = bytes < 0 ? -1 : bytes / ranks;
  }
  if (bytes >= 0) AddInt64(*node.mutable_attr(), "comm_size", bytes);
}

void NodeWriter::AddCollective(const Communication& communication, Node& node) const {
  AddInt64(*node.mutable_attr(), "comm_type", CommTypeOf(communication.kind));
  const CommunicatorGroup& group = recording_.groups[static_cast<std::size_t>(communication.group)];
  AddString(*node.mutable_attr(), "pg_name",
            IsWorldGroup(recording_, group) ? "0" : absl::StrCat(communication.group + 1));
  AddSize(communication, node);
}

void NodeWriter::AddMessage(const Communication& communication, std::int32_t tag,
                            Node& node) const {
  const bool sends = communication.kind == CommunicationKind::kSend;
  AddInt32(*node.mutable_attr(), "comm_src", sends ? rank_.rank : communication.peer);
  AddInt32(*node.mutable_attr(), "comm_dst", sends ? communication.peer : rank_.rank);
  AddInt32(*node.mutable_attr(), "comm_tag", tag);
  AddSize(communication, node);
}

void NodeWriter::AddCommunication(const RecordedOp& op, Node& node) {
  const Communication* communication = rank_.CommunicationOf(op);
  if (communication == nullptr || !IsReadable(*communication)) return;
  if (HasMessageTag(*communication)) {
    AddMessage(*communication, tags_[next_tag_++], node);
  } else {
    AddCollective(*communication, node);
  }
}

// What ends before one of `ids_` does.
void NodeWriter::AddEndAfter(std::size_t op) {
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    for (const Dependency& dependency : rank_.DependenciesOf(rank_.ops[ids_[i]])) {
      if (dependency.kind == DependencyKind::kEndAfter) AddId(op, dependency.op);
    }
  }
}

void NodeWriter::AddId(std::size_t op, std::size_t id) {
  if (id == op || seen_[id] == op + 1) return;
  seen_[id] = op + 1;
  ids_.push_back(id);
}

void NodeWriter::AddDependencies(std::size_t op, Node& node) {
  const RecordedOp& recorded = rank_.ops[op];
  ids_.clear();
  for (const Dependency& dependency : rank_.DependenciesOf(recorded)) {
    if (dependency.kind != DependencyKind::kEndAfter) AddId(op, dependency.op);
  }
  const auto lane = static_cast<std::size_t>(recorded.lane);
  if (rank_.lanes[lane].in_order) {
    if (last_of_lane_[lane] >= 0) AddId(op, static_cast<std::size_t>(last_of_lane_[lane]));
    last_of_lane_[lane] = static_cast<std::int64_t>(op);
  }
  AddEndAfter(op);
  std::sort(ids_.begin(), ids_.end());
  node.mutable_data_deps()->Add(ids_.begin(), ids_.end());
}

void NodeWriter::AddOwn(const RecordedOp& op, Node& node) {
  OwnOp own;
  if (op.timed()) {
    own.start_ps = op.start.value();
    own.duration_ps = op.duration().value();
  }
  own.lane = op.lane;
  own.kind = ToString(op.kind);
  if (const Communication* communication = rank_.CommunicationOf(op); communication != nullptr) {
    own.communication_kind = ToString(communication->kind);
    own.communication = *communication;
    if (!communications_have_gaps_ && op.communication != next_communication_) {
      own.communication_index = op.communication;
    }
    ++next_communication_;
  }
  if (op.work >= 0) {
    own.has_work = true;
    own.work = rank_.works[static_cast<std::size_t>(op.work)];
    if (!works_have_gaps_ && op.work != next_work_) own.work_index = op.work;
    ++next_work_;
  }
  if (!dependencies_have_gaps_ && op.first_dependency != next_dependency_) {
    own.first_dependency = op.first_dependency;
  }
  next_dependency_ += op.dependency_count;
  const auto dependencies = rank_.DependenciesOf(op);
  own.dependencies.assign(dependencies.begin(), dependencies.end());
  const std::string& name = recording_.names[static_cast<std::size_t>(op.name)];
  if (node.name() != name) own.name = name;
  WriteOwnOp(own, node);
}

void NodeWriter::Write(std::size_t op, Node& node) {
  node.Clear();
  const RecordedOp& recorded = rank_.ops[op];
  const std::string& name = recording_.names[static_cast<std::size_t>(recorded.name)];
  node.set_id(op);
  node.set_name(AsUtf8(name));
  node.set_type(TypeOf(rank_, recorded, name));
  AddTimes(recorded, node);
  AddLane(recorded, node);
  AddWork(recorded, node);
  AddCommunication(recorded, node);
  AddDependencies(op, node);
  AddOwn(recorded, node);
}

}  // namespace optimus::traces::chakra
