#include <algorithm>

#include "absl/strings/str_cat.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

RecordingTables::RecordingTables(Recording& recording) : recording_(recording) {
  for (std::size_t i = 0; i < recording.names.size(); ++i) {
    names_.emplace(recording.names[i], static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < recording.groups.size(); ++i) {
    const CommunicatorGroup& group = recording.groups[i];
    groups_.emplace(std::make_pair(group.name, group.ranks), static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < recording.remarks.size(); ++i) {
    remarks_.emplace(std::make_pair(recording.remarks[i].what, recording.remarks[i].rank), i);
  }
}

std::int32_t RecordingTables::Name(absl::string_view name) {
  if (const auto found = names_.find(name); found != names_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(recording_.names.size());
  recording_.names.emplace_back(name);
  names_.emplace(std::string(name), id);
  return id;
}

std::int32_t RecordingTables::Group(CommunicatorGroup group) {
  std::sort(group.ranks.begin(), group.ranks.end());
  group.ranks.erase(std::unique(group.ranks.begin(), group.ranks.end()), group.ranks.end());
  const auto key = std::make_pair(group.name, group.ranks);
  if (const auto found = groups_.find(key); found != groups_.end()) {
    CommunicatorGroup& known = recording_.groups[static_cast<std::size_t>(found->second)];
    if (known.description.empty()) known.description = group.description;
    if (known.size == 0) known.size = group.size;
    if (known.role.empty()) {
      known.role = group.role.empty() ? RoleOf(known.name, known.description) : group.role;
    }
    return found->second;
  }
  if (group.size == 0) group.size = static_cast<std::int32_t>(group.ranks.size());
  if (group.role.empty()) group.role = RoleOf(group.name, group.description);
  const auto id = static_cast<std::int32_t>(recording_.groups.size());
  recording_.groups.push_back(std::move(group));
  groups_.emplace(key, id);
  return id;
}

void RecordingTables::Note(Remark remark) {
  const auto key = std::make_pair(remark.what, remark.rank);
  const auto [found, inserted] = remarks_.try_emplace(key, recording_.remarks.size());
  if (inserted) {
    recording_.remarks.push_back(std::move(remark));
  } else {
    recording_.remarks[found->second].count += remark.count;
  }
}

namespace {

// Index of the only group with ranks of this name; -1 where there are none or several.
std::int32_t NamesakeWithRanks(const Recording& recording, const std::string& name) {
  std::int32_t only = -1;
  for (std::size_t i = 0; i < recording.groups.size(); ++i) {
    const CommunicatorGroup& group = recording.groups[i];
    if (group.name != name || group.ranks.empty()) continue;
    if (only >= 0) return -1;
    only = static_cast<std::int32_t>(i);
  }
  return only;
}

}  // namespace

void ResolveGroups(Recording& recording) {
  std::vector<std::int32_t> resolved;
  resolved.reserve(recording.groups.size());
  for (std::size_t i = 0; i < recording.groups.size(); ++i) {
    const std::int32_t namesake = recording.groups[i].ranks.empty()
                                      ? NamesakeWithRanks(recording, recording.groups[i].name)
                                      : -1;
    resolved.push_back(namesake >= 0 ? namesake : static_cast<std::int32_t>(i));
  }
  for (RecordedRank& rank : recording.ranks) {
    for (Communication& communication : rank.communications) {
      if (communication.group >= 0) communication.group = resolved[communication.group];
    }
  }
}

namespace {

absl::Status CheckLike(const Recording& whole, const Recording& part) {
  const auto differ = [&](const char* what, const auto& a, const auto& b) {
    return absl::InvalidArgumentError(absl::StrCat(part.ranks.front().source, ": ", what, " ", b,
                                                   ", but ", whole.ranks.front().source, " has ", a,
                                                   "; hint: give the files of one run"));
  };
  if (part.format != whole.format) return differ("format", whole.format, part.format);
  if (part.world != 0 && whole.world != 0 && part.world != whole.world) {
    return differ("world size", whole.world, part.world);
  }
  if (part.messages != whole.messages || part.waits_inside != whole.waits_inside ||
      part.one_clock != whole.one_clock || part.folded != whole.folded) {
    return differ("kind of run", "another", "one");
  }
  return absl::OkStatus();
}

// Moves what `part` holds into `whole`, with its own numbers of names and groups.
void Append(Recording& whole, RecordingTables& tables, Recording part) {
  std::vector<std::int32_t> names, groups;
  names.reserve(part.names.size());
  groups.reserve(part.groups.size());
  for (const std::string& name : part.names) names.push_back(tables.Name(name));
  for (CommunicatorGroup& group : part.groups) groups.push_back(tables.Group(std::move(group)));
  for (RecordedRank& rank : part.ranks) {
    for (RecordedOp& op : rank.ops) op.name = names[static_cast<std::size_t>(op.name)];
    for (Communication& communication : rank.communications) {
      if (communication.group >= 0) communication.group = groups[communication.group];
    }
    whole.ranks.push_back(std::move(rank));
  }
  whole.steps.insert(whole.steps.end(), part.steps.begin(), part.steps.end());
  for (Remark& remark : part.remarks) tables.Note(std::move(remark));
  whole.world = std::max(whole.world, part.world);
}

}  // namespace

absl::StatusOr<Recording> Join(std::vector<Recording> parts) {
  Recording whole = std::move(parts.front());
  RecordingTables tables(whole);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (whole.ranks.empty() || parts[i].ranks.empty()) {
      return absl::InvalidArgumentError("a trace without a rank");
    }
    if (absl::Status status = CheckLike(whole, parts[i]); !status.ok()) return status;
    Append(whole, tables, std::move(parts[i]));
  }
  std::stable_sort(whole.ranks.begin(), whole.ranks.end(),
                   [](const RecordedRank& a, const RecordedRank& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < whole.ranks.size(); ++i) {
    if (whole.ranks[i - 1].rank != whole.ranks[i].rank) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        whole.ranks[i].source, ": rank ", whole.ranks[i].rank, ", which ",
        whole.ranks[i - 1].source, " has as well; hint: give one file a rank (a rank is taken ",
        "from distributedInfo, or else from a number in the file's name)"));
  }
  ResolveGroups(whole);
  return whole;
}

}  // namespace optimus::traces
