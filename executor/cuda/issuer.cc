#include "executor/cuda/issuer.h"

#include <utility>

namespace optimus::executor::cuda {

Issuer::Issuer(std::function<absl::Status()> start)
    : thread_([this, start = std::move(start)] { Loop(start); }) {}

Issuer::~Issuer() {
  Stop();
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Issuer::Run(std::function<absl::Status()> job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    done_ = false;
  }
  changed_.notify_all();
}

absl::Status Issuer::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Issuer::Loop(const std::function<absl::Status()>& start) {
  const absl::Status started = start();
  while (true) {
    std::function<absl::Status()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return quit_ || job_ != nullptr; });
      if (job_ == nullptr) return;
      job = std::exchange(job_, nullptr);
    }
    absl::Status status = started.ok() ? job() : started;
    job = nullptr;
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    done_ = true;
  }
}

}  // namespace optimus::executor::cuda
