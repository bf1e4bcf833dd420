#include "traces/replay/match.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::traces {
namespace {

// Operations of one group on one rank in the order in which they were issued.
using Issued = std::vector<TaskId>;
using ByRank = std::map<std::int32_t, Issued>;  // by global rank

constexpr char kRunsAlone[] = "runs by itself for its recorded time, which includes its waiting";

class Matcher {
 public:
  explicit Matcher(const ReplayGraph& graph) : graph_(graph) {}

  Matches Find() {
    Collect();
    for (const auto& [group, by_rank] : collectives_) MatchGroup(group, by_rank);
    MatchDirected();
    for (const auto& [group, by_rank] : undirected_) MatchUndirected(group, by_rank);
    return std::move(found_);
  }

 private:
  // (sender, receiver, tag, group): of messages between recorded ranks.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int64_t, std::int32_t>;

  const Communication& CommunicationOf(TaskId task) const { return *graph_.communication(task); }
  const CommunicatorGroup& Group(std::int32_t group) const {
    return graph_.recording.groups[static_cast<std::size_t>(group)];
  }

  void AddSingle(TaskId task, std::string what, std::string effect = kRunsAlone) {
    // In two steps: GCC 12 warns falsely of the move of a temporary.
    Matches::Single& single = found_.singles.emplace_back();
    single.task = task;
    single.what = std::move(what);
    single.effect = std::move(effect);
  }

  void Collect();
  void CollectOne(TaskId task);
  void MatchGroup(std::int32_t group, const ByRank& by_rank);
  // The sequence number of each operation, or its position plus the rank's shift.
  std::map<std::int64_t, std::vector<TaskId>> Instances(const ByRank& by_rank) const;
  bool Numbered(const ByRank& by_rank) const;
  std::int64_t Shift(const Issued& longest, const Issued& other) const;
  void AddCollective(std::int32_t group, const std::vector<TaskId>& members, std::size_t present);
  void NoteMissing(std::int32_t group, const std::vector<TaskId>& members);
  bool Alike(TaskId a, TaskId b) const;
  void MatchDirected();
  void MatchUndirected(std::int32_t group, const ByRank& by_rank);

