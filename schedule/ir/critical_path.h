#pragma once
// The contention-free runner: every operation lasts its own time, links are never shared. One
// replica of each stage and lane is run (d = 0, the lane's first t; a message's link is that
// replica's). It is the plain twin of the simulator, and the lower bound where links contend.

#include "absl/status/status.h"
#include "base/cost_model.h"
#include "schedule/ir/runner.h"

namespace optimus::ir {

class CriticalPathRunner : public Runner {
 public:
  explicit CriticalPathRunner(const CostModel& costs) : costs_(costs) {}
  // INVALID_ARGUMENT also where times would overflow (CheckLength) or nodes differ (CheckNodeSize).
  absl::StatusOr<Timeline> Run(const Schedule& schedule) override;

 private:
  const CostModel& costs_;
};

// How many ranks a group has, and how many of them share a node: the fewest that any group of this
// kind has in any node it touches (the worst case, where groups lie differently over the nodes).
GroupShape ShapeOf(const Schedule& schedule, const Group& group);
// True if rank (stage, d, t) and its peer are in one node. The peer is (peer_stage, d, t), or where
// another lane is given the rank at t's place of that lane.
bool SameNode(const Schedule& schedule, int stage, int peer_stage, int d, int t,
              int peer_lane = -1);

// SameNode over all d and all t of one lane; lane -1: over all t, each with its peer in its own
// lane.
struct SharedNodes {
  bool any = false;          // for some (d, t)
  bool all = false;          // for every (d, t)
  bool groups_agree = true;  // for every d: for all t or for none
};
SharedNodes SharedNodesOf(const Schedule& schedule, int stage, int peer_stage, int lane = -1,
                          int peer_lane = -1);

// INVALID_ARGUMENT with both numbers where the Schedule has nodes of another size than its prices.
absl::Status CheckNodeSize(const Schedule& schedule, const CostModel& costs);

}  // namespace optimus::ir
