#include "executor/cuda/message_routes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "executor/cuda/cuda_status.h"
#include "executor/cuda/message_plan.h"
#include "executor/cuda/split_rounds.h"
#include "executor/cuda/stamp_words.h"
#include "executor/cuda/transfer_counts.h"

namespace optimus::executor::cuda {
namespace {

constexpr int kSource = 0, kDestination = 1;  // ranks in a route's communicator
constexpr absl::Duration kPoll = absl::Microseconds(100);

std::string NameOf(const Route& route) {
  return absl::StrCat("rank ", route.source, " to rank ", route.destination, " (",
                      ir::ToString(route.send_stream), ")");
}

}  // namespace

MessageRoutes::~MessageRoutes() {
  for (auto& [route, way] : ways_) {
    device_.RemoveWatch(way.watch);
    way.comm->Close(device_.unfinished());
  }
}

absl::Status MessageRoutes::Connect(const ir::Schedule& schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Route> routes, RoutesOf(schedule));
  of_message_ = RoutesOfMessages(schedule, rank_);
  std::vector<Route> added;
  std::set_difference(routes.begin(), routes.end(), connected_.begin(), connected_.end(),
                      std::back_inserter(added));
  for (const std::vector<std::size_t>& round : SplitRounds(added)) {
    int color = NCCL_SPLIT_NOCOLOR;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const Route& route = added[round[i]];
      if (route.source == rank_ || route.destination == rank_) color = static_cast<int>(i);
    }
    const bool mine = color != NCCL_SPLIT_NOCOLOR;
    const Route route = mine ? added[round[static_cast<std::size_t>(color)]] : Route();
    const int key = route.source == rank_ ? kSource : kDestination;
    OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<NcclComm> comm,
                             world_->Split(color, key, mine ? NameOf(route) : "no route"));
    if (mine) OPTIMUS_RETURN_IF_ERROR(Open(route, std::move(comm)));
  }
  std::vector<Route> all;
  std::set_union(connected_.begin(), connected_.end(), added.begin(), added.end(),
                 std::back_inserter(all));
  connected_ = std::move(all);
  return absl::OkStatus();
}

absl::Status MessageRoutes::Open(const Route& route, std::unique_ptr<NcclComm> comm) {
  Way way;
  way.route = route;
  way.name = absl::StrCat(route.source == rank_ ? "send to rank " : "receive from rank ",
                          route.source == rank_ ? route.destination : route.source);
  way.comm = std::move(comm);
  OPTIMUS_ASSIGN_OR_RETURN(way.header, AllocateOnDevice<StampValue>(sizeof(StampValue)));
  if (route.destination == rank_) {
    OPTIMUS_ASSIGN_OR_RETURN(way.stream, device_.AddStream());
  }
  OPTIMUS_RETURN_IF_ERROR(Exchange(way));
  way.watch = device_.AddWatch([comm = way.comm.get()] { return comm->AsyncError(); });
  ways_.emplace(route, std::move(way));
  return absl::OkStatus();
}

// One small message, so that NCCL connects the two now and not in a step.
absl::Status MessageRoutes::Exchange(const Way& way) const {
  cudaStream_t const stream = device_.stream(CudaDevice::IndexOf(ir::Stream::kCompute));
  OPTIMUS_RETURN_IF_ERROR(Transfer(way, nullptr, 0, /*header=*/true, stream));
  return WaitForStream(way, stream);
}

absl::Status MessageRoutes::WaitForStream(const Way& way, cudaStream_t stream) const {
  const absl::Time deadline = absl::Now() + kNcclPatience;
  while (true) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) return absl::OkStatus();
    if (state != cudaErrorNotReady) return CudaStatus(state, "the first message");
    OPTIMUS_RETURN_IF_ERROR(way.comm->AsyncError());
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("nccl: the first message from ", NameOf(way.route), " has not arrived"));
    }
    absl::SleepFor(kPoll);
  }
}

