#pragma once
// std::bad_alloc on a thread of a device as an error of the step: nobody above could catch it.

#include <new>
#include <utility>

#include "absl/status/status.h"

namespace optimus::executor {

// What `work` returns, or RESOURCE_EXHAUSTED. Unwinding has freed what `work` held, so there is
// memory for the message.
template <class Work>
absl::Status CatchOutOfMemory(Work work) {
  try {
    return std::move(work)();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory within a step; hint: fewer ranks of this machine, or smaller kernels and "
        "messages");
  }
}

}  // namespace optimus::executor
