#pragma once
// Whether other processes of this machine still live.

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace optimus::executor {

// The content of /proc/PID/FILE; empty where that cannot be read.
std::string ProcessFile(std::int32_t pid, const char* file);
// Field 22 of /proc/PID/stat: clock ticks since the machine started. Nothing: no such process.
std::optional<std::int64_t> StartTimeOf(std::int32_t pid);
// 0: no such process, or one that has ended although its parent has not asked for its exit status.
std::int32_t ParentOf(std::int32_t pid);
// Stopped by a signal (SIGSTOP, SIGTSTP) or a debugger.
bool IsStopped(std::int32_t pid);

struct ProcessId {
  std::int32_t pid = 0;
  std::int64_t start_time = 0;  // tells it from a later process with the same pid
};

// Watches some processes. A process is gone as soon as it has ended, also while its parent has not
// asked for its exit status.
class Processes {
 public:
  explicit Processes(std::vector<ProcessId> processes);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Looks at all of them. One system call; where the kernel has no pidfd (before Linux 5.3), one
  // look into /proc for each, once a second.
  void Refresh();
  // By index, as of the last Refresh.
  const std::vector<bool>& gone() const { return gone_; }

 private:
  void LookIntoProc();

  const std::vector<ProcessId> processes_;
  std::vector<pollfd> files_;  // -1: no pidfd
  std::vector<bool> gone_;
  bool all_have_files_ = true;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace optimus::executor