absl::StatusOr<MessageRoutes::Way*> MessageRoutes::Find(bool send, ir::Stream stream,
                                                        const MessageCall& call) {
  std::vector<Way*> found;
  for (auto& [route, way] : ways_) {
    const bool here = send ? route.source == rank_ && route.destination == call.peer &&
                                 route.send_stream == stream
                           : route.destination == rank_ && route.source == call.peer &&
                                 route.receive_stream == stream;
    if (here) found.push_back(&way);
  }
  if (found.size() == 1) return found[0];
  const auto known = of_message_.find(call.message);
  for (Way* way : found) {
    if (known != of_message_.end() && way->route == known->second) return way;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cuda: message ", call.message, send ? " to rank " : " from rank ", call.peer,
                   " has no connection; Communicator::Connect comes first"));
}

absl::Status MessageRoutes::Send(ir::Stream stream, const MessageCall& call) {
  OPTIMUS_ASSIGN_OR_RETURN(Way* const way, Find(/*send=*/true, stream, call));
  return Enqueue(*way, CudaDevice::IndexOf(stream), call);
}

absl::Status MessageRoutes::Receive(ir::Stream stream, const MessageCall& call) {
  OPTIMUS_ASSIGN_OR_RETURN(Way* const way, Find(/*send=*/false, stream, call));
  OPTIMUS_ASSIGN_OR_RETURN(const Event arrived, device_.AddEvent());
  OPTIMUS_RETURN_IF_ERROR(Enqueue(*way, way->stream, call));
  device_.RecordOn(way->stream, arrived);
  device_.WaitFor(CudaDevice::IndexOf(stream), arrived);
  return absl::OkStatus();
}

absl::Status MessageRoutes::Enqueue(Way& way, int stream, const MessageCall& call) {
  const bool sends = way.route.source == rank_;
  const std::int64_t count = MessageCount(call.bytes);
  const bool checked = device_.Checks(call.stamp);
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t at,
                           sends ? device_.arena().TakeInput(count * kElementBytes)
                                 : device_.arena().TakeOutput(count * kElementBytes));
  const std::uint32_t check =
      checked && !sends ? device_.stamps().AddCheck(call.stamp, call.text) : 0;
  Command command;
  command.stream = stream;
  command.name = &way.name;
  command.signature = Signature()
                          .Add(&way)
                          .Add(static_cast<std::uint64_t>(count))
                          .Add(static_cast<std::uint64_t>(at))
                          .value();
  command.run = [this, &way, sends, count, checked, at, check,
                 stamp = call.stamp](cudaStream_t on) {
    if (checked && sends) {
      OPTIMUS_RETURN_IF_ERROR(StampTable::LaunchWrite(way.header.get(), stamp, on));
    }
    char* const data = sends ? device_.arena().input(at) : device_.arena().output(at);
    // A message without bytes still has to arrive.
    OPTIMUS_RETURN_IF_ERROR(Transfer(way, data, count, checked || count == 0, on));
    if (!checked || sends) return absl::OkStatus();
    return device_.stamps().LaunchCheck(check, way.header.get(), 1, kAllWords, on);
  };
  device_.Enqueue(std::move(command));
  return absl::OkStatus();
}

absl::Status MessageRoutes::Transfer(const Way& way, void* data, std::int64_t count, bool header,
                                     cudaStream_t stream) const {
  const Nccl& nccl = way.comm->nccl();
  ncclComm_t const comm = way.comm->get();
  const bool sends = way.route.source == rank_;
  ncclResult_t failed = ncclSuccess;
  const auto note = [&failed](ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress && failed == ncclSuccess) failed = result;
  };
  const auto move = [&](void* buffer, std::size_t elements, ncclDataType_t type) {
    note(sends ? nccl.Send(buffer, elements, type, kDestination, comm, stream)
               : nccl.Recv(buffer, elements, type, kSource, comm, stream));
  };
  note(nccl.GroupStart());
  if (header) move(way.header.get(), kStampWords, ncclUint32);
  if (count > 0) move(data, static_cast<std::size_t>(count), ncclBfloat16);
  const ncclResult_t ended = nccl.GroupEnd();
  return way.comm->Await(failed == ncclSuccess ? ended : failed, way.name);
}

}  // namespace optimus::executor::cuda
