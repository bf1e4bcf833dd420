#pragma once
// A thread that answers for its process while the main thread is busy, or waits in a library that
// knows no limit: SIGTERM in the middle of planning, ranks that never come, a rank that dies while
// nobody looks.

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace optimus::executor {

class Guard {
 public:
  // Called several times a second on the guard's thread. An error ends the process.
  using Duty = std::function<absl::Status()>;
  // Prints the error, unless its message is empty, and ends the process. On the guard's thread.
  using End = std::function<void(const absl::Status& error)>;

  // After HoldTerminationSignals. SIGTERM is noted for TakeTerminationSignal from now on. Once a
  // process of the same launcher has told that all is said, there is no duty any more, and this one
  // ends without a word: with the next SIGTERM, or some seconds later. (Not at once: of ranks that
  // end with an error, the launcher takes the exit code of the first.)
  explicit Guard(End end);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Instead of the one before, which is not running any more when this returns. Null: none.
  void SetDuty(Duty duty);

 private:
  void Run();
  void WaitForSignal();
  absl::Status Look();

  const End end_;
  std::mutex mutex_;
  Duty duty_;
  std::optional<absl::Time> said_;  // when it was told that all is said; of the thread
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses all of these
};

}  // namespace optimus::executor
