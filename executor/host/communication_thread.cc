#include "executor/host/communication_thread.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "executor/host/out_of_memory.h"

namespace optimus::executor {

CommunicationThread::CommunicationThread(StepState& state)
    : state_(state),
      poll_idle_ns_(absl::ToInt64Nanoseconds(state.options.poll_idle)),
      poll_idle_longest_ns_(
          std::max(poll_idle_ns_, absl::ToInt64Nanoseconds(state.options.poll_idle_longest))),
      poll_busy_ns_(absl::ToInt64Nanoseconds(state.options.poll_busy)),
      poll_in_kernel_ns_(absl::ToInt64Nanoseconds(state.options.poll_in_kernel)),
      poll_for_others_ns_(absl::ToInt64Nanoseconds(state.options.poll_for_others)) {}

void CommunicationThread::Run() {
  WakeExactly();
  for (std::uint32_t seen = 0; WaitForStep(seen); ++seen) {
    RunStep();
    state_.Leave();
  }
}

// Between steps only the hook of SetProgress runs. False: there will be no step any more.
bool CommunicationThread::WaitForStep(std::uint32_t seen) {
  const std::int64_t period_ns = absl::ToInt64Nanoseconds(state_.options.poll_between_steps);
  for (;;) {
    const bool hook = state_.has_progress.load(std::memory_order_seq_cst);
    state_.communication.Prepare();
    if (state_.quit.load(std::memory_order_seq_cst)) {
      return false;
    }
    if (state_.started.load(std::memory_order_seq_cst) != seen) {
      break;
    }
    state_.communication.SleepUntil(hook ? NowNs() + period_ns : kForeverNs);
    Progress();
  }
  state_.communication.Cancel();
  return true;
}

void CommunicationThread::Progress() {
  if (!state_.has_progress.load(std::memory_order_seq_cst)) {
    return;
  }
  const std::lock_guard lock(state_.progress_mutex);
  if (state_.progress) {
    state_.progress();
  }
}

void CommunicationThread::RunStep() {
  const std::lock_guard lock(rounds_mutex_);
  Reset();
  if (absl::Status error = CatchOutOfMemory([this] { return Rounds(); }); !error.ok()) {
    state_.Fail(std::move(error));
  }
  if (state_.given_up.load(std::memory_order_seq_cst)) {
    DropStep();
  }
}

void CommunicationThread::Reset() {
  streams_.clear();
  for (int s = 0; s < ir::kStreamCount; ++s) {
    if (static_cast<ir::Stream>(s) == ir::Stream::kCompute || state_.queues[s].commands.empty()) {
      continue;
    }
    Stream stream;
    stream.queue = &state_.queues[s];
    streams_.push_back(stream);
  }
}

void CommunicationThread::DropStep() {
  streams_.clear();
  for (int s = 0; s < ir::kStreamCount; ++s) {
    if (static_cast<ir::Stream>(s) != ir::Stream::kCompute) {
      state_.queues[s].Clear();
    }
  }
}

absl::Status CommunicationThread::Rounds() {
  while (!streams_.empty() && !state_.given_up.load(std::memory_order_seq_cst)) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool ended, Round());
    if (!ended) {
      Sleep(NextPause());
    }
  }
  return absl::OkStatus();
}

// Looks at every stream. Whatever ends may let another stream go on: then another round is due.
absl::StatusOr<bool> CommunicationThread::Round() {
  bool ended = false;
  for (Stream& stream : streams_) {
    if (state_.given_up.load(std::memory_order_relaxed)) {
      return false;
    }
    OPTIMUS_ASSIGN_OR_RETURN(const bool some, Advance(stream));
    ended |= some;
  }
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                [](const Stream& stream) { return stream.done(); }),
                 streams_.end());
  Progress();
  return ended;
}

