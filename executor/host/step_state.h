#pragma once
// What the caller's thread, the compute thread and the communication thread of a HostDevice share.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "executor/host/event_table.h"
#include "executor/host/sleeper.h"
#include "executor/host/stream_queue.h"

namespace optimus::executor {

// The communication thread's sleep, as far as it concerns the compute thread.
enum class Nap : std::uint8_t {
  kNone,       // it is awake, or needs no help
  kHelp,       // there is something that the compute thread may poll between kernels
  kImpatient,  // the same, and it would poll more often if the compute thread were idle
};

struct StepState {
  explicit StepState(HostOptions host_options) : options(host_options) {}

  const HostOptions options;
  EventTable events;
  StampTable stamps;
  std::array<StreamQueue, ir::kStreamCount> queues;
  // Nominal start of the step: when its first operation begins, whichever thread it is on; 0
  // before. Counted from Start, a step would be shorter by as much as the threads woke late.
  std::atomic<std::int64_t> start_ns{0};

  // One for each thread; only the thread itself sleeps on it.
  Sleeper caller, compute, communication;
  // Steps that were started; a thread runs one when the number changes. Stored after the queues.
  std::atomic<std::uint32_t> started{0};
  std::atomic<int> running{0};             // threads that have not left the step yet
  std::atomic<bool> given_up{false};       // the step; for good
  std::atomic<bool> quit{false};           // the threads are to end
  std::atomic<bool> compute_idle{true};    // the compute thread sleeps or is about to
  std::atomic<Nap> nap{Nap::kNone};        // how the communication thread sleeps
  std::atomic<std::int64_t> polled_ns{0};  // its last round of polling, or the compute thread's

  std::mutex progress_mutex;
  std::function<void()> progress;  // under progress_mutex
  std::atomic<bool> has_progress{false};

  // A stream's first operation has nothing before it that says when it can begin.
  void BeginStream(StreamCursor& cursor, std::int64_t now_ns);
  // The first error counts.
  void Fail(absl::Status error);
  absl::Status error();
  // A thread leaves the step.
  void Leave();
  // Tells everybody that sleeps to look again.
  void WakeAll();
  // Commands that need no waiting and are the same on all streams: kRecord and the stamps. False:
  // the command is another. DATA_LOSS where a stamp differs.
  absl::StatusOr<bool> RunSimple(StreamCursor& cursor, Waiter other);

 private:
  void Record(StreamCursor& cursor, Event event, Waiter other);
  absl::Status CompareStamp(std::uint32_t slot, const Stamp& expected,
                            const StreamQueue::StampText* text) const;
  std::mutex error_mutex_;
  absl::Status error_;
};

}  // namespace optimus::executor
