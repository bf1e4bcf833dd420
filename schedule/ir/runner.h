#pragma once
// The seam: whatever can run a Schedule.

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::ir {

class Runner {
 public:
  virtual ~Runner() = default;
  // The Schedule must have passed Validate. An internal stop (blocked entities) is INTERNAL and
  // names them.
  virtual absl::StatusOr<Timeline> Run(const Schedule& schedule) = 0;
};

}  // namespace optimus::ir
