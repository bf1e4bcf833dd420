#include "executor/cuda/cuda_device.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "executor/cuda/cuda_status.h"
#include "executor/cuda/device_check.h"
#include "executor/cuda/stamp_words.h"

namespace optimus::executor::cuda {
namespace {

// Launches that wait at the gate: well below what a GPU's queue takes.
constexpr int kLead = 400;
constexpr int kThreadBlocksOfOne = 8;  // 256 threads each fill a multiprocessor
constexpr absl::Duration kPoll = absl::Microseconds(50);
constexpr absl::Duration kWatchEvery = absl::Milliseconds(5);

std::string BlasVersion(std::size_t version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// Shown by Nsight Systems around what it launches.
class NamedRange {
 public:
  explicit NamedRange(const std::string* name) : named_(name != nullptr) {
    if (named_) nvtxRangePushA(name->c_str());
  }
  ~NamedRange() {
    if (named_) nvtxRangePop();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  bool named_;
};

void CUDART_CB WaitAtGate(void* gate) { static_cast<Gate*>(gate)->WaitUntilOpen(); }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(int ordinal,
                                                               const CudaOptions& options,
                                                               const Libraries& libraries) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(options, libraries));
  OPTIMUS_RETURN_IF_ERROR(device->Open(ordinal));
  return device;
}

absl::Status CudaDevice::Open(int ordinal) {
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaSetDevice(ordinal));
  cudaDeviceProp properties = {};
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, ordinal));
  memory_ = Bytes(static_cast<std::int64_t>(properties.totalGlobalMem));
  description_ = absl::StrCat(properties.name, " (sm_", properties.major, properties.minor,
                              "), bf16 by cuBLASLt ", BlasVersion(libraries_.blas.GetVersion()),
                              ", attention unfused (batched GEMMs and softmax), CUDA ",
                              CudaVersion(CUDART_VERSION));
  for (int stream = 0; stream < ir::kStreamCount; ++stream) {
    OPTIMUS_RETURN_IF_ERROR(NewStream(stream != IndexOf(ir::Stream::kCompute)).status());
  }
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&held_, cudaEventDisableTiming));
  OPTIMUS_ASSIGN_OR_RETURN(
      launcher_,
      Launcher::Create(libraries_.blas, properties.multiProcessorCount * kThreadBlocksOfOne,
                       stream(IndexOf(ir::Stream::kCompute))));
  issuer_ = std::make_unique<Issuer>(
      [ordinal] { return CudaStatus(cudaSetDevice(ordinal), "cudaSetDevice"); });
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() {
  StopIssuing();
  issuer_.reset();
  cudaDeviceSynchronize();  // streams refer to the gate; communicators have been aborted by now
  for (cudaEvent_t event : ends_) cudaEventDestroy(event);
  if (held_ != nullptr) cudaEventDestroy(held_);
  graph_.Clear();
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

std::string CudaDevice::Description() const { return description_; }

// Transfers go first where both have blocks to place: a collective that is late holds up others.
absl::StatusOr<int> CudaDevice::NewStream(bool communication) {
  int least = 0;
  int greatest = 0;
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                            communication ? greatest : least));
  streams_.push_back(stream);
  cudaEvent_t end = nullptr;
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  ends_.push_back(end);
  used_.push_back(false);
  return static_cast<int>(streams_.size()) - 1;
}

absl::StatusOr<int> CudaDevice::AddStream() {
  if (streams() >= kNeededConnections) {
    return absl::UnimplementedError(absl::StrCat("cuda: more than ", kNeededConnections,
                                                 " streams: this rank sends and receives on too "
                                                 "many ways; hint: fewer pipelines that share it"));
  }
  return NewStream(/*communication=*/true);
}

absl::Status CudaDevice::Prepare(std::uint32_t events, std::uint32_t slots,
                                 absl::Span<const Kernel> kernels) {
  if (running_) return absl::FailedPreconditionError("cuda: Prepare within a step");
  graph_.Clear();  // it may have addresses that change
  OPTIMUS_RETURN_IF_ERROR(events_.Reserve(events));
  OPTIMUS_RETURN_IF_ERROR(stamps_.Reserve(slots));
  OPTIMUS_RETURN_IF_ERROR(launcher_->Prepare(kernels));
  recorded_in_step_.resize(std::max<std::size_t>(recorded_in_step_.size(), events));
  return absl::OkStatus();
}

absl::Status CudaDevice::Begin() {
  if (running_ || failed_) {
    return absl::FailedPreconditionError("cuda: the step before has not been finished");
  }
  commands_.clear();
  used_.assign(streams_.size(), false);
  recorded_in_step_.assign(recorded_in_step_.size(), false);
  enqueue_error_ = absl::OkStatus();
  checked_ = false;
  stamps_.Begin();
  arena().Restart();
  return events_.Begin(stream(IndexOf(ir::Stream::kCompute)));
}

