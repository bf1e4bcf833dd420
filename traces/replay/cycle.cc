#include "traces/replay/cycle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace optimus::traces {
namespace {

class CycleFinder {
 public:
  CycleFinder(const ReplayGraph& graph, const std::vector<bool>& done)
      : graph_(graph), done_(done) {}

  // Each waits for the next, the last for the first.
  std::vector<TaskId> Find() const {
    std::vector<TaskId> path;
    std::vector<std::int64_t> place(graph_.tasks.size(), -1);
    TaskId task = FirstStuck();
    while (place[task] < 0) {
      place[task] = static_cast<std::int64_t>(path.size());
      path.push_back(task);
      task = AwaitedBy(task);
    }
    path.erase(path.begin(), path.begin() + place[task]);
    return path;
  }

 private:
  TaskId FirstStuck() const {
    const auto stuck = std::find(done_.begin(), done_.end(), false);
    return static_cast<TaskId>(stuck - done_.begin());
  }
  // Something that has not run and keeps `task` from running.
  TaskId AwaitedBy(TaskId task) const {
    if (const TaskId before = Before(task); before != kNoTask) return before;
    // It is there itself: a member of its transfer is not.
    const auto transfer = static_cast<std::size_t>(graph_.tasks[task].transfer);
    for (const TaskId member : graph_.MembersOf(graph_.transfers[transfer])) {
      if (member != task && Before(member) != kNoTask) return member;
    }
    return task;
  }
  TaskId Before(TaskId task) const {
    for (const WaitEdge& edge : graph_.EdgesOf(task)) {
      if (!done_[edge.from]) return edge.from;
    }
    return kNoTask;
  }

  const ReplayGraph& graph_;
  const std::vector<bool>& done_;
};

}  // namespace

absl::Status CycleError(const ReplayGraph& graph, const std::vector<bool>& done) {
  const std::vector<TaskId> cycle = CycleFinder(graph, done).Find();
  constexpr std::size_t kShown = 8;
  std::string members;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
    const TaskId task = cycle[i];
    const std::size_t op =
        task - graph.first_task[static_cast<std::size_t>(graph.tasks[task].rank)];
    absl::StrAppend(&members, i == 0 ? "" : ", which waits for ", "rank ", graph.rank_of(task),
                    " '", graph.name(task), "' (operation ", op, ")");
  }
  if (cycle.size() > kShown) absl::StrAppend(&members, ", ... (", cycle.size(), " in all)");
  return absl::InvalidArgumentError(
      absl::StrCat("operations wait for each other in a circle: ", members,
                   ", which waits for the first; hint: the trace's dependencies cannot have run"));
}

}  // namespace optimus::traces
