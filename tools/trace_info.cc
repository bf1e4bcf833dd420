#include "tools/trace_info.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tools/trace_files.h"

namespace optimus::tools {
namespace {

using traces::Communication;
using traces::RecordedOp;
using traces::RecordedRank;
using traces::Recording;

// Sums that a file may drive anywhere: as large as they can be, never beyond.
Picoseconds Sum(Picoseconds a, Picoseconds b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return Picoseconds(a.value() > kMost - b.value() ? kMost : a.value() + b.value());
}
Bytes Sum(Bytes a, Bytes b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return Bytes(a.value() > kMost - b.value() ? kMost : a.value() + b.value());
}

Picoseconds StepOf(const RecordedRank& rank) {
  return std::max(Picoseconds(0), rank.step_end - rank.step_start);
}

// Time that at least one of the intervals covers.
Picoseconds Covered(std::vector<std::pair<Picoseconds, Picoseconds>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  Picoseconds covered, until;
  for (const auto& [start, end] : intervals) {
    if (end > until) covered += end - std::max(start, until);
    until = std::max(until, end);
  }
  return covered;
}

void AddLanes(const RecordedRank& rank, TraceInfo& info) {
  std::vector<std::vector<std::pair<Picoseconds, Picoseconds>>> intervals(rank.lanes.size());
  const std::size_t first = info.lanes.size();
  for (const traces::Lane& lane : rank.lanes) {
    LaneInfo added;
    added.rank = rank.rank;
    added.name = lane.name;
    added.host = lane.kind == traces::LaneKind::kHostThread;
    added.in_order = lane.in_order;
    info.lanes.push_back(std::move(added));
  }
  for (const RecordedOp& op : rank.ops) {
    const auto lane = static_cast<std::size_t>(op.lane);
    ++info.lanes[first + lane].operations;
    if (op.timed()) {
      intervals[lane].emplace_back(op.start, op.end);
    } else {
      ++info.lanes[first + lane].untimed;
      ++info.untimed;
    }
  }
  for (std::size_t lane = 0; lane < intervals.size(); ++lane) {
    info.lanes[first + lane].busy = Covered(std::move(intervals[lane]));
  }
}

void AddKinds(const RecordedRank& rank,
              std::array<KindInfo, traces::kCommunicationKindCount>& kinds) {
  for (const RecordedOp& op : rank.ops) {
    const Communication* communication = rank.CommunicationOf(op);
    if (communication == nullptr) continue;
    KindInfo& kind = kinds[static_cast<std::size_t>(communication->kind)];
    ++kind.operations;
    const bool pair = traces::IsPointToPoint(communication->kind);
    kind.without_group += !pair && communication->group < 0 ? 1 : 0;
    kind.without_peer += pair && communication->peer < 0 ? 1 : 0;
    kind.without_bytes += communication->bytes < Bytes(0) ? 1 : 0;
    if (op.timed()) kind.time = Sum(kind.time, op.duration());
  }
}

// Collectives of one rank, by group.
struct Use {
  std::int64_t collectives = 0, without_bytes = 0;
  Bytes bytes;
};

std::map<std::int32_t, Use> UsesOf(const RecordedRank& rank) {
  std::map<std::int32_t, Use> uses;
  for (const RecordedOp& op : rank.ops) {
    const Communication* communication = rank.CommunicationOf(op);
    if (communication == nullptr || communication->group < 0) continue;
    if (traces::IsPointToPoint(communication->kind)) continue;
    Use& use = uses[communication->group];
    ++use.collectives;
    if (communication->bytes < Bytes(0)) {
      ++use.without_bytes;
    } else {
      use.bytes = Sum(use.bytes, communication->bytes);
    }
  }
  return uses;
}

void AddGroups(const Recording& recording, TraceInfo& info) {
  absl::flat_hash_set<std::int32_t> recorded;
  for (const RecordedRank& rank : recording.ranks) recorded.insert(rank.rank);
  for (const traces::CommunicatorGroup& group : recording.groups) {
    GroupInfo added;
    added.name = group.name;
    added.description = group.description;
    added.role = group.role;
    added.size = group.size;
    added.members_known = !group.ranks.empty();
    added.recorded = std::count_if(group.ranks.begin(), group.ranks.end(),
                                   [&](std::int32_t rank) { return recorded.contains(rank); });
    info.groups.push_back(std::move(added));
  }
  for (const RecordedRank& rank : recording.ranks) {
    for (const auto& [index, use] : UsesOf(rank)) {
      GroupInfo& group = info.groups[static_cast<std::size_t>(index)];
      if (use.collectives <= group.collectives) continue;
      group.collectives = use.collectives;
      group.without_bytes = use.without_bytes;
      group.bytes = use.bytes;
    }
  }
}

void AddSteps(const Recording& recording, TraceInfo& info) {
  std::map<std::int64_t, StepInfo> steps;
  for (const traces::StepMark& mark : recording.steps) {
    const Picoseconds length = std::max(Picoseconds(0), mark.end - mark.start);
    const auto [found, added] =
        steps.try_emplace(mark.number, StepInfo{mark.number, 0, length, length});
    StepInfo& step = found->second;
    ++step.ranks;
    step.shortest = std::min(step.shortest, length);
    step.longest = std::max(step.longest, length);
  }
  for (const auto& [number, step] : steps) info.steps.push_back(step);
}

// Of folded recordings nothing is missing: which ranks one stands for is not said.
void AddMissing(const Recording& recording, TraceInfo& info) {
  for (const RecordedRank& rank : recording.ranks) info.stood_for += rank.stands_for;
  if (recording.world == 0 || info.stood_for >= recording.world) return;
  info.missing_count = recording.world - info.stood_for;
  if (recording.folded) return;
  std::size_t next = 0;
  for (std::int32_t rank = 0; rank < recording.world; ++rank) {
    while (next < info.ranks.size() && info.ranks[next] < rank) ++next;
    if (next < info.ranks.size() && info.ranks[next] == rank) continue;
    if (info.missing.size() == TraceInfo::kMostMissing) return;
    info.missing.push_back(rank);
  }
}

void AddRanks(const Recording& recording, TraceInfo& info) {
  std::array<KindInfo, traces::kCommunicationKindCount> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].kind = static_cast<traces::CommunicationKind>(i);
  }
  for (const RecordedRank& rank : recording.ranks) {
    info.ranks.push_back(rank.rank);
    info.step = std::max(info.step, StepOf(rank));
    info.operations += std::ssize(rank.ops);
    info.dependencies += std::ssize(rank.dependencies);
    AddLanes(rank, info);
    AddKinds(rank, kinds);
  }
  std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(info.kinds),
               [](const KindInfo& kind) { return kind.operations > 0; });
}

}  // namespace

TraceInfo InfoOf(const Recording& recording) {
  TraceInfo info;
  info.files = SourcesOf(recording);
  info.format = recording.format;
  info.world = recording.world;
  info.folded = recording.folded;
  info.one_clock = recording.one_clock;
  info.waits_inside = recording.waits_inside;
  info.rendezvous = recording.messages == traces::MessageRule::kRendezvous;
  info.remarks = recording.remarks;
  AddRanks(recording, info);
  AddMissing(recording, info);
  AddSteps(recording, info);
  AddGroups(recording, info);
  return info;
}

}  // namespace optimus::tools
