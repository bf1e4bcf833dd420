#pragma once
// For tests and benchmarks: a HostDevice whose kernels are a function, and tasks made of functions.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "executor/host/host_device.h"

namespace optimus::executor::testing {

// Kernels do nothing and end at their nominal start, unless `run` is given.
class FunctionDevice : public HostDevice {
 public:
  using Run = std::function<absl::StatusOr<std::int64_t>(const Kernel&, std::int64_t ready_ns)>;
  explicit FunctionDevice(HostOptions options = {}, Run run = nullptr)
      : HostDevice(options), run_(std::move(run)) {}
  ~FunctionDevice() override { StopThreads(); }
  std::string Description() const override { return "functions"; }
  absl::Status Sleep(std::int64_t until_ns) { return SleepInKernelUntilNs(until_ns); }
  void set_run(Run run) { run_ = std::move(run); }  // between steps

 protected:
  absl::Status PrepareKernels(absl::Span<const Kernel> /*kernels*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::int64_t> RunKernel(const Kernel& kernel, std::int64_t ready_ns) override {
    if (run_ == nullptr) return ready_ns;
    return run_(kernel, ready_ns);
  }

 private:
  Run run_;
};

// Ends with the poll for which `poll` gives a nominal end; without one at its first poll, at its
// nominal start.
struct FunctionTask : HostTask {
  std::function<absl::Status(std::int64_t ready_ns)> start;
  std::function<absl::StatusOr<std::optional<std::int64_t>>()> poll;
  std::int64_t not_before_ns = 0;
  std::int64_t ready_ns = 0;

  absl::Status Start(std::int64_t ready) override {
    ready_ns = ready;
    return start ? start(ready) : absl::OkStatus();
  }
  absl::StatusOr<std::optional<std::int64_t>> Poll() override {
    if (poll == nullptr) return std::optional<std::int64_t>(ready_ns);
    return poll();
  }
  std::int64_t NotBeforeNs() const override { return not_before_ns; }
};

}  // namespace optimus::executor::testing
