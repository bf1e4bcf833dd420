#pragma once
// For the tests that mpirun starts: a device without kernels, and steps on it.

#include <string>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "executor/host/host_device.h"

namespace optimus::executor {

class TransferDevice : public HostDevice {
 public:
  explicit TransferDevice(HostOptions options = {}) : HostDevice(options) {}
  ~TransferDevice() override { StopThreads(); }
  std::string Description() const override { return "no kernels"; }

  // Starts what was enqueued since Begin and waits for its end: the first error.
  absl::Status RunStep(absl::Duration patience = absl::Seconds(60)) {
    OPTIMUS_RETURN_IF_ERROR(Start());
    const absl::Time end = absl::Now() + patience;
    while (absl::Now() < end) {
      OPTIMUS_ASSIGN_OR_RETURN(const bool done, Synchronize(absl::Milliseconds(50)));
      if (done) {
        return absl::OkStatus();
      }
    }
    return absl::DeadlineExceededError("the step did not end");
  }

 protected:
  absl::Status PrepareKernels(absl::Span<const Kernel> /*kernels*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::int64_t> RunKernel(const Kernel& /*kernel*/, std::int64_t ready_ns) override {
    return ready_ns;
  }
};

}  // namespace optimus::executor
