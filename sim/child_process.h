#pragma once
// Runs a function in a forked child and brings back the bytes it returns. SimGrid allows one engine
// per process, and a crash of a simulation must not take the caller along.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace optimus::sim {

struct ChildResult {
  std::string bytes;
  std::int64_t peak_rss_bytes = 0;
};

// The status or the bytes that `work` returned in the child. INTERNAL with the signal or exit code
// and a hint where the child dies, RESOURCE_EXHAUSTED where it runs out of memory, UNAVAILABLE
// where it cannot be started. Does not hang: it reads until the child's end of the pipe is closed.
// The child is killed where the calling thread ends first.
absl::StatusOr<ChildResult> RunInChild(const std::function<absl::StatusOr<std::string>()>& work);

}  // namespace optimus::sim
