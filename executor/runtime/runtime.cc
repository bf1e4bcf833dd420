#include "executor/runtime/runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "executor/runtime/channels.h"
#include "executor/runtime/current.h"
#include "executor/runtime/plan.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor {
namespace {

// First soon, so that in a short step too it is known what it was at; then seldom, because it takes
// the core from those who work.
constexpr absl::Duration kFirstTick = absl::Milliseconds(4);
constexpr absl::Duration kBetweenTicks = absl::Milliseconds(50);

absl::Status CheckWorld(const ir::Schedule& schedule, const World& world) {
  const std::int32_t needed = schedule.world.gpus();
  if (needed == world.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule '", schedule.name, "' is made for ", needed, " ranks (dp ", schedule.world.dp,
      ", pp ", schedule.world.pp, ", tp ", schedule.world.tp, "), but this run has ", world.size(),
      world.size() == 1 ? " rank" : " ranks", "; hint: start it with ", needed, " ranks"));
}

}  // namespace

class Runtime::Impl {
 public:
  Impl(const ir::Schedule& schedule, World& world, Device& device, Communicator& ranks,
       Workload* workload)
      : schedule_(schedule),
        world_(world),
        device_(device),
        ranks_(ranks),
        workload_(workload),
        channels_(ChannelsOf(schedule)),
        plan_(MakePlan(schedule, channels_, world.rank())),
        current_(schedule, plan_, device),
        text_([this](const Stamp& stamp) { return Describe(schedule_, stamp); }) {}

  absl::Status Prepare();
  absl::StatusOr<std::vector<OperationTime>> Step(int step,
                                                  absl::FunctionRef<absl::Status()> while_waiting);
  NominalTimes Nominal() const;
  const ir::Program& program() const { return schedule_.programs[plan_.place.program]; }
  const CurrentOperations& current() const { return current_; }

 private:
  absl::Status SplitGroups();
  absl::Status ReserveData();
  Bytes DataOf(const PlannedOperation& op) const;
  absl::Status Enqueue(int step);
  absl::Status ExpectMessages(int step);
  absl::Status EnqueueOne(std::uint32_t id, int step);
  absl::Status EnqueueWork(std::uint32_t id, const PlannedOperation& op, int step);
  absl::Status EnqueueKernel(std::uint32_t id, const PlannedOperation& op);
  absl::Status EnqueueCollective(std::uint32_t id, const PlannedOperation& op, int step);
  absl::Status EnqueueMessage(std::uint32_t id, const PlannedOperation& op, int step);
  absl::StatusOr<Payload> Data(std::uint32_t id) const;
  MessageCall Call(const PlannedOperation& op, int step) const;
  absl::Status Finish(absl::FunctionRef<absl::Status()> while_waiting);
  std::vector<OperationTime> Times() const;
  // With the rank, and where it is, or the operation that could not be enqueued.
  absl::Status Name(const absl::Status& error) const;
  absl::Status Name(const absl::Status& error, std::uint32_t id) const;

  const ir::Schedule& schedule_;
  World& world_;
  Device& device_;
  Communicator& ranks_;
  Workload* workload_;
  const Channels channels_;
  const Plan plan_;
  CurrentOperations current_;
  const std::function<std::string(const Stamp&)> text_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  // by channel
  std::vector<MessageCall> expected_;                         // by entry of Plan::receives
  std::vector<std::size_t> expected_of_;                      // by operation: index into expected_
};

absl::Status Runtime::Impl::Prepare() {
  OPTIMUS_RETURN_IF_ERROR(SplitGroups());
  OPTIMUS_RETURN_IF_ERROR(ranks_.Connect(schedule_));
  const auto count = static_cast<std::uint32_t>(plan_.operations.size());
  // A workload brings its own kernels.
  const absl::Span<const Kernel> kernels =
      workload_ == nullptr ? absl::MakeConstSpan(plan_.kernels) : absl::Span<const Kernel>();
  OPTIMUS_RETURN_IF_ERROR(device_.Prepare(2 * count, count, kernels));
  if (workload_ == nullptr) OPTIMUS_RETURN_IF_ERROR(ReserveData());
  expected_of_.assign(count, 0);
  for (const std::uint32_t id : plan_.receives) {
    expected_of_[id] = expected_.size();
    expected_.push_back(Call(plan_.operations[id], -1));
  }
  return absl::OkStatus();
}

