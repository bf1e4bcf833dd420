#include "executor/host/host_device.h"

#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/host/communication_thread.h"
#include "executor/host/compute_thread.h"
#include "executor/host/step_state.h"

namespace optimus::executor {
namespace {

absl::Status Pin(std::thread& thread, int core) {
  if (core < 0) {
    return absl::OkStatus();
  }
  int error = EINVAL;
  if (core < CPU_SETSIZE) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    error = pthread_setaffinity_np(thread.native_handle(), sizeof(cores), &cores);
  }
  if (error == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot pin threads to core ", core, ": ", std::strerror(error),
                   "; hint: the machine or the launcher leaves this process other cores"));
}

}  // namespace

class HostDevice::Impl {
 public:
  Impl(const HostOptions& options, ComputeThread::RunKernel run_kernel)
      : state_(options),
        memory_share_(ShareOfMemory(options.ranks_of_machine)),
        communication_(state_),
        compute_(state_, communication_, std::move(run_kernel)) {
    threads_ = StartThreads(options.core);
  }
  ~Impl() { Stop(); }

  absl::Status StartThreads(int core);
  absl::Status Resize(std::uint32_t events, std::uint32_t slots);
  absl::Status Begin();
  absl::Status Start();
  absl::StatusOr<bool> Synchronize(absl::Duration limit);
  void GiveUp();
  void Stop();
  void SetProgress(std::function<void()> progress);

  void Wait(ir::Stream stream, Event event);
  void Record(ir::Stream stream, Event event);
  void Stamps(ir::Stream stream, CommandKind kind, std::uint32_t slot, const Stamp& stamp);
  void Text(ir::Stream stream, const StreamQueue::StampText* text) {
    Queue(stream).texts.push_back(text);
  }
  // Adds a command whose operand is the next of `operands`, one of the queue's lists.
  template <class T>
  void Add(ir::Stream stream, CommandKind kind, std::vector<T>& operands, T operand) {
    Queue(stream).commands.push_back({kind, static_cast<std::uint32_t>(operands.size())});
    operands.push_back(std::move(operand));
  }
  StreamQueue& Queue(ir::Stream stream) { return state_.queues[static_cast<std::size_t>(stream)]; }
  absl::Status CheckOpen() const;

  StepState& state() { return state_; }
  const StepState& state() const { return state_; }
  ComputeThread& compute() { return compute_; }
  const MemoryShare& memory_share() const { return memory_share_; }

 private:
  enum class Phase : std::uint8_t { kIdle, kOpen, kStarted };

  bool Unfinished() const { return state_.running.load(std::memory_order_seq_cst) != 0; }
  void Misuse(const std::string& what) {
    if (misuse_.ok()) {
      misuse_ = absl::InvalidArgumentError(what);
    }
  }
  void CheckWaits();
  void ClearQueues();

  StepState state_;
  const MemoryShare memory_share_;
  CommunicationThread communication_;
  ComputeThread compute_;
  Phase phase_ = Phase::kIdle;
  absl::Status threads_;                // whether they run, on their core; for Prepare
  absl::Status misuse_;                 // of calls that cannot return an error; for Start
  std::vector<std::uint8_t> recorded_;  // by event: it will be, in the step that is open
  std::thread compute_thread_, communication_thread_;
};

