#pragma once
// Random training steps for tests, with times found by plain relaxation, apart from the engine: the
// slow twin of Rebuild and Replay. What is recorded of a step (with its waiting) goes into a
// Recording; what a changed step would take, the twin says by relaxing again.

#include <algorithm>
#include <random>
#include <vector>

#include "traces/replay/testing.h"

namespace optimus::traces {

class RandomStep {
 public:
  RandomStep(unsigned seed, MessageRule messages, bool waits_inside)
      : random_(seed), messages_(messages), waits_inside_(waits_inside) {
    const int ranks = 2 + Below(3);
    ranks_.resize(static_cast<std::size_t>(ranks));
    for (int i = 0; i < 40; ++i) AddSomething();
    Relax(1);
  }

  Recording Record() const {
    RecordingBuilder b;
    b.recording().messages = messages_;
    b.recording().waits_inside = waits_inside_;
    b.recording().one_clock = true;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      b.Rank(static_cast<int>(r), {"compute", "nccl", "send", "receive"});
    }
    const std::int32_t all = b.Group("world", AllRanks());
    const std::int32_t some = b.Group("some", {0, 1});
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Op& op : ranks_[r]) {
        const int rank = static_cast<int>(r);
        if (op.match < 0) {
          b.Op(rank, op.lane, "k", op.start, op.end, OpKind::kCompute, op.after);
          continue;
        }
        b.Communicate(rank, op.lane, op.kind,
                      op.peer >= 0  ? -1
                      : op.everyone ? all
                                    : some,
                      op.start, op.end, op.peer, op.after);
      }
      b.recording().ranks[r].step_start = Picoseconds(0);
    }
    return b.recording();
  }

  // Length of the step with kernels `factor` (an integer) times as long.
  std::int64_t StepWith(std::int64_t factor) {
    Relax(factor);
    std::int64_t step = 0;
    for (const auto& ops : ranks_) {
      for (const Op& op : ops) step = std::max(step, op.end);
    }
    Relax(1);
    return step;
  }

 private:
  struct Op {
    int lane = 0;
    std::int64_t duration = 0, lag = 0;
    std::vector<std::uint32_t> after;
    int match = -1;
    bool everyone = false;
    std::int32_t peer = -1;
    CommunicationKind kind = CommunicationKind::kUnknown;
    std::int64_t start = 0, end = 0;
  };
  struct MatchOf {
    std::vector<std::pair<std::size_t, std::size_t>> members;  // (rank, op)
    std::int64_t duration = 0;
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::vector<std::int32_t> AllRanks() const {
    std::vector<std::int32_t> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r) all.push_back(static_cast<std::int32_t>(r));
    return all;
  }

  Op& Add(std::size_t rank, int lane) {
    Op op;
    op.lane = lane;
    op.lag = Below(3) == 0 ? Below(20) : 0;
    const auto count = static_cast<int>(ranks_[rank].size());
    for (int i = 0; i < 2 && count > 0; ++i) {
      if (Below(2) == 0) op.after.push_back(static_cast<std::uint32_t>(Below(count)));
    }
    ranks_[rank].push_back(op);
    return ranks_[rank].back();
  }

  void AddSomething() {
    const int what = Below(6);
    if (what < 3) {
      const auto rank = static_cast<std::size_t>(Below(static_cast<int>(ranks_.size())));
      Add(rank, 0).duration = 1 + Below(1000);
    } else if (what < 5) {
      AddCollective(what == 3);
    } else {
      AddMessage();
    }
  }

  void AddCollective(bool everyone) {
    MatchOf match;
    match.duration = 1 + Below(300);
    const std::size_t members = everyone ? ranks_.size() : 2;
    for (std::size_t rank = 0; rank < members; ++rank) {
      Op& op = Add(rank, 1);
      op.match = static_cast<int>(matches_.size());
      op.everyone = everyone;
      op.kind = everyone ? CommunicationKind::kAllReduce : CommunicationKind::kAllGather;
      if (!waits_inside_) op.lag = 0;
      match.members.emplace_back(rank, ranks_[rank].size() - 1);
    }
    matches_.push_back(match);
  }

  void AddMessage() {
    const auto from = static_cast<std::size_t>(Below(static_cast<int>(ranks_.size())));
    const std::size_t to = (from + 1) % ranks_.size();
    MatchOf match;
    match.duration = 1 + Below(100);
    for (const bool send : {true, false}) {
      const std::size_t rank = send ? from : to;
      Op& op = Add(rank, send ? 2 : 3);
      op.match = static_cast<int>(matches_.size());
      op.peer = static_cast<std::int32_t>(send ? to : from);
      op.kind = send ? CommunicationKind::kSend : CommunicationKind::kReceive;
      if (messages_ == MessageRule::kEager) op.duration = send ? match.duration : 0;
      if (!waits_inside_ && messages_ == MessageRule::kRendezvous) op.lag = 0;
      match.members.emplace_back(rank, ranks_[rank].size() - 1);
    }
    matches_.push_back(match);
  }

  bool Together(const Op& op) const {
    return op.match >= 0 && (op.peer < 0 || messages_ == MessageRule::kRendezvous);
  }

  std::int64_t Ready(std::size_t rank, std::size_t id) const {
    const Op& op = ranks_[rank][id];
    std::int64_t ready = 0;
    for (std::size_t before = 0; before < id; ++before) {
      if (ranks_[rank][before].lane == op.lane) ready = std::max(ready, ranks_[rank][before].end);
    }
    for (const std::uint32_t d : op.after) ready = std::max(ready, ranks_[rank][d].end);
    return ready + op.lag;
  }

  void RelaxOne(std::size_t rank, std::size_t id, std::int64_t factor) {
    Op& op = ranks_[rank][id];
    op.start = Ready(rank, id);
    op.end = op.start + (op.match < 0 ? op.duration * factor : op.duration);
    if (op.match < 0) return;
    const MatchOf& match = matches_[static_cast<std::size_t>(op.match)];
    if (!Together(op)) {
      if (op.kind != CommunicationKind::kReceive) return;
      const auto [peer, send] = match.members.front();
      op.end = std::max(op.start, ranks_[peer][send].end);
      return;
    }
    std::int64_t arrived = 0;
    for (const auto& [r, o] : match.members) arrived = std::max(arrived, Ready(r, o));
    if (!waits_inside_) op.start = arrived;
    op.end = arrived + match.duration;
  }

  void Relax(std::int64_t factor) {
    for (auto& ops : ranks_) {
      for (Op& op : ops) op.start = op.end = 0;
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        for (std::size_t id = 0; id < ranks_[rank].size(); ++id) {
          const Op before = ranks_[rank][id];
          RelaxOne(rank, id, factor);
          const Op& after = ranks_[rank][id];
          moved = moved || before.start != after.start || before.end != after.end;
        }
      }
    }
  }

  std::mt19937 random_;
  MessageRule messages_;
  bool waits_inside_;
  std::vector<std::vector<Op>> ranks_;
  std::vector<MatchOf> matches_;
};

}  // namespace optimus::traces
