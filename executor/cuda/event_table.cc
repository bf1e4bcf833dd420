#include "executor/cuda/event_table.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/clock_fit.h"
#include "executor/cuda/cuda_status.h"
#include "executor/runtime/this_host.h"

namespace optimus::executor::cuda {
namespace {

constexpr int kProbes = 8;
constexpr double kNsPerMs = 1e6;

}  // namespace

EventTable::~EventTable() {
  for (const auto* list : {&events_, &internal_, &twins_}) {
    for (cudaEvent_t event : *list) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }
  for (cudaEvent_t event : {origin_, probe_}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

absl::Status EventTable::Reserve(std::uint32_t events) {
  if (origin_ == nullptr) {
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreate(&origin_));
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreate(&probe_));
  }
  if (events <= events_.size()) return absl::OkStatus();
  while (events_.size() < events) {
    cudaEvent_t event = nullptr;
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreate(&event));
    events_.push_back(event);
  }
  recorded_ = std::make_unique<Recorded[]>(events_.size());
  return absl::OkStatus();
}

absl::Status EventTable::Begin(cudaStream_t stream) {
  OPTIMUS_RETURN_IF_ERROR(Reserve(0));
  for (std::size_t i = 0; i < events_.size(); ++i) recorded_[i].value = false;
  used_internal_ = 0;
  return FitClock(stream);
}

absl::Status EventTable::FitClock(cudaStream_t stream) {
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventRecord(origin_, stream));
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(origin_));
  ClockFit fit;
  for (int i = 0; i < kProbes; ++i) {
    const std::int64_t before = NowNs();
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventRecord(probe_, stream));
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(probe_));
    const std::int64_t after = NowNs();
    float ms = 0;
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&ms, origin_, probe_));
    fit.Add(before, after, static_cast<double>(ms) * kNsPerMs);
  }
  origin_ns_ = fit.origin_ns();
  return absl::OkStatus();
}

absl::StatusOr<Event> EventTable::AddInternal() {
  if (used_internal_ == internal_.size()) {
    cudaEvent_t event = nullptr;
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    internal_.push_back(event);
  }
  return kFirstInternal + static_cast<Event>(used_internal_++);
}

cudaEvent_t EventTable::Get(Event event) const {
  return event < kFirstInternal ? events_[event] : internal_[event - kFirstInternal];
}

absl::Status EventTable::Record(Event event, cudaStream_t stream, bool captured) {
  if (event >= kFirstInternal) return CudaStatus(cudaEventRecord(Get(event), stream), "record");
  if (!captured) {
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventRecord(Get(event), stream));
    recorded_[event].value = true;
    return absl::OkStatus();
  }
  OPTIMUS_CUDA_RETURN_IF_ERROR(
      cudaEventRecordWithFlags(Get(event), stream, cudaEventRecordExternal));
  if (twins_.size() < events_.size()) twins_.resize(events_.size(), nullptr);
  cudaEvent_t& twin = twins_[event];
  if (twin == nullptr) {
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&twin, cudaEventDisableTiming));
  }
  return CudaStatus(cudaEventRecord(twin, stream), "cudaEventRecord");
}

absl::Status EventTable::Wait(Event event, cudaStream_t stream, bool captured) {
  cudaEvent_t awaited = Get(event);
  if (captured && event < kFirstInternal) awaited = event < twins_.size() ? twins_[event] : nullptr;
  if (awaited == nullptr) {
    return absl::InternalError(absl::StrCat("cuda: event ", event,
                                            " is waited for before it is "
                                            "recorded"));
  }
  return CudaStatus(cudaStreamWaitEvent(stream, awaited, 0), "cudaStreamWaitEvent");
}

void EventTable::SetAllRecorded() {
  for (std::size_t i = 0; i < events_.size(); ++i) recorded_[i].value = true;
}

// After a graph's launch an event still holds its time of the step before until its node has run.
bool EventTable::HasHappened(Event event) const {
  if (event >= events_.size() || !recorded_[event].value) return false;
  if (cudaEventQuery(events_[event]) != cudaSuccess) return false;
  float ms = -1;
  return cudaEventElapsedTime(&ms, origin_, events_[event]) == cudaSuccess && ms >= 0;
}

std::int64_t EventTable::TimeNs(Event event) const {
  float ms = 0;
  if (event >= events_.size() || !recorded_[event].value) return origin_ns_;
  if (cudaEventElapsedTime(&ms, origin_, events_[event]) != cudaSuccess) return origin_ns_;
  return origin_ns_ + static_cast<std::int64_t>(static_cast<double>(ms) * kNsPerMs);
}

}  // namespace optimus::executor::cuda
