#include "traces/chakra/group_resolver.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

// Whether comm_size is what one rank contributes: ASTRA-sim's all-gather hands out `size * ranks`
// bytes, and Chakra's converter takes the size of the call's input.
bool CountsOneContribution(CommunicationKind kind) {
  return kind == CommunicationKind::kAllGather || kind == CommunicationKind::kGather;
}

}  // namespace

GroupResolver::GroupResolver(const FinishOptions& options, GroupTable groups_of_nodes,
                             Recording& recording, RecordingTables& tables)
    : options_(options),
      groups_of_nodes_(std::move(groups_of_nodes)),
      recording_(recording),
      tables_(tables) {}

void GroupResolver::Note(const char* what, const char* effect, const std::string& op) {
  tables_.Note(
      {.what = what, .effect = effect, .rank = options_.rank, .name = op, .time = Picoseconds(0)});
}

CommunicatorGroup GroupResolver::World() const {
  CommunicatorGroup group = {
      .name = "0", .description = "", .role = "world", .ranks = {}, .size = options_.world};
  group.ranks.resize(static_cast<std::size_t>(options_.world));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

CommunicatorGroup GroupResolver::Find(const std::string& name, const std::string& op) {
  if (options_.groups != nullptr) {
    if (const auto found = options_.groups->find(name); found != options_.groups->end()) {
      return found->second;
    }
  }
  if (const auto found = groups_of_nodes_.find(name); found != groups_of_nodes_.end()) {
    CommunicatorGroup group = found->second;
    // PyTorch writes no ranks for the group of all.
    const bool is_all = group.size == 0 || group.size == options_.world;
    if (group.ranks.empty() && is_all) group.ranks = World().ranks;
    return group;
  }
  if (IsWorldName(name)) return World();
  Note("communicator group without ranks in the file or its groups file", "ranks are not known",
       op);
  CommunicatorGroup group;
  group.name = name;
  return group;
}

std::int32_t GroupResolver::GroupOf(const std::string& pg_name, const std::string& op) {
  const std::string name = pg_name.empty() ? std::string("0") : pg_name;
  if (const auto found = found_.find(name); found != found_.end()) return found->second;
  CommunicatorGroup group = Find(name, op);
  if (name == "0" && group.role.empty()) group.role = std::string("world");
  const std::vector<std::int32_t>& ranks = group.ranks;
  if (!ranks.empty() && !std::binary_search(ranks.begin(), ranks.end(), options_.rank)) {
    Note("collective of a group that the rank is not in", "kept as it is", op);
  }
  const std::int32_t id = tables_.Group(std::move(group));
  found_.emplace(name, id);
  return id;
}

absl::StatusOr<Communication> GroupResolver::Resolve(const DraftCommunication& draft,
                                                     const std::string& name) {
  Communication communication = draft.communication;
  if (!draft.has_group) return communication;
  communication.group = GroupOf(draft.group, name);
  if (!CountsOneContribution(communication.kind) || communication.bytes < Bytes(0)) {
    return communication;
  }
  const std::int64_t ranks = recording_.groups[static_cast<std::size_t>(communication.group)].size;
  if (ranks == 0) {
    Note("gathered size of a group of unknown size", "its size is not known", name);
    communication.bytes = Bytes(-1);
  } else if (communication.bytes.value() > std::numeric_limits<std::int64_t>::max() / ranks) {
    return absl::InvalidArgumentError(absl::StrCat("comm_size ", communication.bytes.value(),
                                                   " of each of ", ranks, " ranks is too large"));
  } else {
    communication.bytes = communication.bytes * ranks;
  }
  return communication;
}

}  // namespace optimus::traces::chakra
