#include "tools/sweep/pool/pool.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "sim/child_process.h"
#include "sim/simgrid_runner.h"
#include "tools/sweep/pool/heap.h"

namespace optimus::sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAskStopEveryMs = 200;
constexpr double kBytesPerMib = 1024.0 * 1024.0;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How often a job is started that dies.
constexpr int kTries = 2;

struct RunningJob {
  std::int64_t job = 0;
  int tries = 1;  // this one included
  sim::Child child;
  Clock::time_point begin;
  bool over_time = false;
};

// In the job's process. An interrupt from the terminal goes to every process of the group: the pool
// decides what becomes of the jobs.
absl::Status LimitJob(const JobLimits& limits) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  if (limits.memory_bytes == 0) return absl::OkStatus();
  const auto bytes = static_cast<rlim_t>(limits.memory_bytes);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot limit memory: ", std::strerror(errno)));
}

class Runner {
 public:
  explicit Runner(const Pool& pool) : pool_(pool) {}
  absl::Status Run();

 private:
  // A job, and which try of it.
  std::optional<std::pair<std::int64_t, int>> NextJob();
  absl::Status StartJobs();
  // Those that are through, after at most kAskStopEveryMs.
  absl::StatusOr<std::vector<RunningJob>> WaitForSome();
  void KillOverTime();
  absl::Status Finish(RunningJob job);

  const Pool& pool_;
  std::vector<RunningJob> running_;
  std::vector<std::pair<std::int64_t, int>> again_;  // jobs that died, and their next try
};

std::optional<std::pair<std::int64_t, int>> Runner::NextJob() {
  if (!again_.empty()) {
    const auto next = again_.back();
    again_.pop_back();
    return next;
  }
  const std::optional<std::int64_t> job = pool_.next();
  if (!job) return std::nullopt;
  return std::pair{*job, 1};
}

absl::Status Runner::StartJobs() {
  while (running_.size() < static_cast<std::size_t>(std::max(pool_.workers, 1))) {
    const auto next = NextJob();
    if (!next) return absl::OkStatus();
    absl::StatusOr<sim::Child> child = sim::Child::Start([&]() -> absl::StatusOr<std::string> {
      OPTIMUS_RETURN_IF_ERROR(LimitJob(pool_.limits));
      PrepareHeap();
      return pool_.work(next->first);
    });
    if (!child.ok()) return child.status();
    running_.push_back({next->first, next->second, *std::move(child), Clock::now(), false});
  }
  return absl::OkStatus();
}

void Runner::KillOverTime() {
  if (pool_.limits.wall_s <= 0) return;
  for (RunningJob& job : running_) {
    if (job.over_time || SecondsSince(job.begin) < pool_.limits.wall_s) continue;
    job.over_time = true;
    job.child.Kill();  // its end of the pipe closes, and poll finds that
  }
}

absl::Status Runner::Finish(RunningJob job) {
  JobOutcome outcome;
  outcome.job = job.job;
  absl::StatusOr<sim::ChildResult> result = job.child.Finish();
  outcome.wall_s = SecondsSince(job.begin);
  outcome.peak_memory_mib = static_cast<double>(job.child.peak_rss_bytes()) / kBytesPerMib;
  if (absl::IsInternal(result.status()) && !job.over_time && job.tries < kTries) {
    again_.emplace_back(job.job, job.tries + 1);
    return absl::OkStatus();
  }
  if (result.ok()) {
    outcome.result = std::move(result->bytes);
  } else if (job.over_time) {
    outcome.result = absl::DeadlineExceededError(
        absl::StrFormat("was stopped after %g s, the limit of one point", pool_.limits.wall_s));
  } else {
    outcome.result = result.status();
  }
  return pool_.done(std::move(outcome));
}

absl::StatusOr<std::vector<RunningJob>> Runner::WaitForSome() {
  std::vector<pollfd> ends;
  ends.reserve(running_.size());
  for (const RunningJob& job : running_) ends.push_back({job.child.fd(), POLLIN, 0});
  if (poll(ends.data(), ends.size(), kAskStopEveryMs) < 0 && errno != EINTR) {
    return absl::InternalError(absl::StrCat("cannot wait for jobs: ", std::strerror(errno)));
  }
  std::vector<RunningJob> through, still;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const bool over = ends[i].revents != 0 && !running_[i].child.Read();
    (over ? through : still).push_back(std::move(running_[i]));
  }
  running_ = std::move(still);
  return through;
}

absl::Status Runner::Run() {
  for (;;) {
    if (pool_.stop && pool_.stop()) return absl::CancelledError("stopped");
    OPTIMUS_RETURN_IF_ERROR(StartJobs());
    if (running_.empty()) return absl::OkStatus();
    OPTIMUS_ASSIGN_OR_RETURN(std::vector<RunningJob> through, WaitForSome());
    if (pool_.independent) OPTIMUS_RETURN_IF_ERROR(StartJobs());
    for (RunningJob& job : through) OPTIMUS_RETURN_IF_ERROR(Finish(std::move(job)));
    KillOverTime();
  }
}

}  // namespace

int WorkersFor(int asked) {
  if (asked > 0) return asked;
  // Not those of the machine: a cluster gives a task some of a node's.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(CPU_COUNT(&cores), 1);
}

absl::Status RunPool(const Pool& pool) {
  sim::PrepareEngine();  // once, not in every job
  return Runner(pool).Run();
}

}  // namespace optimus::sweep
