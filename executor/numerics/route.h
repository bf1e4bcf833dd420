#pragma once
// The way of a micro-batch through the pipeline: which model chunk of which stage after which. Read
// from the forward messages; where none leaves a chunk, the next chunk of the same stage takes over
// (the turn of a V, or a pipeline of one stage). With two copies of the model, one in each
// direction (ir::ModuleInfo::both_directions), there are two ways, each through a chunk of every
// stage.

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::numerics {

struct Stop {
  int stage = 0, chunk = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Stop&, const Stop&) = default;
};

class Route {
 public:
  // UNIMPLEMENTED names an operation of a chunk that is not on one way through all of them (of its
  // direction).
  static absl::StatusOr<Route> Of(const ir::Schedule& schedule);

  // Counted from the model's first; -1: no such chunk.
  int VirtualStageOf(const Stop& stop) const;
  int virtual_stages() const { return virtual_stages_; }

 private:
  std::map<Stop, int> position_;
  int virtual_stages_ = 0;
};

}  // namespace optimus::executor::numerics