// All ranks split for every channel in one order, whether they use it or not.
absl::Status Runtime::Impl::SplitGroups() {
  const RankPlace& place = plan_.place;
  for (const Channel& channel : channels_.channels) {
    const ir::Group& group = schedule_.groups[channel.group];
    const std::vector<std::int32_t> members =
        ir::RanksOf(schedule_, ir::MembersOf(schedule_, group, place.stage, place.d, place.t));
    OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                             ranks_.Split(members, channel.name));
    communicators_.push_back(std::move(communicator));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OperationTime>> Runtime::Impl::Step(
    int step, absl::FunctionRef<absl::Status()> while_waiting) {
  current_.Stop();
  OPTIMUS_RETURN_IF_ERROR(Enqueue(step));
  OPTIMUS_RETURN_IF_ERROR(world_.Barrier());
  if (absl::Status started = device_.Start(); !started.ok()) return Name(started);
  current_.Start(step);
  OPTIMUS_RETURN_IF_ERROR(Finish(while_waiting));
  current_.Stop();
  return Times();
}

// Now, where all ranks agree on what goes wrong, and not when a step is enqueued.
absl::Status Runtime::Impl::ReserveData() {
  Bytes most;
  std::uint32_t largest = 0;
  for (std::uint32_t id = 0; id < plan_.operations.size(); ++id) {
    const Bytes bytes = DataOf(plan_.operations[id]);
    if (bytes <= most) continue;
    most = bytes;
    largest = id;
  }
  absl::Status reserved = ranks_.Reserve(most);
  if (reserved.ok()) return reserved;
  return {reserved.code(),
          absl::StrCat(ir::Describe(schedule_, program(), largest), ": ", reserved.message())};
}

Bytes Runtime::Impl::DataOf(const PlannedOperation& op) const {
  switch (op.kind) {
    case ir::OperationKind::kKernel:
      break;
    case ir::OperationKind::kSend:
    case ir::OperationKind::kReceive:
      return schedule_.transfers[op.work].bytes;
    case ir::OperationKind::kCollective: {
      // Equal parts of whole floats may be a little more.
      const std::int64_t members = communicators_[op.channel]->size();
      return members == 1 ? Bytes(0)
                          : schedule_.collectives[op.work].work.bytes + Bytes(4 * members);
    }
  }
  return Bytes(0);
}

absl::Status Runtime::Impl::Enqueue(int step) {
  if (absl::Status begun = device_.Begin(); !begun.ok()) return Name(begun);
  if (workload_ != nullptr) {
    if (absl::Status begun = workload_->Begin(step); !begun.ok()) return Name(begun);
  }
  OPTIMUS_RETURN_IF_ERROR(ExpectMessages(step));
  for (const std::uint32_t id : plan_.order) {
    if (absl::Status enqueued = EnqueueOne(id, step); !enqueued.ok()) return Name(enqueued, id);
  }
  return absl::OkStatus();
}

absl::Status Runtime::Impl::ExpectMessages(int step) {
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    expected_[i].stamp.step = step;
    if (workload_ == nullptr) continue;
    absl::StatusOr<Payload> data = workload_->Data(plan_.receives[i]);
    if (!data.ok()) return Name(data.status(), plan_.receives[i]);
    expected_[i].payload = *std::move(data);
  }
  if (absl::Status expected = ranks_.Expect(expected_); !expected.ok()) return Name(expected);
  return absl::OkStatus();
}

absl::Status Runtime::Impl::EnqueueOne(std::uint32_t id, int step) {
  const PlannedOperation& op = plan_.operations[id];
  for (const std::uint32_t dependency : plan_.WaitsOf(op)) {
    device_.Wait(op.stream, EndEvent(dependency));
  }
  device_.Record(op.stream, BeginEvent(id));
  const ir::Program& mine = program();
  for (const std::uint32_t dependency : mine.DependenciesOf(mine.operations[id])) {
    Stamp expected = plan_.operations[dependency].stamp;
    expected.step = step;
    device_.CheckStamp(op.stream, dependency, expected, &text_);
  }
  OPTIMUS_RETURN_IF_ERROR(EnqueueWork(id, op, step));
  Stamp made = op.stamp;
  made.step = step;
  device_.WriteStamp(op.stream, id, made);
  device_.Record(op.stream, EndEvent(id));
  return absl::OkStatus();
}

absl::Status Runtime::Impl::EnqueueWork(std::uint32_t id, const PlannedOperation& op, int step) {
  switch (op.kind) {
    case ir::OperationKind::kKernel:
      return EnqueueKernel(id, op);
    case ir::OperationKind::kCollective:
      return EnqueueCollective(id, op, step);
    case ir::OperationKind::kSend:
    case ir::OperationKind::kReceive:
      return EnqueueMessage(id, op, step);
  }
  return absl::InternalError("an operation of no kind");
}

absl::Status Runtime::Impl::EnqueueKernel(std::uint32_t id, const PlannedOperation& op) {
  if (workload_ == nullptr) return device_.Launch(op.stream, plan_.kernels[op.work]);
  OPTIMUS_ASSIGN_OR_RETURN(std::function<absl::Status()> work, workload_->Kernel(id));
  return device_.LaunchHost(op.stream, std::move(work));
}