void CudaDevice::Add(Command command) {
  used_[static_cast<std::size_t>(command.stream)] = true;
  commands_.push_back(std::move(command));
}

// CUDA takes an event that has not been recorded for one that has happened.
void CudaDevice::Wait(ir::Stream stream, Event event) {
  if (enqueue_error_.ok() && (event >= recorded_in_step_.size() || !recorded_in_step_[event])) {
    enqueue_error_ = absl::FailedPreconditionError(
        absl::StrCat("cuda: event ", event, " is waited for before it is recorded"));
  }
  WaitFor(IndexOf(stream), event);
}

void CudaDevice::Record(ir::Stream stream, Event event) {
  if (event < recorded_in_step_.size()) {
    recorded_in_step_[event] = true;
  } else if (enqueue_error_.ok()) {
    enqueue_error_ =
        absl::FailedPreconditionError(absl::StrCat("cuda: Prepare made no event ", event));
  }
  RecordOn(IndexOf(stream), event);
}

void CudaDevice::WaitFor(int stream, Event event) {
  Command command;
  command.kind = Command::Kind::kWait;
  command.stream = stream;
  command.event = event;
  Add(std::move(command));
}

void CudaDevice::RecordOn(int stream, Event event) {
  Command command;
  command.kind = Command::Kind::kRecord;
  command.stream = stream;
  command.event = event;
  Add(std::move(command));
}

absl::Status CudaDevice::Launch(ir::Stream stream, const Kernel& kernel) {
  if (stream != ir::Stream::kCompute) {
    return absl::UnimplementedError(
        absl::StrCat("cuda: a kernel on the ", ir::ToString(stream), " stream"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const PreparedKernel* const prepared, launcher_->Find(kernel));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t input, arena().TakeInput(prepared->input_bytes));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t output, arena().TakeOutput(prepared->output_bytes));
  Command command;
  command.stream = IndexOf(stream);
  command.name = &prepared->kernel.name;
  command.launches = prepared->launches;
  command.signature = Signature()
                          .Add(prepared)
                          .Add(static_cast<std::uint64_t>(input))
                          .Add(static_cast<std::uint64_t>(output))
                          .value();
  command.run = [this, prepared, input, output](cudaStream_t on) {
    return launcher_->Launch(*prepared, input, output, on);
  };
  Add(std::move(command));
  return absl::OkStatus();
}

absl::Status CudaDevice::LaunchHost(ir::Stream /*stream*/, std::function<absl::Status()> /*work*/) {
  return absl::UnimplementedError("cuda: real data is trained on the cpu backend only");
}

bool CudaDevice::IsSlot(std::uint32_t slot) {
  if (slot < stamps_.slots()) return true;
  if (enqueue_error_.ok()) {
    enqueue_error_ =
        absl::FailedPreconditionError(absl::StrCat("cuda: Prepare made no slot ", slot));
  }
  return false;
}

void CudaDevice::WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) {
  if (!Checks(stamp)) return;
  if (!IsSlot(slot)) return;
  checked_ = true;
  Command command;
  command.stream = IndexOf(stream);
  command.run = [this, slot, stamp](cudaStream_t on) {
    return StampTable::LaunchWrite(stamps_.slot(slot), stamp, on);
  };
  Add(std::move(command));
}

void CudaDevice::CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                            const std::function<std::string(const Stamp&)>* text) {
  if (!Checks(expected)) return;
  if (!IsSlot(slot)) return;
  checked_ = true;
  const std::uint32_t check = stamps_.AddCheck(expected, text);
  Command command;
  command.stream = IndexOf(stream);
  command.run = [this, slot, check](cudaStream_t on) {
    return stamps_.LaunchCheck(check, stamps_.slot(slot), 1, kAllWords, on);
  };
  Add(std::move(command));
}

absl::Status CudaDevice::Start() {
  OPTIMUS_RETURN_IF_ERROR(enqueue_error_);
  running_ = true;
  gate_.Close();
  const bool graph = options_.graph && !checked_;
  issuer_->Run([this, graph] {
    absl::Status status = graph ? RunGraph() : RunStep();
    gate_.Open();
    return status;
  });
  return absl::OkStatus();
}

absl::Status CudaDevice::RunStep() {
  OPTIMUS_RETURN_IF_ERROR(HoldStreams());
  OPTIMUS_RETURN_IF_ERROR(IssueAll(/*captured=*/false));
  return MarkEnds();
}

