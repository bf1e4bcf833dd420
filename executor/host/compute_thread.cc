#include "executor/host/compute_thread.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "executor/host/out_of_memory.h"

namespace optimus::executor {

void ComputeThread::Run() {
  WakeExactly();
  for (std::uint32_t seen = 0; WaitForStep(seen); ++seen) {
    if (absl::Status error = CatchOutOfMemory([this] { return RunStep(); }); !error.ok()) {
      state_.Fail(std::move(error));
    }
    if (stopping()) {
      state_.queues[static_cast<std::size_t>(ir::Stream::kCompute)].Clear();
    }
    GoIdle();
    state_.Leave();
  }
}

// False: there will be none.
bool ComputeThread::WaitForStep(std::uint32_t seen) {
  for (;;) {
    state_.compute.Prepare();
    if (state_.quit.load(std::memory_order_seq_cst)) {
      return false;
    }
    if (state_.started.load(std::memory_order_seq_cst) != seen) {
      break;
    }
    state_.compute.SleepUntil(kForeverNs);
  }
  state_.compute.Cancel();
  return true;
}

// The communication thread may now poll more often.
void ComputeThread::GoIdle() {
  state_.compute_idle.store(true, std::memory_order_seq_cst);
  if (state_.nap.load(std::memory_order_seq_cst) == Nap::kImpatient) {
    state_.communication.Wake();
  }
}

absl::Status ComputeThread::RunStep() {
  StreamCursor cursor;
  cursor.queue = &state_.queues[static_cast<std::size_t>(ir::Stream::kCompute)];
  while (!cursor.done() && !stopping()) {
    OPTIMUS_RETURN_IF_ERROR(RunCommand(cursor));
    ++cursor.next;
  }
  return absl::OkStatus();
}

absl::Status ComputeThread::RunCommand(StreamCursor& cursor) {
  const Command command = cursor.command();
  if (command.kind == CommandKind::kWait) {
    WaitFor(command.index);
    if (!stopping()) {
      cursor.ready_ns = std::max(cursor.ready_ns, state_.events.NominalNs(command.index));
    }
    return absl::OkStatus();
  }
  OPTIMUS_ASSIGN_OR_RETURN(const bool done, state_.RunSimple(cursor, kCommunicationThread));
  return done ? absl::OkStatus() : Work(cursor, command);
}

absl::Status ComputeThread::Work(StreamCursor& cursor, const Command& command) {
  state_.BeginStream(cursor, NowNs());
  std::int64_t end_ns = 0;
  if (command.kind == CommandKind::kKernel) {
    OPTIMUS_ASSIGN_OR_RETURN(end_ns,
                             run_kernel_(*cursor.queue->kernels[command.index], cursor.ready_ns));
  } else {
    OPTIMUS_RETURN_IF_ERROR(cursor.queue->host_work[command.index]());
    end_ns = NowNs();
  }
  cursor.ready_ns = std::max(cursor.ready_ns, end_ns);
  return communication_.HelpIfDue();
}

void ComputeThread::WaitFor(Event event) {
  if (state_.events.HasHappened(event)) {
    return;
  }
  GoIdle();
  state_.events.AnnounceWaiter(event, kComputeThread);
  for (;;) {
    state_.compute.Prepare();
    if (state_.events.HasHappened(event) || stopping()) {
      break;
    }
    state_.compute.SleepUntil(kForeverNs);
  }
  state_.compute.Cancel();
  state_.compute_idle.store(false, std::memory_order_seq_cst);
}

bool ComputeThread::SleepInKernelUntilNs(std::int64_t time_ns) {
  while (NowNs() < time_ns) {
    state_.compute.Prepare();
    if (stopping()) {
      state_.compute.Cancel();
      return false;
    }
    state_.compute.SleepUntil(time_ns);
  }
  return !stopping();
}

}  // namespace optimus::executor
