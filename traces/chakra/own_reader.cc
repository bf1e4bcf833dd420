#include "traces/chakra/own_reader.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::Node;

constexpr std::size_t kMost = std::size_t{1} << 31;

absl::Status Error(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::StatusOr<OpKind> OpKindOf(const std::string& text) {
  for (const OpKind kind :
       {OpKind::kHost, OpKind::kCompute, OpKind::kCopy, OpKind::kCommunication}) {
    if (text == ToString(kind)) return kind;
  }
  return Error("attribute optimus_kind");
}

absl::StatusOr<CommunicationKind> CommunicationKindOf(const std::string& text) {
  for (int i = 0; i < kCommunicationKindCount; ++i) {
    const auto kind = static_cast<CommunicationKind>(i);
    if (text == ToString(kind)) return kind;
  }
  return Error("attribute optimus_communication");
}

// Moves `values`, one for each of the operations that has one (`field`), to the places that the
// operations say.
template <class Value>
absl::Status Place(const std::vector<Value>& values, std::int32_t RecordedOp::*field,
                   const std::vector<RecordedOp>& ops, std::vector<Value>& places) {
  std::int64_t size = 0;
  for (const RecordedOp& op : ops) size = std::max<std::int64_t>(size, op.*field + std::int64_t{1});
  if (size > static_cast<std::int64_t>(values.size())) return Error("an index behind the last one");
  places.resize(static_cast<std::size_t>(size));
  std::size_t next = 0;
  for (const RecordedOp& op : ops) {
    if (op.*field >= 0) places[static_cast<std::size_t>(op.*field)] = values[next++];
  }
  return absl::OkStatus();
}

}  // namespace

OwnReader::OwnReader(Recording& recording, RecordingTables& tables,
                     const std::vector<std::int32_t>& group_numbers)
    : tables_(tables), rank_(recording.ranks.front()) {
  for (std::size_t i = 0; i < group_numbers.size(); ++i) {
    groups_.emplace(group_numbers[i], static_cast<std::int32_t>(i));
  }
}

absl::Status OwnReader::AddTimes(const OwnOp& own, RecordedOp& op) const {
  if ((own.start_ps < 0) != (own.duration_ps < 0)) return Error("one of start_ps and duration_ps");
  if (own.start_ps < 0) return absl::OkStatus();
  if (own.duration_ps > std::numeric_limits<std::int64_t>::max() - own.start_ps) {
    return Error("attribute duration_ps: too large");
  }
  op.start = Picoseconds(own.start_ps);
  op.end = Picoseconds(own.start_ps + own.duration_ps);
  return absl::OkStatus();
}

absl::Status OwnReader::AddCommunication(const OwnOp& own, RecordedOp& op) {
  if (own.communication_kind.empty()) return absl::OkStatus();
  Communication communication = own.communication;
  OPTIMUS_ASSIGN_OR_RETURN(communication.kind, CommunicationKindOf(own.communication_kind));
  if (communication.group >= 0) {
    const auto group = groups_.find(communication.group);
    if (group == groups_.end()) return Error("attribute optimus_group: no such group");
    communication.group = group->second;
  }
  op.communication = static_cast<std::int32_t>(own.communication_index >= 0
                                                   ? own.communication_index
                                                   : std::int64_t(communications_.size()));
  communications_.push_back(communication);
  return absl::OkStatus();
}

void OwnReader::AddWork(const OwnOp& own, RecordedOp& op) {
  if (!own.has_work) return;
  op.work =
      static_cast<std::int32_t>(own.work_index >= 0 ? own.work_index : std::int64_t(works_.size()));
  works_.push_back(own.work);
}

absl::Status OwnReader::AddDependencies(const OwnOp& own, RecordedOp& op) {
  if (dependencies_.size() + own.dependencies.size() > kMost) return Error("too many dependencies");
  op.first_dependency = static_cast<std::uint32_t>(
      own.first_dependency >= 0 ? own.first_dependency
                                : static_cast<std::int64_t>(dependencies_.size()));
  op.dependency_count = static_cast<std::uint32_t>(own.dependencies.size());
  dependencies_.insert(dependencies_.end(), own.dependencies.begin(), own.dependencies.end());
  return absl::OkStatus();
}

absl::Status OwnReader::Add(const Node& node) {
  if (node.id() != rank_.ops.size() || rank_.ops.size() >= kMost) {
    return Error(absl::StrCat("node ", node.id(), ": not in its order"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const OwnOp own, ReadOwnOp(node));
  RecordedOp op;
  const auto add = [&]() -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(op.kind, OpKindOf(own.kind));
    OPTIMUS_RETURN_IF_ERROR(AddTimes(own, op));
    OPTIMUS_RETURN_IF_ERROR(AddCommunication(own, op));
    return AddDependencies(own, op);
  };
  if (absl::Status status = add(); !status.ok()) {
    return Error(absl::StrCat("node ", node.id(), ": ", status.message()));
  }
  AddWork(own, op);
  op.lane = static_cast<std::int32_t>(own.lane);
  op.name = tables_.Name(own.name.has_value() ? *own.name : node.name());
  rank_.ops.push_back(op);
  return absl::OkStatus();
}

absl::Status OwnReader::PlaceDependencies() {
  rank_.dependencies.resize(dependencies_.size());
  std::size_t next = 0;
  for (const RecordedOp& op : rank_.ops) {
    if (std::size_t{op.first_dependency} + op.dependency_count > dependencies_.size()) {
      return Error("attribute optimus_first_dependency: behind the last one");
    }
    std::copy_n(dependencies_.begin() + static_cast<std::ptrdiff_t>(next), op.dependency_count,
                rank_.dependencies.begin() + static_cast<std::ptrdiff_t>(op.first_dependency));
    next += op.dependency_count;
  }
  return absl::OkStatus();
}

absl::Status OwnReader::Finish() {
  OPTIMUS_RETURN_IF_ERROR(
      Place(communications_, &RecordedOp::communication, rank_.ops, rank_.communications));
  OPTIMUS_RETURN_IF_ERROR(Place(works_, &RecordedOp::work, rank_.ops, rank_.works));
  return PlaceDependencies();
}

}  // namespace optimus::traces::chakra
