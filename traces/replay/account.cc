#include "traces/replay/account.h"

#include <algorithm>
#include <cstdint>

namespace optimus::traces {
namespace {

// States in the order in which they count: compute, the classes of communication, waiting, copy.
class Sweep {
 public:
  Sweep(const ReplayGraph& graph, const OpClasses& classes, const Run& run)
      : graph_(graph), classes_(classes), run_(run), states_(classes.names.size() + 2) {}

  TimeAccount Of(std::size_t rank) {
    TimeAccount times;
    times.rank = graph_.recording.ranks[rank].rank;
    times.stands_for = graph_.recording.ranks[rank].stands_for;
    times.exposed.resize(classes_.names.size());
    times.total.resize(classes_.names.size());
    changes_.clear();
    for (TaskId task = graph_.first_task[rank]; task < graph_.first_task[rank + 1]; ++task) {
      AddTask(task, times);
    }
    std::sort(changes_.begin(), changes_.end());
    Attribute(times);
    return times;
  }

 private:
  struct Change {
    Picoseconds time;
    std::int32_t state = 0;
    std::int32_t add = 0;
    friend bool operator<(const Change& a, const Change& b) {
      if (a.time != b.time) return a.time < b.time;
      return a.state != b.state ? a.state < b.state : a.add < b.add;
    }
  };
  std::int32_t waiting() const { return static_cast<std::int32_t>(classes_.names.size()); }
  std::int32_t copying() const { return waiting() + 1; }

  void AddInterval(std::int32_t state, Picoseconds from, Picoseconds to) {
    from = std::clamp(from, Picoseconds(0), run_.step);
    to = std::clamp(to, Picoseconds(0), run_.step);
    if (from >= to) return;
    changes_.push_back({from, state, 1});
    changes_.push_back({to, state, -1});
  }

  void AddTask(TaskId task, TimeAccount& times) {
    const std::int32_t cls = classes_.of_task[task];
    const TaskRun& run = run_.tasks[task];
    switch (classes_.kinds[static_cast<std::size_t>(cls)]) {
      case OpKind::kCompute:
        AddInterval(0, run.start, run.end);
        break;
      case OpKind::kCopy:
        AddInterval(copying(), run.start, run.end);
        break;
      case OpKind::kHost:
        break;  // the account is that of the GPU
      case OpKind::kCommunication:
        return AddCommunication(task, cls, times);
    }
    times.total[static_cast<std::size_t>(cls)] += run.end - run.start;
  }

  void AddCommunication(TaskId task, std::int32_t cls, TimeAccount& times) {
    const TaskRun& run = run_.tasks[task];
    const bool posted = graph_.recording.messages == MessageRule::kEager &&
                        graph_.communication(task)->kind == CommunicationKind::kReceive;
    if (posted) return AddInterval(waiting(), run.start, run.end);
    AddInterval(waiting(), run.start, run.moving);
    AddInterval(cls, run.moving, run.end);
    times.total[static_cast<std::size_t>(cls)] += run.end - run.moving;
  }

  void Attribute(TimeAccount& times) {
    std::fill(states_.begin(), states_.end(), 0);
    Picoseconds at;
    for (const Change& change : changes_) {
      Add(times, change.time - at);
      at = change.time;
      states_[static_cast<std::size_t>(change.state)] += change.add;
    }
    Add(times, run_.step - at);
  }

  void Add(TimeAccount& times, Picoseconds length) {
    const auto first = std::find_if(states_.begin(), states_.end(),
                                    [](std::int32_t active) { return active > 0; });
    const auto state = static_cast<std::int32_t>(first - states_.begin());
    if (first == states_.end()) {
      times.idle += length;
    } else if (state == 0) {
      times.compute += length;
    } else if (state == waiting()) {
      times.waiting += length;
    } else if (state == copying()) {
      times.copy += length;
    } else {
      times.exposed[static_cast<std::size_t>(state)] += length;
    }
  }

  const ReplayGraph& graph_;
  const OpClasses& classes_;
  const Run& run_;
  std::vector<std::int32_t> states_;  // how many are going on
  std::vector<Change> changes_;
};

}  // namespace

std::vector<TimeAccount> AccountOf(const ReplayGraph& graph, const OpClasses& classes,
                                   const Run& run) {
  Sweep sweep(graph, classes, run);
  std::vector<TimeAccount> ranks;
  ranks.reserve(graph.recording.ranks.size());
  for (std::size_t rank = 0; rank < graph.recording.ranks.size(); ++rank) {
    ranks.push_back(sweep.Of(rank));
  }
  return ranks;
}

namespace {

// Sums of picoseconds over thousands of GPUs do not fit 64 bits.
class Mean {
 public:
  void Add(Picoseconds time, std::int32_t times) {
    sum_ += static_cast<__int128>(time.value()) * times;
    count_ += times;
  }
  Picoseconds value() const {
    return Picoseconds(count_ == 0 ? 0 : static_cast<std::int64_t>(sum_ / count_));
  }

 private:
  __int128 sum_ = 0;
  std::int64_t count_ = 0;
};

template <class Get>
Picoseconds MeanBy(const std::vector<TimeAccount>& ranks, Get get) {
  Mean mean;
  for (const TimeAccount& rank : ranks) mean.Add(get(rank), rank.stands_for);
  return mean.value();
}

}  // namespace

TimeAccount MeanOf(const std::vector<TimeAccount>& ranks) {
  TimeAccount mean;
  mean.stands_for = 0;
  for (const TimeAccount& rank : ranks) mean.stands_for += rank.stands_for;
  mean.compute = MeanBy(ranks, [](const TimeAccount& r) { return r.compute; });
  mean.copy = MeanBy(ranks, [](const TimeAccount& r) { return r.copy; });
  mean.waiting = MeanBy(ranks, [](const TimeAccount& r) { return r.waiting; });
  mean.idle = MeanBy(ranks, [](const TimeAccount& r) { return r.idle; });
  const std::size_t classes = ranks.empty() ? 0 : ranks.front().total.size();
  for (std::size_t i = 0; i < classes; ++i) {
    mean.exposed.push_back(MeanBy(ranks, [i](const TimeAccount& r) { return r.exposed[i]; }));
    mean.total.push_back(MeanBy(ranks, [i](const TimeAccount& r) { return r.total[i]; }));
  }
  return mean;
}

}  // namespace optimus::traces
