#include "absl/strings/str_cat.h"
#include "traces/recording/recording.h"

namespace optimus::traces {
namespace {

template <class Container>
bool Has(const Container& container, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(container.size());
}

absl::Status Error(const RecordedRank& rank, std::size_t op, absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("recording: rank ", rank.rank, ", operation ", op, ": ", field));
}

absl::Status CheckOp(const Recording& recording, const RecordedRank& rank, std::size_t id) {
  const RecordedOp& op = rank.ops[id];
  if (!Has(rank.lanes, op.lane)) return Error(rank, id, "lane");
  if (!Has(recording.names, op.name)) return Error(rank, id, "name");
  if (op.communication != -1 && !Has(rank.communications, op.communication)) {
    return Error(rank, id, "communication");
  }
  if ((op.kind == OpKind::kCommunication) != (op.communication >= 0)) {
    return Error(rank, id, "communication and kind do not fit");
  }
  if (op.work != -1 && !Has(rank.works, op.work)) return Error(rank, id, "work");
  if (std::uint64_t{op.first_dependency} + op.dependency_count > rank.dependencies.size()) {
    return Error(rank, id, "dependencies");
  }
  for (const Dependency& dependency : rank.DependenciesOf(op)) {
    if (!Has(rank.ops, dependency.op)) return Error(rank, id, "dependency");
  }
  const bool untimed = op.start == kUntimed && op.end == kUntimed;
  if (!untimed && (op.start < Picoseconds(0) || op.end < op.start)) {
    return Error(rank, id, "times");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRecording(const Recording& recording) {
  for (const RecordedRank& rank : recording.ranks) {
    for (std::size_t id = 0; id < rank.ops.size(); ++id) {
      if (absl::Status status = CheckOp(recording, rank, id); !status.ok()) return status;
    }
    for (const Communication& communication : rank.communications) {
      if (communication.group != -1 && !Has(recording.groups, communication.group)) {
        return absl::InvalidArgumentError(
            absl::StrCat("recording: rank ", rank.rank, ": group ", communication.group));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::traces
