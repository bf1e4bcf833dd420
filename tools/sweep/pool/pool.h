#pragma once
// Many jobs, a few at a time, each in a process of its own: SimGrid allows one engine per process,
// nothing that a job leaks or breaks lasts, and a job that is killed takes nobody along.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optimus::sweep {

struct JobLimits {
  double wall_s = 0;              // 0: none
  std::int64_t memory_bytes = 0;  // address space of the job's process; 0: none
};

struct JobOutcome {
  std::int64_t job = 0;
  // What `work` returned, or DEADLINE_EXCEEDED after limits.wall_s, RESOURCE_EXHAUSTED where it ran
  // out of memory, INTERNAL where it died twice: a process that dies may have been hit by chance,
  // so that an INTERNAL job is started once more before it counts.
  absl::StatusOr<std::string> result;
  double wall_s = 0;
  double peak_memory_mib = 0;  // resident, of its process or of one that it started
};

struct Pool {
  int workers = 1;
  JobLimits limits;
  // The next job to start; absent: no more for now. It is asked again whenever a job has ended, and
  // all is over when it has no more and nothing runs.
  std::function<std::optional<std::int64_t>()> next;
  // `next` asks for nothing that `done` tells: the next job starts before what has ended is taken
  // care of, and no core waits for that.
  bool independent = false;
  // In the job's own process.
  std::function<absl::StatusOr<std::string>(std::int64_t job)> work;
  // In the caller's process, in the order in which jobs end. An error stops everything.
  std::function<absl::Status(JobOutcome)> done;
  // Asked several times a second. True: kill what runs, and return CANCELLED. May be empty.
  std::function<bool()> stop;
};

// `asked` processes at a time; 0: as many as there are cores for this process.
int WorkersFor(int asked);

// Never hangs on a job that has died. UNAVAILABLE where no process can be started.
absl::Status RunPool(const Pool& pool);

}  // namespace optimus::sweep
