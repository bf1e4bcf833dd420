#pragma once
// A backend whose kernels and transfers only take their time. Everything else is real: threads,
// events, stamps, and messages between processes (headers without payload). So order, deadlocks and
// faults can be tried with many ranks on few cores, and its steps compared with a prediction.
//
// Time is kept by nominal deadlines: an operation ends at the nominal end of what it waited for
// plus its duration, however late the thread woke, so that lateness does not add up. What begins
// late is shorter by that: measured, computing is a little too short and the waits around it too
// long. A step is longer than its prediction only where the machine is late at its end, or where
// operations are so short that it cannot keep up; then a larger time scale helps. NominalNs says
// how late it was.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "executor/emulated/emulated_pacing.h"
#include "executor/host/host_device.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/world.h"

namespace optimus::executor {

struct EmulatedOptions {
  double time_scale = 1;  // real time per priced time
  // How often a rank looks whether the others have come (less often where it waits for long); it
  // adds to operations that are shorter.
  absl::Duration poll = absl::Microseconds(250);
};

class EmulatedDevice : public HostDevice {
 public:
  // `costs` outlives it. INVALID_ARGUMENT where the scale is no number above 0.
  static absl::StatusOr<std::unique_ptr<EmulatedDevice>> Create(const CostModel& costs,
                                                                const EmulatedOptions& options);
  ~EmulatedDevice() override;
  // "every operation only takes its time by the profile, 1000 times slower"
  std::string Description() const override;
  std::int64_t NominalNs(Event event) const override { return NominalTimeNs(event); }
  Pacing& pacing() { return pacing_; }

 protected:
  absl::Status PrepareKernels(absl::Span<const Kernel> kernels) override;
  absl::StatusOr<std::int64_t> RunKernel(const Kernel& kernel, std::int64_t ready_ns) override;

 private:
  EmulatedDevice(const CostModel& costs, const EmulatedOptions& options);
  const double time_scale_;
  EmulatedPacing pacing_;
};

// The Communicator of all ranks of `world`, an MpiWorld, with the device's pacing. World and device
// outlive it. All ranks call it together.
absl::StatusOr<std::unique_ptr<Communicator>> MakeEmulatedCommunicator(World& world,
                                                                       EmulatedDevice& device);

}  // namespace optimus::executor
