#include "executor/emulated/emulated_device.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/mpi/mpi_communicator.h"

namespace optimus::executor {
namespace {

// Kernels leave the core to others, so polling takes nothing from them. Messages are small: they
// arrive without help of a receiver that has nothing in flight.
HostOptions HostOptionsFor(const EmulatedOptions& options) {
  HostOptions host;
  host.poll_idle = host.poll_busy = options.poll;
  host.poll_idle_longest = host.poll_in_kernel = 8 * options.poll;
  host.poll_for_others = host.poll_between_steps = 80 * options.poll;
  return host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EmulatedDevice>> EmulatedDevice::Create(
    const CostModel& costs, const EmulatedOptions& options) {
  if (!std::isfinite(options.time_scale) || options.time_scale <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("time scale of the emulated backend: is ", options.time_scale,
                     "; must be above 0 (1000: a profiled microsecond takes a millisecond)"));
  }
  return absl::WrapUnique(new EmulatedDevice(costs, options));
}

EmulatedDevice::EmulatedDevice(const CostModel& costs, const EmulatedOptions& options)
    : HostDevice(HostOptionsFor(options)),
      time_scale_(options.time_scale),
      pacing_(costs, options.time_scale) {}

EmulatedDevice::~EmulatedDevice() { StopThreads(); }

std::string EmulatedDevice::Description() const {
  std::string what = "every operation only takes its time by the profile";
  if (time_scale_ == 1) {
    return what;
  }
  return absl::StrCat(what, ", ", time_scale_ > 1 ? time_scale_ : 1 / time_scale_, " times ",
                      time_scale_ > 1 ? "slower" : "faster");
}

absl::Status EmulatedDevice::PrepareKernels(absl::Span<const Kernel> /*kernels*/) {
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> EmulatedDevice::RunKernel(const Kernel& kernel,
                                                       std::int64_t ready_ns) {
  const std::int64_t end_ns = pacing_.KernelEndNs(kernel, ready_ns);
  OPTIMUS_RETURN_IF_ERROR(SleepInKernelUntilNs(end_ns));
  return end_ns;
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeEmulatedCommunicator(World& world,
                                                                       EmulatedDevice& device) {
  return MakeMpiCommunicator(world, device, &device.pacing());
}

}  // namespace optimus::executor
