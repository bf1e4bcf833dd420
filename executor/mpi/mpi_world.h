#pragma once
// The World of the processes that mpirun or srun started together.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "executor/runtime/world.h"

namespace optimus::executor {

struct MpiState;  // handles of MPI; mpi_state.h

// Rank 0 gathers and answers, by non-blocking messages that are polled, so that whoever waits too
// long can say for whom. A call that failed leaves the world unusable for all but notes and Abort.
class MpiWorld : public World {
 public:
  // MPI_Init_thread; once a process, before any thread that might call MPI. FAILED_PRECONDITION
  // where the library does not give MPI_THREAD_MULTIPLE. Measures the clocks of other hosts;
  // `measure_all_clocks`: of this host too (for tests: the offset is then known).
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Create(int& argc, char**& argv,
                                                          bool measure_all_clocks = false);
  // MPI_Finalize, unless a call of this world or of its communicators failed: then a process that
  // ends without it lets the launcher end the others.
  ~MpiWorld() override;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const override;
  int size() const override;
  int local_rank() const override;
  int local_size() const override;
  std::string host() const override;
  std::string launcher() const override;
  void SetPatience(absl::Duration patience, std::function<absl::Status()> tick) override;
  // All ranks leave it within some microseconds of each other (as exact as their clocks agree).
  absl::Status Barrier() override;
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override;
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override;
  std::int64_t clock_offset_ns() const override;
  void Post(int to, const std::string& text) override;
  std::optional<Note> Poll() override;
  bool TakesNotesOfAnyThread() const override { return true; }
  [[noreturn]] void Abort(int exit_code) override;

  MpiState& state();  // for the communicators of this folder

 private:
  class Impl;
  explicit MpiWorld(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "Open MPI 4.1.4": of the library that runs. Any time.
std::string MpiLibrary();

}  // namespace optimus::executor
