#pragma once
// Measures what a cost model needs, through the executor's seams, so for every backend alike. All
// ranks call every function together; all do the same work at the same time, because a core or GPU
// whose neighbours idle is faster than one in a training step. Samples of several rounds can be
// put together, so that profiling and running may take turns while a machine drifts.
//
// What is measured is run as a Schedule by the Runtime, so a time holds all that it holds in a
// training step:
//   - a kernel: from the end of the one before it in a full stream to its own end;
//   - a collective: from the moment when the last member's compute stream is done with what the
//     collective waits for, until the last member's compute stream can go on after it;
//   - a message: the same from the sender to the receiver (half of a round trip);
//   - so waking the threads or streams at both ends of a transfer is in its time, as a step pays
//   for
//     it. (A measured timeline has the second part in the kernel that waited.)

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/measurement.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/world.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

// A transfer to measure: between the ranks of one group of that shape.
struct TransferCase {
  bool send = false;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  LinkScope scope = LinkScope::kNvlink;
  GroupShape group;
  std::vector<Bytes> sizes;  // ascending
  Bytes used{0};             // the largest that a schedule moves; 0: the largest of `sizes`
};

struct MeasurePlan {
  std::vector<Kernel> kernels;  // distinct; none of kFixed
  std::vector<TransferCase> transfers;
  bool interference = false;
};

// The kernels and transfers of a Schedule. Transfer sizes: those of the Schedule, powers of two
// from 1 KiB up to the largest of them, and 64 KiB and 1 MiB where they are larger, so that alpha
// and beta can be told apart whatever the Schedule moves.
MeasurePlan PlanFor(const ir::Schedule& schedule);
void Merge(MeasurePlan& plan, const MeasurePlan& other);
// Kernels over a range of sizes of each kind: what a roofline is fitted to where no schedule is
// given. `most`: of the largest GEMM; the default takes a CPU core 0.2 s, a GPU needs about 2e12.
MeasurePlan GenericPlan(int ranks, int ranks_per_node, Flops most = Flops(2e10));

// Samples, nanoseconds, by index into the plan. Means over ranks of each repetition.
struct Samples {
  std::vector<std::vector<double>> kernels_ns;                 // by kernel, repetition
  std::vector<std::vector<std::vector<double>>> transfers_ns;  // by transfer, size, repetition
  std::vector<double> launch_ns;
  // Factors of slow-down: a kernel under an NVLink collective, under a network collective, and an
  // NVLink collective that starts under a kernel.
  std::vector<double> kernel_under_nvlink, kernel_under_nic, collective_under_kernel;
};

// What is measured from now on, for a watchdog: as Watchdog::Follow. Null functions: nothing for
// the moment.
using FollowMeasuring = std::function<void(std::string what, std::function<std::string()> current,
                                           std::function<std::int64_t()> progress)>;

// One round: `repetitions` of everything after one of warm-up, added to `samples` (at every rank
// the same: rank 0's are broadcast). It prepares the device and connects the communicator for
// schedules of its own, so a Runtime that was made before must be made anew before its next step.
// `while_waiting` as in Runtime::Step; it and `follow` may be null. INVALID_ARGUMENT names a
// transfer that this world is too small for. A transfer between nodes is measured inside the node
// where there is only one, and the other way round: as a schedule for such nodes would run here.
absl::Status MeasureRound(const MeasurePlan& plan, World& world, Device& device,
                          Communicator& ranks, int repetitions, Samples& samples,
                          const std::function<absl::Status()>& while_waiting = nullptr,
                          const FollowMeasuring& follow = nullptr);

// Medians and quartiles.
HardwareMeasurements Summarize(const MeasurePlan& plan, const Samples& samples, World& world,
                               const Device& device, const std::string& backend,
                               const std::string& date);

}  // namespace optimus::executor
