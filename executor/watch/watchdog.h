#pragma once
// Never hang, never die unnamed. Every rank keeps what it is doing on its node's status board (a
// shared file in memory), and looks after the others of its node while it waits:
//   - no operation of a rank ends for `timeout` while some are left: the run ends, with what every
//     rank is at and waits for (other nodes are asked by World::Post; who does not answer within
//     seconds is named);
//   - outside a step, where any rank may be busy for long, a rank of the node is stopped (SIGSTOP)
//     for `timeout`, or rank 0 of another node does not answer: the same report;
//   - a rank of the node is gone (kill -9, crash), or the launcher asks us to stop because a rank
//     died: the lowest living rank of its node says which, and the last operations it was at;
//   - SIGTERM to all ranks or to some of them: the lowest of these says so.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/runtime/world.h"
#include "executor/watch/termination.h"

namespace optimus::executor {

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
  // say anything. Call it before printing. False: another rank of the node was quicker, and was
  // given time to print; this one has nothing to say.
  bool Failing();
  // Of every rank, as in a report of a hang: for errors of who waited too long.
  std::string DescribeAll();

  // About every 50 ms, by the thread that waits. DEADLINE_EXCEEDED (hang), ABORTED (a rank died) or
  // CANCELLED (asked to stop) with the whole report, at the rank that has to print it; with an
  // empty message at ranks that only have to end, which is given some seconds later, so that the
  // report is out before World::Abort ends all. A hang's report names every rank (report.h). Time
  // that passes without Tick (a stopped process) does not count as hanging.
  absl::Status Tick();

  // For a Guard: does what Tick does, but for the report of operations that do not end, where Tick
  // has not been called for a while. An error is to be printed by the caller, which ends the
  // process. So it is with an error of Tick that whoever got it has not taken to the end of the
  // process soon: taking down what a rank was at may take long where another one is gone.
  absl::Status StandIn();

 private:
  class Impl;
  explicit Watchdog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace optimus::executor
