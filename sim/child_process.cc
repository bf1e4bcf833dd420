#include "sim/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/write_all.h"

namespace optimus::sim {
namespace {

constexpr int kBytesPerKib = 1024;                       // of ru_maxrss
constexpr std::size_t kReadSize = std::size_t{1} << 16;  // a pipe holds no more

// First byte of the answer: a status code; the rest is the bytes (OK) or the message. A last byte
// closes it, so that a child that dies while it writes is told from one that is through.
constexpr char kEndMark = '.';

absl::StatusOr<std::string> Guarded(const std::function<absl::StatusOr<std::string>()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "simulation ran out of memory; hint: use a coarser fidelity or record no spans");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("simulation failed: ", error.what()));
  }
}

// The child must not go on without the parent, however that ends. A parent that ended before this
// took hold is no longer the parent.
void DieWith(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
}

// Never returns. _exit: nothing of the parent's (buffers, exit handlers) may run twice.
[[noreturn]] void RunChild(int fd, const std::function<absl::StatusOr<std::string>()>& work) {
  const absl::StatusOr<std::string> result = Guarded(work);
  const char code = static_cast<char>(result.status().code());
  bool written = WriteAll(fd, {&code, 1});
  written = written && WriteAll(fd, result.ok() ? *result : result.status().message());
  written = written && WriteAll(fd, {&kEndMark, 1});
  _exit(written ? 0 : 1);
}

absl::Status DiedStatus(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::InternalError(absl::StrCat(
        "simulation process was killed by signal ", signal, " (", strsignal(signal), "); hint: ",
        signal == SIGKILL ? "the machine may be out of memory, use a coarser fidelity"
                          : "this is a bug, please report it with the input"));
  }
  return absl::InternalError(absl::StrCat("simulation process ended with code ",
                                          WEXITSTATUS(wait_status),
                                          " and no result; hint: its last lines on stderr"));
}

}  // namespace

void Child::Take(Child& other) {
  pid_ = std::exchange(other.pid_, -1);
  fd_ = std::exchange(other.fd_, -1);
  answer_ = std::move(other.answer_);
  peak_rss_bytes_ = other.peak_rss_bytes_;
}

Child::Child(Child&& other) noexcept { Take(other); }

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Abandon();
    Take(other);
  }
  return *this;
}

void Child::Abandon() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (pid_ < 0) return;
  Kill();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::StatusOr<Child> Child::Start(const std::function<absl::StatusOr<std::string>()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot make a pipe for the simulation process: ", std::strerror(errno)));
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  Child child;
  child.fd_ = ends[0];
  child.pid_ = fork();
  if (child.pid_ == 0) {
    DieWith(parent);
    close(ends[0]);
    RunChild(ends[1], work);
  }
  const std::string fork_error = child.pid_ < 0 ? std::strerror(errno) : "";
  close(ends[1]);
  if (child.pid_ >= 0) return child;
  return absl::UnavailableError(absl::StrCat("cannot start the simulation process: ", fork_error,
                                             "; hint: too many processes or too little memory"));
}

bool Child::Read() {
  // On the stack: after the fork every page of the heap that is written is copied first.
  std::array<char, kReadSize> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) answer_.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
}

void Child::Kill() const { kill(pid_, SIGKILL); }

absl::StatusOr<ChildResult> Child::Finish() {
  while (Read()) {
  }
  close(std::exchange(fd_, -1));
  std::string answer = std::move(answer_);
  int wait_status = 0;
  rusage usage{};
  while (wait4(pid_, &wait_status, 0, &usage) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  peak_rss_bytes_ = std::int64_t{usage.ru_maxrss} * kBytesPerKib;
  if (answer.size() < 2 || answer.back() != kEndMark || !WIFEXITED(wait_status) ||
      WEXITSTATUS(wait_status) != 0) {
    return DiedStatus(wait_status);
  }
  const auto code = static_cast<absl::StatusCode>(answer.front());
  answer.pop_back();
  if (code != absl::StatusCode::kOk) return absl::Status(code, answer.substr(1));
  answer.erase(0, 1);
  return ChildResult{std::move(answer), peak_rss_bytes_};
}

absl::StatusOr<ChildResult> RunInChild(const std::function<absl::StatusOr<std::string>()>& work) {
  absl::StatusOr<Child> child = Child::Start(work);
  if (!child.ok()) return child.status();
  return child->Finish();
}

}  // namespace optimus::sim
