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
  // Kernels may take a half, libraries and the system need some of the rest.
  const MemoryShare& share = device.memory_share();
  const Bytes most(share.bytes.value() / 6);
  const std::lock_guard lock(mutex);
  if (inputs.Reserve(floats, most) && results.Reserve(floats, most)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "a message or collective needs ", GibText(Bytes(4 * floats)), " for what is sent and again ",
      "for what arrives, but each may take ", GibText(most), " (a sixth of this rank's ",
      GibText(share.bytes), " ", share.text,
      "); hint: a smaller micro-batch, more tensor parallelism, or fewer ranks of a machine"));
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
