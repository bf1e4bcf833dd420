#pragma once
// Too little memory as an error, where there is somebody to tell.

#include <new>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"

namespace optimus {

// What `work` returns (a Status or StatusOr), or RESOURCE_EXHAUSTED with the text that `error`
// gives. Unwinding has freed what `work` held, so there is memory for it.
template <class Error, class Work>
auto CatchOutOfMemory(Error error, Work work) -> decltype(work()) {
  try {
    return std::move(work)();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(error());
  } catch (const std::length_error&) {  // a container larger than any memory
    return absl::ResourceExhaustedError(error());
  }
}

}  // namespace optimus
