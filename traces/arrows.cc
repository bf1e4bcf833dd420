#include "traces/arrows.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace optimus::traces {
namespace {

using Where = ArrowEnd::Where;

class Finder {
 public:
  Finder(const Recording& recording, const DrawnTime& time, std::size_t most)
      : recording_(recording), time_(time), most_(most), ends_(recording.ranks.size()) {}

  std::vector<std::vector<ArrowEnd>> Find() {
    FindSends();
    for (std::size_t r = 0; r < recording_.ranks.size(); ++r) AddMessages(r);
    if (CountDependencies() + count_ <= most_) {
      for (std::size_t r = 0; r < recording_.ranks.size(); ++r) AddDependencies(r);
    }
    for (std::vector<ArrowEnd>& ends : ends_) {
      std::stable_sort(ends.begin(), ends.end(),
                       [](const ArrowEnd& a, const ArrowEnd& b) { return a.op < b.op; });
    }
    return std::move(ends_);
  }

 private:
  struct Place {
    std::size_t rank = 0;
    std::uint32_t op = 0;
  };
  using MessageKey = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // from, to, tag

  // Calls `visit(id, op, communication)` for the messages of one direction that have a tag.
  template <class Visit>
  void EachMessage(std::size_t r, CommunicationKind kind, Visit visit) const {
    const RecordedRank& rank = recording_.ranks[r];
    for (std::uint32_t id = 0; id < rank.ops.size(); ++id) {
      const Communication* communication = rank.CommunicationOf(rank.ops[id]);
      if (communication == nullptr || communication->kind != kind) continue;
      if (communication->tag < 0 || communication->peer < 0 || !rank.ops[id].timed()) continue;
      visit(id, *communication);
    }
  }

  void FindSends() {
    for (std::size_t r = 0; r < recording_.ranks.size(); ++r) {
      EachMessage(r, CommunicationKind::kSend, [&](std::uint32_t id, const Communication& send) {
        sends_.try_emplace(MessageKey(recording_.ranks[r].rank, send.peer, send.tag), Place{r, id});
      });
    }
  }

  void AddMessages(std::size_t r) {
    EachMessage(r, CommunicationKind::kReceive,
                [&](std::uint32_t id, const Communication& receive) {
                  const auto send =
                      sends_.find(MessageKey(receive.peer, recording_.ranks[r].rank, receive.tag));
                  if (send == sends_.end() || count_ >= most_) return;
                  AddArrow(send->second, {r, id}, Where::kToEnd);
                  sends_.erase(send);  // a number may be used again, but its arrow is drawn once
                });
  }

  bool IsDrawn(const RecordedRank& rank, const RecordedOp& op, const Dependency& dependency) const {
    const RecordedOp& before = rank.ops[dependency.op];
    return op.timed() && before.timed() && before.lane != op.lane;
  }

  std::size_t CountDependencies() const {
    std::size_t count = 0;
    for (const RecordedRank& rank : recording_.ranks) {
      for (const RecordedOp& op : rank.ops) {
        for (const Dependency& dependency : rank.DependenciesOf(op)) {
          count += IsDrawn(rank, op, dependency) ? 1 : 0;
        }
      }
    }
    return count;
  }

  void AddDependencies(std::size_t r) {
    const RecordedRank& rank = recording_.ranks[r];
    for (std::uint32_t id = 0; id < rank.ops.size(); ++id) {
      for (const Dependency& dependency : rank.DependenciesOf(rank.ops[id])) {
        if (!IsDrawn(rank, rank.ops[id], dependency)) continue;
        AddArrow({r, dependency.op}, {r, id},
                 dependency.kind == DependencyKind::kEndAfter ? Where::kToEnd : Where::kToBegin);
      }
    }
  }

  void AddArrow(const Place& from, const Place& to, Where where) {
    const RecordedRank& from_rank = recording_.ranks[from.rank];
    const RecordedRank& to_rank = recording_.ranks[to.rank];
    const RecordedOp& target = to_rank.ops[to.op];
    const std::uint64_t begin = time_(from_rank, from_rank.ops[from.op].start);
    if (begin >= time_(to_rank, where == Where::kToEnd ? target.end : target.start)) return;
    const std::uint64_t arrow = ++count_;
    ends_[from.rank].push_back({from.op, arrow, Where::kFrom});
    ends_[to.rank].push_back({to.op, arrow, where});
  }

  const Recording& recording_;
  const DrawnTime& time_;
  std::size_t most_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<ArrowEnd>> ends_;
  absl::flat_hash_map<MessageKey, Place> sends_;
};

}  // namespace

std::vector<std::vector<ArrowEnd>> FindArrows(const Recording& recording, const DrawnTime& time,
                                              std::size_t most) {
  return Finder(recording, time, most).Find();
}

absl::Span<const ArrowEnd> ArrowsOf(const std::vector<ArrowEnd>& of_rank, std::uint32_t op) {
  const auto first =
      std::lower_bound(of_rank.begin(), of_rank.end(), op,
                       [](const ArrowEnd& end, std::uint32_t id) { return end.op < id; });
  auto last = first;
  while (last != of_rank.end() && last->op == op) ++last;
  return absl::MakeConstSpan(of_rank).subspan(static_cast<std::size_t>(first - of_rank.begin()),
                                              static_cast<std::size_t>(last - first));
}

}  // namespace optimus::traces