absl::Status HostDevice::Impl::StartThreads(int core) {
  try {
    compute_thread_ = std::thread([this] { compute_.Run(); });
    communication_thread_ = std::thread([this] { communication_.Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start the threads of a rank: ", error.what(), "; hint: see ulimit -v and -u"));
  }
  OPTIMUS_RETURN_IF_ERROR(Pin(compute_thread_, core));
  return Pin(communication_thread_, core);
}

absl::Status HostDevice::Impl::Resize(std::uint32_t events, std::uint32_t slots) {
  OPTIMUS_RETURN_IF_ERROR(threads_);
  if (Unfinished()) {
    return absl::FailedPreconditionError("Prepare while a step runs; hint: Synchronize first");
  }
  ClearQueues();
  phase_ = Phase::kIdle;
  state_.events.Resize(events);
  state_.stamps.Resize(slots);
  recorded_.assign(events, 0);
  return absl::OkStatus();
}

absl::Status HostDevice::Impl::Begin() {
  if (state_.given_up.load(std::memory_order_seq_cst)) {
    return absl::FailedPreconditionError(
        absl::StrCat("an earlier step has failed, so no other one can run (it was: ",
                     std::string(state_.error().message()), ")"));
  }
  if (Unfinished()) {
    return absl::FailedPreconditionError("Begin while a step runs; hint: Synchronize first");
  }
  ClearQueues();
  misuse_ = absl::OkStatus();
  std::fill(recorded_.begin(), recorded_.end(), 0);
  state_.events.Reset();
  state_.stamps.Reset();
  phase_ = Phase::kOpen;
  return absl::OkStatus();
}

absl::Status HostDevice::Impl::CheckOpen() const {
  if (phase_ == Phase::kOpen) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError("work can be enqueued between Begin and Start only");
}

void HostDevice::Impl::ClearQueues() {
  for (StreamQueue& queue : state_.queues) {
    queue.Clear();
  }
}

void HostDevice::Impl::Wait(ir::Stream stream, Event event) {
  if (phase_ != Phase::kOpen) {
    return Misuse("Wait outside of Begin and Start");
  }
  if (event >= state_.events.size()) {
    return Misuse(absl::StrCat("Wait for event ", event, " of ", state_.events.size()));
  }
  Queue(stream).commands.push_back({CommandKind::kWait, event});
}

void HostDevice::Impl::Record(ir::Stream stream, Event event) {
  if (phase_ != Phase::kOpen) {
    return Misuse("Record outside of Begin and Start");
  }
  if (event >= state_.events.size() || recorded_[event] != 0) {
    return Misuse(absl::StrCat("Record of event ", event, " of ", state_.events.size(),
                               event < state_.events.size() ? ", for the second time" : ""));
  }
  recorded_[event] = 1;
  Queue(stream).commands.push_back({CommandKind::kRecord, event});
}

void HostDevice::Impl::Stamps(ir::Stream stream, CommandKind kind, std::uint32_t slot,
                              const Stamp& stamp) {
  if (phase_ != Phase::kOpen || slot >= state_.stamps.size()) {
    return Misuse(absl::StrCat("stamp in slot ", slot, " of ", state_.stamps.size(),
                               phase_ == Phase::kOpen ? "" : ", outside of Begin and Start"));
  }
  Queue(stream).commands.push_back({kind, slot});
  Queue(stream).stamps.push_back(stamp);
}

// A step that waits for what never comes would hang.
void HostDevice::Impl::CheckWaits() {
  for (int s = 0; s < ir::kStreamCount; ++s) {
    for (const Command& command : state_.queues[s].commands) {
      if (command.kind == CommandKind::kWait && recorded_[command.index] == 0) {
        return Misuse(absl::StrCat("stream ", ir::ToString(static_cast<ir::Stream>(s)),
                                   " waits for event ", command.index,
                                   ", which no stream records"));
      }
    }
  }
}

absl::Status HostDevice::Impl::Start() {
  OPTIMUS_RETURN_IF_ERROR(CheckOpen());
  CheckWaits();
  OPTIMUS_RETURN_IF_ERROR(misuse_);
  phase_ = Phase::kStarted;
  state_.start_ns = 0;
  state_.compute_idle.store(false, std::memory_order_seq_cst);
  state_.running.store(2, std::memory_order_seq_cst);
  state_.started.fetch_add(1, std::memory_order_seq_cst);
  state_.compute.Wake();
  state_.communication.Wake();
  return absl::OkStatus();
}

absl::StatusOr<bool> HostDevice::Impl::Synchronize(absl::Duration limit) {
  if (phase_ != Phase::kStarted) {
    return absl::FailedPreconditionError("Synchronize before Start");
  }
  const bool forever = limit == absl::InfiniteDuration();
  const std::int64_t deadline_ns = forever ? kForeverNs : NowNs() + absl::ToInt64Nanoseconds(limit);
  for (;;) {
    state_.caller.Prepare();
    if (!Unfinished() || (!forever && NowNs() >= deadline_ns)) {
      break;
    }
    state_.caller.SleepUntil(deadline_ns);
  }
  state_.caller.Cancel();
  if (state_.given_up.load(std::memory_order_seq_cst)) {
    return state_.error();
  }
  return !Unfinished();
}

void HostDevice::Impl::GiveUp() {
  if (phase_ == Phase::kOpen) {
    ClearQueues();
    phase_ = Phase::kIdle;
  }
  if (Unfinished()) {
    state_.Fail(absl::CancelledError("the step was given up before its end"));
    static_cast<void>(Synchronize(absl::InfiniteDuration()));
  }
}

void HostDevice::Impl::Stop() {
  GiveUp();
  state_.quit.store(true, std::memory_order_seq_cst);
  state_.WakeAll();
  for (std::thread* thread : {&compute_thread_, &communication_thread_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

void HostDevice::Impl::SetProgress(std::function<void()> progress) {
  const bool some = progress != nullptr;
  {
    const std::lock_guard lock(state_.progress_mutex);
    state_.progress = std::move(progress);
  }
  state_.has_progress.store(some, std::memory_order_seq_cst);
  state_.communication.Wake();
}

HostDevice::HostDevice(HostOptions options)
    : impl_(std::make_unique<Impl>(options, [this](const Kernel& kernel, std::int64_t ready_ns) {
        return RunKernel(kernel, ready_ns);
      })) {}

HostDevice::~HostDevice() = default;

absl::Status HostDevice::Prepare(std::uint32_t events, std::uint32_t slots,
                                 absl::Span<const Kernel> kernels) {
  OPTIMUS_RETURN_IF_ERROR(impl_->Resize(events, slots));
  return PrepareKernels(kernels);
}

absl::Status HostDevice::Begin() { return impl_->Begin(); }
void HostDevice::Wait(ir::Stream stream, Event event) { impl_->Wait(stream, event); }
void HostDevice::Record(ir::Stream stream, Event event) { impl_->Record(stream, event); }

absl::Status HostDevice::Launch(ir::Stream stream, const Kernel& kernel) {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckOpen());
  if (stream != ir::Stream::kCompute) {
    return absl::UnimplementedError(absl::StrCat("kernel ", kernel.name, " on stream ",
                                                 ir::ToString(stream),
                                                 "; hint: kernels run on the compute stream"));
  }
  impl_->Add(stream, CommandKind::kKernel, impl_->Queue(stream).kernels, &kernel);
  return absl::OkStatus();
}

absl::Status HostDevice::LaunchHost(ir::Stream stream, std::function<absl::Status()> work) {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckOpen());
  if (stream != ir::Stream::kCompute) {
    return absl::UnimplementedError(absl::StrCat("host work on stream ", ir::ToString(stream),
                                                 "; hint: it runs on the compute stream"));
  }
  impl_->Add(stream, CommandKind::kHostWork, impl_->Queue(stream).host_work, std::move(work));
  return absl::OkStatus();
}

void HostDevice::WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) {
  impl_->Stamps(stream, CommandKind::kWriteStamp, slot, stamp);
}

void HostDevice::CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                            const std::function<std::string(const Stamp&)>* text) {
  impl_->Stamps(stream, CommandKind::kCheckStamp, slot, expected);
  impl_->Text(stream, text);
}

absl::Status HostDevice::Enqueue(ir::Stream stream, std::unique_ptr<HostTask> task) {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckOpen());
  if (stream == ir::Stream::kCompute) {
    return absl::UnimplementedError(
        "communication on the compute stream; hint: use one of its own");
  }
  impl_->Add(stream, CommandKind::kTask, impl_->Queue(stream).tasks, std::move(task));
  return absl::OkStatus();
}

