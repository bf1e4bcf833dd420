#pragma once
// std::bad_alloc on a thread of a device as an error of the step: nobody above could catch it.

#include <utility>

#include "absl/status/status.h"
#include "base/out_of_memory.h"

namespace optimus::executor {

// What `work` returns, or RESOURCE_EXHAUSTED.
template <class Work>
absl::Status CatchOutOfMemory(Work work) {
  return optimus::CatchOutOfMemory(
      [] {
        return "out of memory within a step; hint: fewer ranks of this machine, or smaller kernels "
               "and messages";
      },
      std::move(work));
}

}  // namespace optimus::executor
