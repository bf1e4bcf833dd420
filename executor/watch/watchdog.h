#pragma once
// Never hang, never die unnamed. Every rank keeps what it is doing on its node's status board (a
// shared file in memory), and looks after the others of its node while it waits:
//   - no operation of a rank ends for `timeout` while some are left: the run ends, with what every
//     rank is at and waits for (other nodes are asked by World::Post; who does not answer within
//     seconds is named);
//   - a rank of the node is gone (kill -9, crash), or the launcher asks us to stop because a rank
//     died: the lowest living rank of its node says which, and the last operations it was at.

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/runtime/world.h"

namespace optimus::executor {

// Called first thing in a process that may be a rank, before any thread: SIGTERM from a launcher is
// to be read by the watchdog, not to end us unheard.
void HoldTerminationSignals();
// True if one has come since the last call: for waits before there is a watchdog.
bool TakeTerminationSignal();

class Watchdog {
 public:
  // Called by all ranks together.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Create(World& world, absl::Duration timeout);
  ~Watchdog();

  // What this rank does from now on: `current` says it in words ("compute: llm layer 3 ...", shown
  // after `phase`), `progress` is a number that changes when something has ended. Null: nothing
  // that could hang (outside a step; the board then shows `phase`). They are called by Tick.
  void Follow(std::string phase, std::function<std::string()> current,
              std::function<std::int64_t()> progress);

  // This rank is about to end the run because of an error that it prints itself: nobody else has to
  // say anything. Call it before printing.
  void Failing();

  // About every 50 ms, by the thread that waits. DEADLINE_EXCEEDED (hang), ABORTED (a rank died) or
  // CANCELLED (asked to stop) with the whole report, at the rank that has to print it; with an
  // empty message at ranks that only have to end, which is given some seconds later, so that the
  // report is out before World::Abort ends all. A hang's report names every rank (report.h). Time
  // that passes without Tick (a stopped process) does not count as hanging.
  absl::Status Tick();

 private:
  class Impl;
  explicit Watchdog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace optimus::executor