absl::StatusOr<Payload> Runtime::Impl::Data(std::uint32_t id) const {
  if (workload_ == nullptr) return Payload();
  return workload_->Data(id);
}

absl::Status Runtime::Impl::EnqueueCollective(std::uint32_t id, const PlannedOperation& op,
                                              int step) {
  CollectiveCall call;
  call.work = &schedule_.collectives[op.work].work;
  call.stamp = op.carried;
  call.stamp.step = step;
  call.text = &text_;
  OPTIMUS_ASSIGN_OR_RETURN(call.payload, Data(id));
  return communicators_[op.channel]->Collective(op.stream, call);
}

MessageCall Runtime::Impl::Call(const PlannedOperation& op, int step) const {
  MessageCall call;
  call.peer = op.peer;
  call.message = op.message;
  call.bytes = schedule_.transfers[op.work].bytes;
  call.stamp = op.carried;
  call.stamp.step = step;
  call.text = &text_;
  return call;
}

absl::Status Runtime::Impl::EnqueueMessage(std::uint32_t id, const PlannedOperation& op, int step) {
  if (op.kind == ir::OperationKind::kReceive) {
    return ranks_.Receive(op.stream, expected_[expected_of_[id]]);
  }
  MessageCall call = Call(op, step);
  OPTIMUS_ASSIGN_OR_RETURN(call.payload, Data(id));
  return ranks_.Send(op.stream, call);
}

absl::Status Runtime::Impl::Finish(absl::FunctionRef<absl::Status()> while_waiting) {
  for (absl::Duration piece = kFirstTick;; piece = std::min(2 * piece, kBetweenTicks)) {
    absl::StatusOr<bool> done = device_.Synchronize(piece);
    if (!done.ok()) return Name(done.status());
    if (*done) return absl::OkStatus();
    OPTIMUS_RETURN_IF_ERROR(while_waiting());
  }
}

std::vector<OperationTime> Runtime::Impl::Times() const {
  const std::int64_t offset = world_.clock_offset_ns();
  std::vector<OperationTime> times(plan_.operations.size());
  for (std::uint32_t id = 0; id < times.size(); ++id) {
    times[id] = {device_.TimeNs(BeginEvent(id)) + offset, device_.TimeNs(EndEvent(id)) + offset};
  }
  return times;
}

NominalTimes Runtime::Impl::Nominal() const {
  NominalTimes nominal;
  for (std::uint32_t id = 0; id < plan_.operations.size(); ++id) {
    const std::int64_t end_ns = device_.NominalNs(EndEvent(id));
    if (end_ns == 0) continue;
    nominal.end_ns = std::max(nominal.end_ns, end_ns + world_.clock_offset_ns());
    nominal.late_ns = std::max(nominal.late_ns, device_.TimeNs(EndEvent(id)) - end_ns);
    if (plan_.operations[id].stream == ir::Stream::kCompute) {
      nominal.compute_ns += end_ns - device_.NominalNs(BeginEvent(id));
    }
  }
  return nominal;
}

// Errors about a stamp of its own begin with the rank already.
absl::Status Runtime::Impl::Name(const absl::Status& error) const {
  const std::string at = current_.Describe();
  const std::string rank = absl::StrCat("rank ", world_.rank(), ": ");
  return {error.code(), absl::StrCat(absl::StartsWith(error.message(), rank) ? "" : rank,
                                     error.message(), at.empty() ? "" : "; it was at ", at)};
}

absl::Status Runtime::Impl::Name(const absl::Status& error, std::uint32_t id) const {
  return {error.code(),
          absl::StrCat("rank ", world_.rank(), ": ", ir::Describe(schedule_, program(), id),
                       " (operation ", id, "): ", error.message())};
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Create(const ir::Schedule& schedule, World& world,
                                                         Device& device, Communicator& ranks,
                                                         Workload* workload) {
  OPTIMUS_RETURN_IF_ERROR(CheckWorld(schedule, world));
  auto impl = std::make_unique<Impl>(schedule, world, device, ranks, workload);
  OPTIMUS_RETURN_IF_ERROR(impl->Prepare());
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

absl::StatusOr<std::vector<OperationTime>> Runtime::Step(
    int step, absl::FunctionRef<absl::Status()> while_waiting) {
  return impl_->Step(step, while_waiting);
}

NominalTimes Runtime::Nominal() const { return impl_->Nominal(); }
const ir::Program& Runtime::program() const { return impl_->program(); }
std::vector<StreamState> Runtime::Current() const { return impl_->current().States(); }
std::int64_t Runtime::ended() const { return impl_->current().ended(); }
std::string Runtime::DescribeCurrent() const { return impl_->current().Describe(); }

}  // namespace optimus::executor