absl::Status CudaDevice::HoldStreams() {
  const int compute = IndexOf(ir::Stream::kCompute);
  used_[static_cast<std::size_t>(compute)] = true;
  if (checked_) OPTIMUS_RETURN_IF_ERROR(stamps_.Clear(stream(compute)));
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaLaunchHostFunc(stream(compute), WaitAtGate, &gate_));
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventRecord(held_, stream(compute)));
  for (int index = 0; index < streams(); ++index) {
    if (index == compute || !used_[static_cast<std::size_t>(index)]) continue;
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream(index), held_, 0));
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::IssueAll(bool captured) {
  int launches = 0;
  bool led = false;
  for (const Command& command : commands_) {
    if (issuer_->stopped()) return absl::CancelledError("cuda: the step was given up");
    OPTIMUS_RETURN_IF_ERROR(IssueOne(command, captured));
    launches += command.launches;
    if (!led && launches >= kLead) {
      led = true;
      gate_.Open();
    }
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::IssueOne(const Command& command, bool captured) {
  cudaStream_t const on = stream(command.stream);
  switch (command.kind) {
    case Command::Kind::kWait:
      return events_.Wait(command.event, on, captured);
    case Command::Kind::kRecord:
      return events_.Record(command.event, on, captured);
    case Command::Kind::kWork:
      break;
  }
  const NamedRange range(command.name);
  return command.run(on);
}

absl::Status CudaDevice::MarkEnds() {
  for (int index = 0; index < streams(); ++index) {
    if (!used_[static_cast<std::size_t>(index)]) continue;
    OPTIMUS_CUDA_RETURN_IF_ERROR(
        cudaEventRecord(ends_[static_cast<std::size_t>(index)], stream(index)));
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::RunGraph() {
  const int compute = IndexOf(ir::Stream::kCompute);
  if (!graph_.Fits(commands_) || graph_generation_ != arena().generation()) {
    std::vector<cudaStream_t> streams = {stream(compute)};
    for (std::size_t index = 0; index < streams_.size(); ++index) {
      if (used_[index] && static_cast<int>(index) != compute) streams.push_back(streams_[index]);
    }
    OPTIMUS_RETURN_IF_ERROR(
        graph_.Capture(streams, commands_, [this] { return IssueAll(/*captured=*/true); }));
    graph_generation_ = arena().generation();
  }
  events_.SetAllRecorded();
  OPTIMUS_RETURN_IF_ERROR(graph_.Launch(stream(compute)));
  used_.assign(streams_.size(), false);  // all of it ends on one stream
  used_[static_cast<std::size_t>(compute)] = true;
  return MarkEnds();
}

absl::Status CudaDevice::FindError() {
  OPTIMUS_RETURN_IF_ERROR(stamps_.error());
  if (issuer_->done()) OPTIMUS_RETURN_IF_ERROR(issuer_->status());
  const std::int64_t now = absl::GetCurrentTimeNanos();
  if (now < next_watch_ns_) return absl::OkStatus();
  next_watch_ns_ = now + absl::ToInt64Nanoseconds(kWatchEvery);
  for (const auto& [id, watch] : watches_) OPTIMUS_RETURN_IF_ERROR(watch());
  return absl::OkStatus();
}

absl::StatusOr<bool> CudaDevice::HasEnded() const {
  if (!issuer_->done()) return false;
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    if (!used_[index]) continue;
    const cudaError_t state = cudaEventQuery(ends_[index]);
    if (state == cudaErrorNotReady) return false;
    OPTIMUS_RETURN_IF_ERROR(CudaStatus(state, "a kernel or transfer of this step"));
  }
  return true;
}

absl::StatusOr<bool> CudaDevice::Synchronize(absl::Duration limit) {
  if (!running_) return !failed_;
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    absl::Status error = FindError();
    absl::StatusOr<bool> ended = false;
    if (error.ok()) ended = HasEnded();
    // What has ended may have failed a check just now.
    if (error.ok() && ended.ok() && *ended) error = stamps_.error();
    if (!error.ok() || !ended.ok()) {
      failed_ = true;
      return error.ok() ? ended.status() : error;
    }
    if (*ended) {
      running_ = false;
      return true;
    }
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPoll);
  }
}

int CudaDevice::AddWatch(std::function<absl::Status()> watch) {
  watches_[next_watch_] = std::move(watch);
  return next_watch_++;
}

// A call of NCCL's that is under way should end before its communicator goes. It may not end before
// that is aborted, so the wait is short.
void CudaDevice::StopIssuing() {
  if (issuer_ == nullptr || issuer_->stopped()) return;
  issuer_->Stop();
  gate_.Open();
  const absl::Time deadline = absl::Now() + absl::Seconds(1);
  while (!issuer_->done() && absl::Now() < deadline) absl::SleepFor(kPoll);
}

}  // namespace optimus::executor::cuda
