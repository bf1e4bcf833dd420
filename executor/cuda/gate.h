#pragma once
// Holds all streams of a GPU back until the host has a lead: launching takes a few microseconds
// each, and a GPU that starts with the first launch would wait for the next ones. The lead is
// bounded, because a GPU's queue is: a launch beyond about a thousand that wait blocks the caller.

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace optimus::executor::cuda {

class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  // Called on a thread of CUDA's, by a stream. Gives up after a while: a library that waits for the
  // GPU while it launches must not wait for ever.
  void WaitUntilOpen() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(2), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace optimus::executor::cuda
