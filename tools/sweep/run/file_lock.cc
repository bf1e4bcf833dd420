#include "tools/sweep/run/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::sweep {
namespace {

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetweenTries(100);
constexpr mode_t kEverybodyMayRead = 0644;

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kEverybodyMayRead);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
  }
  FileLock lock(fd);
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat(path, ": cannot be locked: ", std::strerror(errno)));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": another sweep is writing it; wait for its end, or give another --db"));
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace optimus::sweep
