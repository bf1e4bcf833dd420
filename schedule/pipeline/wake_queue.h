#pragma once
// Which stage looks up next, for schedulers that go through time: wake-up times by stage, the
// earliest first, of equals the lower stage. A stage has few of them at once, so each keeps its
// own, under a tournament tree of the stages.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/units.h"

namespace optimus::pipeline {

class WakeQueue {
 public:
  explicit WakeQueue(int stages) : times_(static_cast<std::size_t>(stages)) {
    while (leaves_ < times_.size()) leaves_ *= 2;
    earliest_.assign(leaves_, kNone);
    winners_.resize(leaves_ * 2);
    for (std::size_t leaf = 0; leaf < leaves_; ++leaf) winners_[leaves_ + leaf] = leaf;
    for (std::size_t node = leaves_ - 1; node > 0; --node) winners_[node] = winners_[2 * node];
  }

  // The same time twice is one wake-up.
  void Add(int stage, Picoseconds time) {
    std::vector<Picoseconds>& times = times_[stage];
    const auto place = std::lower_bound(times.begin(), times.end(), time, std::greater<>());
    if (place != times.end() && *place == time) return;
    const bool earliest = place == times.end();
    times.insert(place, time);
    if (earliest && stage != taken_) Refresh(static_cast<std::size_t>(stage));
  }

  // The stage, the one that was taken last, wakes at `time` and not before.
  void SleepUntil(int stage, Picoseconds time) {
    std::vector<Picoseconds>& times = times_[stage];
    while (!times.empty() && times.back() < time) times.pop_back();
    if (times.empty() || times.back() != time) times.push_back(time);
  }

  // False if there is none.
  bool Take(Picoseconds& time, int& stage) {
    if (taken_ >= 0) Refresh(static_cast<std::size_t>(taken_));
    const std::size_t winner = winners_[1];
    if (earliest_[winner] == kNone) return false;
    stage = taken_ = static_cast<int>(winner);
    time = times_[winner].back();
    times_[winner].pop_back();
    return true;
  }

 private:
  static constexpr Picoseconds kNone{std::numeric_limits<std::int64_t>::max()};

  // Up the tree, against the winner of the other half of each round.
  void Refresh(std::size_t stage) {
    const std::vector<Picoseconds>& times = times_[stage];
    earliest_[stage] = times.empty() ? kNone : times.back();
    auto winner = std::make_pair(earliest_[stage], stage);
    for (std::size_t node = leaves_ + stage; node > 1; node /= 2) {
      const std::size_t other = winners_[node ^ 1U];
      winner = std::min(winner, std::make_pair(earliest_[other], other));
      winners_[node / 2] = winner.second;
    }
  }

  std::vector<std::vector<Picoseconds>> times_;  // by stage, the earliest last
  std::size_t leaves_ = 1;                       // a power of two
  std::vector<Picoseconds> earliest_;            // by leaf, which are the stages
  std::vector<std::size_t> winners_;             // by node, root 1: a leaf
  // Whose leaf is out of date: the stage that was taken mostly gets a new time at once.
  int taken_ = -1;
};

}  // namespace optimus::pipeline