absl::Status HostDevice::Start() { return impl_->Start(); }
absl::StatusOr<bool> HostDevice::Synchronize(absl::Duration limit) {
  return impl_->Synchronize(limit);
}

bool HostDevice::HasHappened(Event event) const {
  return event < impl_->state().events.size() && impl_->state().events.HasHappened(event);
}

std::int64_t HostDevice::TimeNs(Event event) const {
  return HasHappened(event) ? impl_->state().events.ActualNs(event) : 0;
}

std::int64_t HostDevice::NominalTimeNs(Event event) const {
  return HasHappened(event) ? impl_->state().events.NominalNs(event) : 0;
}

Bytes HostDevice::memory() const { return MachineMemory(); }
const MemoryShare& HostDevice::memory_share() const { return impl_->memory_share(); }
void HostDevice::SetProgress(std::function<void()> progress) {
  impl_->SetProgress(std::move(progress));
}
void HostDevice::GiveUp() { impl_->GiveUp(); }
void HostDevice::StopThreads() { impl_->Stop(); }

absl::Status HostDevice::SleepInKernelUntilNs(std::int64_t time_ns) {
  if (impl_->compute().SleepInKernelUntilNs(time_ns)) {
    return absl::OkStatus();
  }
  return absl::CancelledError("the step was given up while a kernel ran");
}

}  // namespace optimus::executor