  const ReplayGraph& graph_;
  std::map<std::int32_t, ByRank> collectives_, undirected_;  // by group
  std::map<Key, Issued> sends_, receives_;
  std::set<std::int32_t> recorded_;
  Matches found_;
};

void Matcher::Collect() {
  for (const RecordedRank& rank : graph_.recording.ranks) recorded_.insert(rank.rank);
  for (std::size_t r = 0; r < graph_.recording.ranks.size(); ++r) {
    std::vector<TaskId> tasks;
    for (TaskId task = graph_.first_task[r]; task < graph_.first_task[r + 1]; ++task) {
      if (graph_.op(task).communication >= 0) tasks.push_back(task);
    }
    // The operations of a rank come by start where there are times, and as the file has them else.
    std::stable_sort(tasks.begin(), tasks.end(), [this](TaskId a, TaskId b) {
      return graph_.tasks[a].start < graph_.tasks[b].start;
    });
    for (const TaskId task : tasks) CollectOne(task);
  }
}

void Matcher::CollectOne(TaskId task) {
  const Communication& communication = CommunicationOf(task);
  const std::int32_t rank = graph_.rank_of(task);
  if (communication.kind == CommunicationKind::kUnknown) {
    return AddSingle(task, "communication whose type the file does not say");
  }
  if (!IsPointToPoint(communication.kind)) {
    if (communication.group < 0)
      return AddSingle(task, "collective whose group the file does not say");
    collectives_[communication.group][rank].push_back(task);
    return;
  }
  if (communication.kind == CommunicationKind::kSendReceive) {
    if (communication.group < 0) {
      return AddSingle(task, "point-to-point kernel whose peer the file does not say");
    }
    undirected_[communication.group][rank].push_back(task);
    return;
  }
  if (communication.peer < 0) return AddSingle(task, "message whose peer the file does not say");
  const bool send = communication.kind == CommunicationKind::kSend;
  const Key key = send ? Key{rank, communication.peer, communication.tag, communication.group}
                       : Key{communication.peer, rank, communication.tag, communication.group};
  (send ? sends_ : receives_)[key].push_back(task);
}

bool Matcher::Numbered(const ByRank& by_rank) const {
  for (const auto& [rank, issued] : by_rank) {
    for (const TaskId task : issued) {
      if (CommunicationOf(task).sequence < 0) return false;
    }
  }
  return true;
}

bool Matcher::Alike(TaskId a, TaskId b) const {
  const Communication& left = CommunicationOf(a);
  const Communication& right = CommunicationOf(b);
  return left.kind == right.kind && left.bytes == right.bytes;
}

// How many of the longest list come before the first of `other`.
std::int64_t Matcher::Shift(const Issued& longest, const Issued& other) const {
  std::int64_t best = 0;
  std::size_t best_alike = 0;
  constexpr std::size_t kMostShifts = 64;
  const std::size_t shifts = std::min(longest.size() - other.size(), kMostShifts);
  for (std::size_t shift = 0; shift <= shifts; ++shift) {
    std::size_t alike = 0;
    for (std::size_t i = 0; i < other.size(); ++i)
      alike += Alike(longest[i + shift], other[i]) ? 1 : 0;
    if (shift != 0 && alike <= best_alike) continue;
    best = static_cast<std::int64_t>(shift);
    best_alike = alike;
  }
  return best;
}

std::map<std::int64_t, std::vector<TaskId>> Matcher::Instances(const ByRank& by_rank) const {
  std::map<std::int64_t, std::vector<TaskId>> instances;
  const bool numbered = Numbered(by_rank);
  const Issued* longest = &by_rank.begin()->second;
  for (const auto& [rank, issued] : by_rank) {
    if (issued.size() > longest->size()) longest = &issued;
  }
  for (const auto& [rank, issued] : by_rank) {
    const std::int64_t shift = numbered ? 0 : Shift(*longest, issued);
    for (std::size_t i = 0; i < issued.size(); ++i) {
      const std::int64_t number =
          numbered ? CommunicationOf(issued[i]).sequence : static_cast<std::int64_t>(i) + shift;
      instances[number].push_back(issued[i]);
    }
  }
  return instances;
}

void Matcher::MatchGroup(std::int32_t group, const ByRank& by_rank) {
  for (const auto& [number, members] : Instances(by_rank)) {
    AddCollective(group, members, by_rank.size());
  }
}

// `present`: ranks of the group that recorded any of its collectives.
void Matcher::AddCollective(std::int32_t group, const std::vector<TaskId>& members,
                            std::size_t present) {
  for (const TaskId member : members) {
    if (CommunicationOf(member).kind == CommunicationOf(members.front()).kind) continue;
    for (const TaskId each : members) {
      AddSingle(each, absl::StrCat("collective of another kind than on rank ",
                                   graph_.rank_of(each == member ? members.front() : member)));
    }
    return;
  }
  if (members.size() < present) {
    for (const TaskId each : members) {
      AddSingle(each,
                absl::StrCat("collective that only ", members.size(), " of ", present,
                             " recorded ranks of its group have"),
                members.size() > 1 ? "waits for those that have it" : kRunsAlone);
    }
  } else if (!graph_.recording.folded) {
    NoteMissing(group, members);
  }
  found_.matches.push_back({members, false});
}

// Members that no file was given of.
void Matcher::NoteMissing(std::int32_t group, const std::vector<TaskId>& members) {
  const CommunicatorGroup& all = Group(group);
  std::vector<std::int32_t> missing;
  for (const std::int32_t rank : all.ranks) {
    if (!recorded_.contains(rank)) missing.push_back(rank);
  }
  const auto known = static_cast<std::int64_t>(members.size());
  if (missing.empty() && all.size <= known) return;
  constexpr std::size_t kShown = 4;
  std::string who = "ranks that are not known";
  if (!missing.empty()) {
    const std::vector<std::int32_t> shown(
        missing.begin(),
        missing.begin() + static_cast<std::ptrdiff_t>(std::min(missing.size(), kShown)));
    who = absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(shown, ", "),
                       missing.size() > kShown ? ", ..." : "");
  }
  for (const TaskId each : members) {
    AddSingle(
        each, absl::StrCat("collective of group ", all.name, " without ", who),
        "what it waited for them counts as its own time; --fold lets recorded ranks stand for "
        "them");
  }
}

void Matcher::MatchDirected() {
  const bool eager = graph_.recording.messages == MessageRule::kEager;
  for (const auto& [key, sends] : sends_) {
    const auto found = receives_.find(key);
    const std::size_t pairs =
        found == receives_.end() ? 0 : std::min(sends.size(), found->second.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      found_.matches.push_back({{sends[i], found->second[i]}, eager});
    }
    for (std::size_t i = pairs; i < sends.size(); ++i) {
      AddSingle(sends[i], absl::StrCat("send to rank ", std::get<1>(key), " without a receive"));
    }
  }
  for (const auto& [key, receives] : receives_) {
    const auto found = sends_.find(key);
    const std::size_t pairs =
        found == sends_.end() ? 0 : std::min(receives.size(), found->second.size());
    for (std::size_t i = pairs; i < receives.size(); ++i) {
      AddSingle(receives[i],
                absl::StrCat("receive from rank ", std::get<0>(key), " without a send"));
    }
  }
}

// A kernel that sends or receives, it is not said which: between two ranks it is clear all the same
// who waits for whom.
void Matcher::MatchUndirected(std::int32_t group, const ByRank& by_rank) {
  if (Group(group).size == 2 && by_rank.size() == 2) return MatchGroup(group, by_rank);
  for (const auto& [rank, issued] : by_rank) {
    for (const TaskId task : issued) {
      AddSingle(task, Group(group).size == 2
                          ? "point-to-point kernel whose other rank was not recorded"
                          : "point-to-point kernel whose peer the file does not say");
    }
  }
}

}  // namespace

Matches FindMatches(const ReplayGraph& graph) { return Matcher(graph).Find(); }

}  // namespace optimus::traces