absl::Status CommunicationThread::HelpIfDue() {
  if (state_.nap.load(std::memory_order_seq_cst) == Nap::kNone ||
      NowNs() - state_.polled_ns.load(std::memory_order_relaxed) < poll_busy_ns_) {
    return absl::OkStatus();
  }
  const std::unique_lock lock(rounds_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return absl::OkStatus();  // it is about to poll itself
  }
  bool ended = true;
  while (ended && !streams_.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(ended, Round());
  }
  state_.polled_ns.store(NowNs(), std::memory_order_relaxed);
  if (streams_.empty() || NextPause().until_ns < sleeps_until_ns_) {
    state_.communication.Wake();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CommunicationThread::Advance(Stream& stream) {
  const std::size_t first = stream.next;
  while (!stream.done()) {
    bool ended = true;
    switch (stream.command().kind) {
      case CommandKind::kWait:
        ended = WaitIsOver(stream);
        break;
      case CommandKind::kTask: {
        OPTIMUS_ASSIGN_OR_RETURN(ended, RunTask(stream));
        break;
      }
      default: {
        OPTIMUS_ASSIGN_OR_RETURN(ended, state_.RunSimple(stream, kComputeThread));
      }
    }
    if (!ended) {
      break;
    }
    ++stream.next;
  }
  return stream.next != first;
}

bool CommunicationThread::WaitIsOver(Stream& stream) {
  const Event event = stream.command().index;
  if (!state_.events.HasHappened(event)) {
    if (!stream.waits) {
      state_.events.AnnounceWaiter(event, kCommunicationThread);
      stream.waits = true;
    }
    return false;
  }
  stream.waits = false;
  stream.ready_ns = std::max(stream.ready_ns, state_.events.NominalNs(event));
  return true;
}

absl::StatusOr<bool> CommunicationThread::RunTask(Stream& stream) {
  if (stream.task == nullptr) {
    HostTask* const task = stream.queue->tasks[stream.command().index].get();
    changed_ns_ = NowNs();
    state_.BeginStream(stream, changed_ns_);
    OPTIMUS_RETURN_IF_ERROR(task->Start(stream.ready_ns));
    stream.task = task;
    stream.not_before_ns = task->NotBeforeNs();
  }
  if (stream.not_before_ns > 0 && stream.not_before_ns > NowNs()) {
    return false;
  }
  return PollTask(stream);
}

absl::StatusOr<bool> CommunicationThread::PollTask(Stream& stream) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::optional<std::int64_t> end_ns, stream.task->Poll());
  if (!end_ns.has_value()) {
    stream.not_before_ns = stream.task->NotBeforeNs();
    return false;
  }
  stream.ready_ns = std::max(stream.ready_ns, *end_ns);
  stream.task = nullptr;
  changed_ns_ = NowNs();
  stream.queue->tasks[stream.command().index].reset();
  return true;
}

std::int64_t CommunicationThread::IdlePauseNs(std::int64_t now_ns) const {
  return std::clamp((now_ns - changed_ns_) / 8, poll_idle_ns_, poll_idle_longest_ns_);
}

CommunicationThread::Pause CommunicationThread::NextPause() const {
  const std::int64_t now_ns = NowNs();
  Pause pause;
  bool polls = false;
  for (const Stream& stream : streams_) {
    if (stream.task == nullptr) {
      continue;
    }
    if (stream.not_before_ns > now_ns) {
      pause.until_ns = std::min(pause.until_ns, stream.not_before_ns);
    } else {
      polls = true;
    }
  }
  if (polls && state_.compute_idle.load(std::memory_order_seq_cst)) {
    pause.yields = poll_idle_ns_ <= 0;
    pause.until_ns = std::min(pause.until_ns, now_ns + IdlePauseNs(now_ns));
  } else if (polls) {
    pause.nap = Nap::kImpatient;
    pause.until_ns = std::min(pause.until_ns, now_ns + poll_in_kernel_ns_);
  } else if (state_.has_progress.load(std::memory_order_relaxed)) {
    pause.nap = Nap::kHelp;
    pause.until_ns = std::min(pause.until_ns, now_ns + poll_for_others_ns_);
  }
  return pause;
}

// With rounds_mutex_, which is free while this thread sleeps.
void CommunicationThread::Sleep(const Pause& pause) {
  if (pause.yields) {
    sched_yield();
    return;
  }
  sleeps_until_ns_ = pause.until_ns;
  state_.polled_ns.store(NowNs(), std::memory_order_relaxed);
  state_.nap.store(pause.nap, std::memory_order_seq_cst);
  state_.communication.Prepare();
  if (MustNotSleep(pause)) {
    state_.communication.Cancel();
  } else {
    rounds_mutex_.unlock();
    state_.communication.SleepUntil(pause.until_ns);
    rounds_mutex_.lock();
  }
  state_.nap.store(Nap::kNone, std::memory_order_seq_cst);
}

// Looks once more at all that would have woken this thread.
bool CommunicationThread::MustNotSleep(const Pause& pause) const {
  if (state_.given_up.load(std::memory_order_seq_cst) ||
      (pause.nap == Nap::kImpatient && state_.compute_idle.load(std::memory_order_seq_cst))) {
    return true;
  }
  return std::any_of(streams_.begin(), streams_.end(), [this](const Stream& stream) {
    return stream.waits && state_.events.HasHappened(stream.command().index);
  });
}

}  // namespace optimus::executor
