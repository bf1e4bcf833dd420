#pragma once
// The ranks of a run and how they agree outside a step. Calls block, but yield the core, and give
// up with DEADLINE_EXCEEDED after the patience that was set.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optimus::executor {

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this node
  virtual int local_size() const = 0;
  virtual std::string host() const = 0;
  virtual std::string launcher() const = 0;  // "mpi", "torchrun", "alone"

  // How long the calls below wait; `tick` is called about every 50 ms meanwhile (may be null), and
  // its error ends the wait.
  virtual void SetPatience(absl::Duration patience, std::function<absl::Status()> tick) = 0;
  virtual absl::Status Barrier() = 0;
  // At rank 0 what every rank gave, by rank; elsewhere empty.
  virtual absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) = 0;
  // What rank 0 gave.
  virtual absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) = 0;
  // Add to this host's CLOCK_MONOTONIC to get rank 0's. 0 on the same host.
  virtual std::int64_t clock_offset_ns() const = 0;

  // Small notes from rank to rank, outside all else: for the watchdog. Never blocks; may lose a
  // note to a rank that is gone.
  struct Note {
    int from = 0;
    std::string text;
  };
  virtual void Post(int to, const std::string& text) = 0;
  virtual std::optional<Note> Poll() = 0;
  // Whether one thread at a time may call these two beside a thread that is in other calls.
  virtual bool TakesNotesOfAnyThread() const { return false; }

  // Ends all ranks, with this exit code where the launcher allows it.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

// One rank, without a launcher.
std::unique_ptr<World> MakeSelfWorld();

}  // namespace optimus::executor
