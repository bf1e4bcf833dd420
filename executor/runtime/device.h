#pragma once
// The seam to what computes: in-order streams, events between them, kernels of given shape. All
// calls that take a stream enqueue and return at once; work of one stream runs in the order in
// which it was enqueued. One thread calls.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/kernel.h"
#include "executor/runtime/stamp.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

// Index of an event, from 0; set at most once a step. The runtime uses two an operation.
using Event = std::uint32_t;
constexpr Event BeginEvent(std::uint32_t operation) { return 2 * operation; }
constexpr Event EndEvent(std::uint32_t operation) { return 2 * operation + 1; }

class Device {
 public:
  virtual ~Device() = default;
  // One line for results: what computes, by which library, in which arithmetic.
  virtual std::string Description() const = 0;

  // Once, before the first step (again: for another schedule): room for `events` events and
  // `slots` stamps, and whatever launching one of `kernels` needs (memory, primitives, handles).
  // RESOURCE_EXHAUSTED or UNIMPLEMENTED names the kernel. `kernels` are distinct; the runtime keeps
  // them where they are and launches just those objects.
  virtual absl::Status Prepare(std::uint32_t events, std::uint32_t slots,
                               absl::Span<const Kernel> kernels) = 0;

  // A step: Begin (all events and stamps unset), enqueue, Start. Nothing that is enqueued runs
  // before Start where the device can hold it back (the host's streams); elsewhere it may.
  virtual absl::Status Begin() = 0;
  virtual void Wait(ir::Stream stream, Event event) = 0;
  virtual void Record(ir::Stream stream, Event event) = 0;
  // `kernel` must outlive the step. The device reads and writes memory of its own: the operands
  // hold no meaning, their sizes do.
  virtual absl::Status Launch(ir::Stream stream, const Kernel& kernel) = 0;
  // Work on real data, where the device is the host; UNIMPLEMENTED elsewhere.
  virtual absl::Status LaunchHost(ir::Stream stream, std::function<absl::Status()> work) = 0;
  // Writes a stamp into a slot, or compares the slot with `expected` and fails the step where it
  // differs; `text` (may be null: numbers only) describes a stamp, and outlives the step.
  virtual void WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) = 0;
  virtual void CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                          const std::function<std::string(const Stamp&)>* text) = 0;
  virtual absl::Status Start() = 0;

  // Waits up to `limit`; true: everything enqueued has ended. The first error of any operation,
  // communication included; then the step cannot be finished.
  virtual absl::StatusOr<bool> Synchronize(absl::Duration limit) = 0;
  virtual bool HasHappened(Event event) const = 0;  // any time between Start and the next Begin
  // When it happened: this host's CLOCK_MONOTONIC, nanoseconds. After Synchronize gave true.
  virtual std::int64_t TimeNs(Event event) const = 0;
  // Where time is emulated: when it should have happened, on the same clock. 0 elsewhere.
  virtual std::int64_t NominalNs(Event /*event*/) const { return 0; }

  // RAM or GPU memory in all.
  virtual Bytes memory() const = 0;
};

}  // namespace optimus::executor
