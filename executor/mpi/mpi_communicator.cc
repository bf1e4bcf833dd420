#include "executor/mpi/mpi_communicator.h"

#include <mutex>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/mpi/collective_task.h"
#include "executor/mpi/exchange_plan.h"
#include "executor/mpi/group_split.h"
#include "executor/mpi/message_tasks.h"
#include "executor/mpi/mpi_world.h"
#include "executor/mpi/transport.h"

namespace optimus::executor {
namespace {

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(GroupLink link)
      : link_(std::make_shared<const GroupLink>(std::move(link))) {}
  // Tasks may hold the transport for longer, so it is the world's communicator that ends it.
  ~MpiCommunicator() override {
    if (link_->number == kWorldGroup) transport().Close();
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return link_->rank; }
  int size() const override { return link_->size(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) override {
    OPTIMUS_ASSIGN_OR_RETURN(GroupLink group, SplitGroup(*link_, ranks, name));
    return std::make_unique<MpiCommunicator>(std::move(group));
  }

  absl::Status Connect(const ir::Schedule& schedule) override {
    if (transport().pacing != nullptr) transport().pacing->Connect(schedule);
    return absl::OkStatus();
  }

  absl::Status Reserve(Bytes largest) override {
    return transport().Reserve(executor::FloatsOf(largest));
  }

  absl::Status Expect(absl::Span<const MessageCall> calls) override {
    for (const MessageCall& call : calls) {
      OPTIMUS_RETURN_IF_ERROR(CheckPeer(call));
      OPTIMUS_RETURN_IF_ERROR(transport().Reserve(FloatsOf(call)));
    }
    const std::lock_guard lock(transport().mutex);
    for (const MessageCall& call : calls) {
      OPTIMUS_RETURN_IF_ERROR(transport().mailbox.Expect(GlobalRank(call.peer), call.message,
                                                         static_cast<bool>(call.payload.output)));
    }
    return absl::OkStatus();
  }

  absl::Status Collective(ir::Stream stream, const CollectiveCall& call) override {
    if (size() > 1 && !call.payload.input && !call.payload.output) {
      OPTIMUS_RETURN_IF_ERROR(
          transport().Reserve(FloatsFor(call.work->kind, call.work->bytes, size())));
    }
    return transport().device.Enqueue(stream, MakeCollectiveTask(link_, issued_++, call));
  }

  absl::Status Send(ir::Stream stream, const MessageCall& call) override {
    OPTIMUS_RETURN_IF_ERROR(CheckPeer(call));
    OPTIMUS_RETURN_IF_ERROR(transport().Reserve(FloatsOf(call)));
    const MessageEnds ends = {GlobalRank(rank()), GlobalRank(call.peer)};
    return transport().device.Enqueue(stream, MakeSendTask(link_->transport, ends, call));
  }

  absl::Status Receive(ir::Stream stream, const MessageCall& call) override {
    OPTIMUS_RETURN_IF_ERROR(CheckPeer(call));
    const MessageEnds ends = {GlobalRank(call.peer), GlobalRank(rank())};
    return transport().device.Enqueue(stream, MakeReceiveTask(link_->transport, ends, call));
  }

 private:
  // That mean nothing.
  static std::int64_t FloatsOf(const MessageCall& call) {
    return call.payload.input || call.payload.output ? 0 : executor::FloatsOf(call.bytes);
  }
  Transport& transport() const { return *link_->transport; }
  std::int32_t GlobalRank(std::int32_t member) const {
    return link_->ranks[static_cast<std::size_t>(member)];
  }
  absl::Status CheckPeer(const MessageCall& call) const {
    if (call.peer >= 0 && call.peer < size() && call.peer != rank()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("message ", call.message, ": peer ", call.peer,
                                                   " must be another rank of the ", size(), " of '",
                                                   link_->name, "'"));
  }

  std::shared_ptr<const GroupLink> link_;
  std::int32_t issued_ = 0;  // collectives
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeMpiCommunicator(World& world, HostDevice& device,
                                                                  Pacing* pacing) {
  auto* const mpi = dynamic_cast<MpiWorld*>(&world);
  if (mpi == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "transfers over MPI need ranks that mpirun or srun started; these were started by: ",
        world.launcher()));
  }
  auto transport = std::make_shared<Transport>(mpi->state(), device, pacing);
  OPTIMUS_RETURN_IF_ERROR(transport->Open());
  GroupLink link;
  link.name = "world";
  link.rank = world.rank();
  link.ranks.resize(static_cast<std::size_t>(world.size()));
  std::iota(link.ranks.begin(), link.ranks.end(), 0);
  link.transport = std::move(transport);
  return std::make_unique<MpiCommunicator>(std::move(link));
}

}  // namespace optimus::executor
