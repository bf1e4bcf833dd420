#pragma once
// What the operations of one rank's program do with real data. Without one, a Device and a
// Communicator work on memory that means nothing.

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor {

class Workload {
 public:
  virtual ~Workload() = default;
  // Before every step.
  virtual absl::Status Begin(int step) = 0;
  // The work of a kKernel operation. UNIMPLEMENTED names a kernel that it does not know.
  virtual absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t operation) = 0;
  // The data of a kCollective, kSend or kReceive operation.
  virtual absl::StatusOr<Payload> Data(std::uint32_t operation) = 0;
};

}  // namespace optimus::executor
