#include "executor/cuda/cuda_communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/stamp_words.h"
#include "executor/cuda/transfer_counts.h"

namespace optimus::executor::cuda {
namespace {

absl::Status NoRealData(const Payload& payload) {
  if (!payload.input && !payload.output) return absl::OkStatus();
  return absl::UnimplementedError("cuda: real data is moved on the cpu backend only");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaCommunicator>> CudaCommunicator::CreateWorld(
    CudaDevice& device, std::unique_ptr<NcclComm> base, int rank, int size) {
  std::unique_ptr<NcclComm> comm;
  if (base != nullptr) {
    OPTIMUS_ASSIGN_OR_RETURN(comm, base->Split(/*color=*/0, rank, "world"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<CudaCommunicator> made,
                           Create(device, std::move(comm), "world", rank, size));
  made->base_ = std::move(base);
  made->routes_ = std::make_unique<MessageRoutes>(device, made->base_.get(), rank);
  return made;
}

absl::StatusOr<std::unique_ptr<CudaCommunicator>> CudaCommunicator::Create(
    CudaDevice& device, std::unique_ptr<NcclComm> comm, std::string name, int rank, int size) {
  std::unique_ptr<CudaCommunicator> made(
      new CudaCommunicator(device, std::move(comm), std::move(name), rank, size));
  if (made->comm_ == nullptr) return made;
  OPTIMUS_ASSIGN_OR_RETURN(
      made->stamps_,
      AllocateOnDevice<StampValue>(std::int64_t{size + 1} * std::int64_t{sizeof(StampValue)}));
  made->watch_ = device.AddWatch([raw = made->comm_.get()] { return raw->AsyncError(); });
  return made;
}

CudaCommunicator::~CudaCommunicator() {
  const bool abort = device_.unfinished();
  if (abort) device_.StopIssuing();
  routes_.reset();
  if (comm_ == nullptr) return;
  device_.RemoveWatch(watch_);
  comm_->Close(abort);
  if (base_ != nullptr) base_->Close(abort);
}

absl::StatusOr<std::unique_ptr<Communicator>> CudaCommunicator::Split(
    absl::Span<const std::int32_t> ranks, const std::string& name) {
  const auto me = std::find(ranks.begin(), ranks.end(), rank_);
  if (me == ranks.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cuda: group '", name, "' has not rank ", rank_, " that makes it"));
  }
  const auto size = static_cast<int>(ranks.size());
  std::unique_ptr<NcclComm> part;
  if (NcclComm* const whole = base_ != nullptr ? base_.get() : comm_.get(); whole != nullptr) {
    const int color = size == 1 ? NCCL_SPLIT_NOCOLOR : ranks.front();
    OPTIMUS_ASSIGN_OR_RETURN(part, whole->Split(color, rank_, name));
  }
  OPTIMUS_ASSIGN_OR_RETURN(
      std::unique_ptr<CudaCommunicator> made,
      Create(device_, std::move(part), name, static_cast<int>(me - ranks.begin()), size));
  return made;
}

absl::Status CudaCommunicator::Connect(const ir::Schedule& schedule) {
  if (routes_ == nullptr) return absl::UnimplementedError("cuda: messages go over the world only");
  return routes_->Connect(schedule);
}

absl::Status CudaCommunicator::Expect(absl::Span<const MessageCall> calls) {
  for (const MessageCall& call : calls) OPTIMUS_RETURN_IF_ERROR(CheckMessage(call));
  return absl::OkStatus();
}

absl::Status CudaCommunicator::CheckMessage(const MessageCall& call) const {
  OPTIMUS_RETURN_IF_ERROR(NoRealData(call.payload));
  if (routes_ == nullptr) return absl::UnimplementedError("cuda: messages go over the world only");
  return absl::OkStatus();
}

absl::Status CudaCommunicator::Send(ir::Stream stream, const MessageCall& call) {
  OPTIMUS_RETURN_IF_ERROR(CheckMessage(call));
  return routes_->Send(stream, call);
}

absl::Status CudaCommunicator::Receive(ir::Stream stream, const MessageCall& call) {
  OPTIMUS_RETURN_IF_ERROR(CheckMessage(call));
  return routes_->Receive(stream, call);
}

absl::Status CudaCommunicator::Collective(ir::Stream stream, const CollectiveCall& call) {
  OPTIMUS_RETURN_IF_ERROR(NoRealData(call.payload));
  if (comm_ == nullptr) return absl::OkStatus();  // a group of one: nothing moves
  const TransferCounts counts = CountsOf(*call.work, size_);
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t in, device_.arena().TakeInput(counts.send_bytes));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t out,
                           device_.arena().TakeOutput(counts.receive_bytes));
  const bool checked = device_.Checks(call.stamp);
  const std::uint32_t check = checked ? device_.stamps().AddCheck(call.stamp, call.text) : 0;
  Command command;
  command.stream = CudaDevice::IndexOf(stream);
  command.name = &call.work->name;
  command.signature = Signature()
                          .Add(this)
                          .Add(static_cast<std::uint64_t>(call.work->kind))
                          .Add(static_cast<std::uint64_t>(counts.count))
                          .Add(static_cast<std::uint64_t>(in))
                          .Add(static_cast<std::uint64_t>(out))
                          .value();
  command.run = [this, work = call.work, counts, in, out, checked, check,
                 stamp = call.stamp](cudaStream_t on) {
    if (checked) {
      OPTIMUS_RETURN_IF_ERROR(StampTable::LaunchWrite(stamps_.get() + size_, stamp, on));
    }
    // A collective without bytes still has to wait for its members.
    if (checked || counts.count == 0) OPTIMUS_RETURN_IF_ERROR(GatherStamps(on));
    if (checked) {
      OPTIMUS_RETURN_IF_ERROR(
          device_.stamps().LaunchCheck(check, stamps_.get(), size_, kCollectiveWords, on));
    }
    if (counts.count == 0) return absl::OkStatus();
    return Move(*work, device_.arena().input(in), device_.arena().output(out), on);
  };
  device_.Enqueue(std::move(command));
  return absl::OkStatus();
}

absl::Status CudaCommunicator::GatherStamps(cudaStream_t stream) const {
  return comm_->Await(comm_->nccl().AllGather(stamps_.get() + size_, stamps_.get(), kStampWords,
                                              ncclUint32, comm_->get(), stream),
                      "gathering stamps");
}

absl::Status CudaCommunicator::Move(const CollectiveWork& work, const void* in, void* out,
                                    cudaStream_t stream) const {
  const Nccl& nccl = comm_->nccl();
  ncclComm_t const comm = comm_->get();
  const auto count = static_cast<std::size_t>(CountsOf(work, size_).count);
  ncclResult_t result = ncclInvalidArgument;
  switch (work.kind) {
    case CollectiveKind::kAllGather:
      result = nccl.AllGather(in, out, count, ncclBfloat16, comm, stream);
      break;
    case CollectiveKind::kReduceScatter:
      result = nccl.ReduceScatter(in, out, count, ncclBfloat16, ncclSum, comm, stream);
      break;
    case CollectiveKind::kAllReduce:
      result = nccl.AllReduce(in, out, count, ncclBfloat16, ncclSum, comm, stream);
      break;
    case CollectiveKind::kBroadcast:
      result = nccl.Broadcast(in, out, count, ncclBfloat16, 0, comm, stream);
      break;
    case CollectiveKind::kAllToAll:
      result = nccl.AllToAll(in, out, count, ncclBfloat16, comm, stream);
      break;
  }
  return comm_->Await(result, absl::StrCat(ToString(work.kind), " '", work.name, "'"));
}

}  // namespace optimus::executor::cuda
