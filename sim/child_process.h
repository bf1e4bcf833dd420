#pragma once
// Runs a function in a forked child and brings back the bytes it returns. SimGrid allows one engine
// per process, and a crash of a simulation must not take the caller along.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optimus::sim {

struct ChildResult {
  std::string bytes;
  std::int64_t peak_rss_bytes = 0;
};

// A child that runs while the caller does something else. One that is destroyed before Finish is
// killed.
class Child {
 public:
  // Runs `work` in a fork of this process. UNAVAILABLE where it cannot be started.
  static absl::StatusOr<Child> Start(const std::function<absl::StatusOr<std::string>()>& work);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Abandon(); }

  int fd() const { return fd_; }  // for poll: readable when there is something to Read
  pid_t pid() const { return pid_; }
  // Takes what is there; waits where nothing is. False: the child is through, or has died.
  bool Read();
  void Kill() const;
  // Waits for its end. Errors as RunInChild.
  absl::StatusOr<ChildResult> Finish();
  // Highest resident memory of the child and of its own children; known after Finish, whatever that
  // returned.
  std::int64_t peak_rss_bytes() const { return peak_rss_bytes_; }

 private:
  Child() = default;
  void Abandon();
  void Take(Child& other);

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string answer_;
  std::int64_t peak_rss_bytes_ = 0;
};

// The status or the bytes that `work` returned in the child. INTERNAL with the signal or exit code
// and a hint where the child dies, RESOURCE_EXHAUSTED where it runs out of memory, UNAVAILABLE
// where it cannot be started. Does not hang: it reads until the child's end of the pipe is closed.
// The child is killed where the calling thread ends first.
absl::StatusOr<ChildResult> RunInChild(const std::function<absl::StatusOr<std::string>()>& work);

}  // namespace optimus::sim
