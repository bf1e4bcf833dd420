#include "executor/mpi/transport.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor {

absl::Status Transport::Open() {
  {
    const std::lock_guard lock(mutex);
    OPTIMUS_RETURN_IF_ERROR(mailbox.Open());
  }
  device.SetProgress([this] {
    const std::lock_guard lock(mutex);
    (void)Test();  // the next operation that is polled reports what is wrong
  });
  return absl::OkStatus();
}

absl::Status Transport::Reserve(std::int64_t floats) {
  if (pacing != nullptr || floats == 0) {
    return absl::OkStatus();
  }
  const std::lock_guard lock(mutex);
  if (inputs.Reserve(floats) && results.Reserve(floats)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("the system has no memory for transfers of ",
                                                   floats * sizeof(float), " bytes (16 times it)"));
}

void Transport::Close() {
  device.GiveUp();
  device.SetProgress(nullptr);
  const std::lock_guard lock(mutex);
  if (!mpi.failed.load(std::memory_order_relaxed) && !mailbox.Close().ok()) {
    mpi.failed.store(true, std::memory_order_relaxed);
  }
}

absl::Status Transport::Test() {
  if (!error.ok()) {
    return error;
  }
  error = requests.Test();
  if (error.ok()) error = mailbox.Progress();
  if (!error.ok()) mpi.failed.store(true, std::memory_order_relaxed);
  return error;
}

}  // namespace optimus::executor
