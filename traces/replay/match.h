#pragma once
// Who takes part in which collective, and which receive belongs to which send.

#include <string>
#include <vector>

#include "traces/replay/graph.h"

namespace optimus::traces {

struct Match {
  std::vector<TaskId> members;  // ascending by rank; a message: the send, then the receive
  bool eager = false;           // a message whose send does not wait
};

struct Matches {
  std::vector<Match> matches;
  struct Single {
    TaskId task = kNoTask;
    std::string what, effect;
  };
  std::vector<Single> singles;  // without partners: they run by themselves
};

// Collectives are matched by group and sequence number; where a rank recorded no numbers, by their
// order on it. Where ranks recorded different numbers of a group's collectives, they are shifted so
// that most agree in kind and size. Messages are matched by sender, receiver and tag, in order.
// Needs recording, first_task and tasks (rank, start).
Matches FindMatches(const ReplayGraph& graph);

}  // namespace optimus::traces
