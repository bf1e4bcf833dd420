#include "tools/run_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/write_all.h"
#include "tools/exit_codes.h"

namespace optimus::tools {
namespace {

constexpr absl::string_view kError = "optimus: error: ";

// Held back here as long as it lives, and read from a file.
class Signals {
 public:
  Signals() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&held_, signal);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
    file_ = signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Signals() {
    close(file_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int file() const { return file_; }
  const sigset_t& before() const { return before_; }
  // 0: none.
  int Take() const {
    signalfd_siginfo signal{};
    return read(file_, &signal, sizeof signal) == sizeof signal ? static_cast<int>(signal.ssi_signo)
                                                                : 0;
  }

 private:
  sigset_t held_{}, before_{};
  int file_ = -1;
};

class LauncherProcess {
 public:
  LauncherProcess() = default;
  ~LauncherProcess() {
    if (errors_ >= 0) close(errors_);
  }
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;

  absl::Status Start(std::vector<std::string> words);
  absl::StatusOr<int> Wait();

 private:
  [[noreturn]] void BeLauncher(std::vector<std::string>& words, pid_t parent, int errors,
                               int failure) const;
  void PassOnErrors();
  void TakeSignals();
  absl::StatusOr<int> Result() const;

  Signals signals_;
  pid_t process_ = -1;
  int errors_ = -1;  // its standard error
  ErrorFinder finder_;
  int asked_by_ = 0;  // the first signal to end it
  bool ended_ = false;
  int status_ = 0;
};

// A group of its own: what a terminal sends to ours reaches it once, from here.
void LauncherProcess::BeLauncher(std::vector<std::string>& words, pid_t parent, int errors,
                                 int failure) const {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(1);
  pthread_sigmask(SIG_SETMASK, &signals_.before(), nullptr);
  dup2(errors, STDERR_FILENO);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  const int error = errno;
  WriteAll(failure, {reinterpret_cast<const char*>(&error), sizeof error});
  _exit(1);
}

absl::Status LauncherProcess::Start(std::vector<std::string> words) {
  std::array<int, 2> errors{};
  std::array<int, 2> failure{};  // errno, where the program cannot be started
  if (pipe2(errors.data(), O_CLOEXEC) != 0) return absl::UnavailableError("no pipe can be made");
  errors_ = errors[0];
  if (pipe2(failure.data(), O_CLOEXEC) != 0) {
    close(errors[1]);
    return absl::UnavailableError("no pipe can be made");
  }
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) BeLauncher(words, parent, errors[1], failure[1]);
  close(errors[1]);
  close(failure[1]);
  int error = process_ < 0 ? errno : 0;
  const bool failed = read(failure[0], &error, sizeof error) == sizeof error || process_ < 0;
  close(failure[0]);
  if (!failed) return absl::OkStatus();
  if (process_ > 0) waitpid(process_, nullptr, 0);
  return absl::NotFoundError(
      absl::StrCat(words.front(), " cannot be started (", std::strerror(error), ")"));
}

absl::StatusOr<int> LauncherProcess::Wait() {
  fcntl(errors_, F_SETFL, O_NONBLOCK);
  while (!ended_) {
    std::array<pollfd, 2> files = {{{signals_.file(), POLLIN, 0}, {errors_, POLLIN, 0}}};
    poll(files.data(), errors_ >= 0 ? 2 : 1, -1);
    PassOnErrors();
    TakeSignals();
  }
  PassOnErrors();
  return Result();
}

void LauncherProcess::PassOnErrors() {
  std::array<char, 4096> piece{};
  while (errors_ >= 0) {
    const ssize_t got = read(errors_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(errors_);
      errors_ = -1;
      return;
    }
    const absl::string_view text(piece.data(), static_cast<std::size_t>(got));
    finder_.Add(text);
    WriteAll(STDERR_FILENO, text);
  }
}

void LauncherProcess::TakeSignals() {
  while (const int signal = signals_.Take()) {
    if (signal == SIGCHLD) {
      ended_ = ended_ || waitpid(process_, &status_, WNOHANG) == process_;
    } else if (asked_by_ == 0) {  // a second one would make it end without waiting for the ranks
      asked_by_ = signal;
      kill(process_, SIGTERM);
    }
  }
}

std::string NameOf(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

absl::StatusOr<int> LauncherProcess::Result() const {
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  if (code == kExitSuccess || code == kExitCheckFailed) return code;
  if (finder_.found()) return std::min(code, kExitInternal);
  if (asked_by_ != 0) {
    return absl::CancelledError(absl::StrCat("asked to stop (", NameOf(asked_by_),
                                             "), before any rank said what it was at"));
  }
  constexpr int kSignalled = 128;  // as shells and mpirun count
  if (code <= kSignalled) {
    return absl::InternalError(
        absl::StrCat("mpirun ended with exit code ", code, ", and no rank has said why"));
  }
  return absl::InternalError(absl::StrCat(WIFEXITED(status_) ? "a rank" : "mpirun",
                                          " was killed or crashed (", NameOf(code - kSignalled),
                                          "), and no rank has said what it was at"));
}

}  // namespace

void ErrorFinder::Add(absl::string_view piece) {
  if (found_) return;
  absl::StrAppend(&tail_, piece);
  found_ = tail_.find(kError.data(), 0, kError.size()) != std::string::npos;
  if (tail_.size() > kError.size()) tail_.erase(0, tail_.size() - kError.size());
}

absl::StatusOr<int> RunLauncher(std::vector<std::string> words) {
  LauncherProcess launcher;
  const absl::Status started = launcher.Start(std::move(words));
  return started.ok() ? launcher.Wait() : started;
}

}  // namespace optimus::tools
