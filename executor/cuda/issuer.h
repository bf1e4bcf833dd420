#pragma once
// A thread that issues the commands of a step, so that the caller can go on watching: a launch
// blocks where the GPU's queue is full, and it stays full where another rank hangs.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace optimus::executor::cuda {

class Issuer {
 public:
  // `start` runs first on the thread (it chooses the GPU).
  explicit Issuer(std::function<absl::Status()> start);
  // Ends the thread; a job that runs is waited for.
  ~Issuer();
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  // Runs `job` on the thread. One at a time.
  void Run(std::function<absl::Status()> job);
  bool done() const { return done_; }
  // Of the last job, once done() is true.
  absl::Status status() const;
  // Asks a job to end early; jobs look at stopped(). For good.
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  void Loop(const std::function<absl::Status()>& start);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<absl::Status()> job_;
  absl::Status status_;
  bool quit_ = false;
  std::atomic<bool> done_{true}, stopped_{false};
  std::thread thread_;  // last: it uses all others
};

}  // namespace optimus::executor::cuda
