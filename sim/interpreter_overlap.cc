// Kernels and collectives of one GPU that run at the same time: who slows whom, from when to when.

#include "sim/interpreter.h"

namespace optimus::sim {
namespace {

constexpr auto kCompute = static_cast<unsigned>(ir::Stream::kCompute);

}  // namespace

// What StartFixed does where overlap counts. `duration` is that of a GPU without collectives, and
// above 0.
void Interpreter::StartUnderOverlap(std::uint32_t entity, unsigned stream, const Step& step,
                                    std::int64_t duration) {
  std::int64_t end = now_ + duration;
  if (stream == kCompute) {
    ComputeState& compute = compute_[entity];
    if (step.role == OverlapRole::kKernel) {
      compute.Start(now_, rates_.WorkOf(duration));
      if (entities_[entity].recorded) StartRecordingKernels(entity, duration);
    } else {
      compute.end = end;
    }
    end = compute.end;
  } else {
    ChangeLoad(entity, step.role, +1);
  }
  queue_.Push(end, TimedEvent(EventKind::kStepEnd, entity, stream, 1));
}

// The step at the head of a stream, of fixed duration but for overlap, is over now.
void Interpreter::EndUnderOverlap(std::uint32_t entity, unsigned stream, const Step& step) {
  if (stream != kCompute) {
    if (step.kind == StepKind::kFixed) ChangeLoad(entity, step.role, -1);
    return;
  }
  ComputeState& compute = compute_[entity];
  compute.end = ComputeState::kNever;
  if (!compute.slowable) return;
  Settle(entity);
  compute.slowable = false;
  entities_[entity].account.Run(Picoseconds(compute.start), Picoseconds(now_),
                                step.account == Account::kOptimizer);
}

// A collective of this role begins (+1) or ends (-1) on the entity. The event of an end that is no
// longer the end stays in the queue, and is known by its time then (EndsNow).
void Interpreter::ChangeLoad(std::uint32_t entity, OverlapRole role, int change) {
  ComputeState& compute = compute_[entity];
  if (role == OverlapRole::kNvlink) compute.nvlink += change;
  if (role == OverlapRole::kNic) compute.nic += change;
  const std::int64_t rate = rates_.PerPicosecond(compute.nvlink > 0, compute.nic > 0);
  if (rate == compute.rate) return;
  if (!compute.slowable) {
    compute.rate = rate;
    return;
  }
  Settle(entity);
  compute.rate = rate;
  const std::int64_t before = compute.end;
  compute.FindEnd();
  if (compute.end == before) return;
  queue_.Push(compute.end, TimedEvent(EventKind::kStepEnd, entity, kCompute, 1));
}

void Interpreter::Settle(std::uint32_t entity) {
  ComputeState& compute = compute_[entity];
  const ComputeState before = compute;
  compute.Settle(now_);
  if (entities_[entity].recorded) RecordKernels(entity, before);
}

bool Interpreter::EndsNow(std::uint32_t entity, unsigned stream) const {
  return compute_.empty() || stream != kCompute || compute_[entity].end == now_;
}

// A collective over NVLink starts: is a kernel running on any member? Whatever else begins or ends
// in this instant comes first.
void Interpreter::StartCollective(std::uint32_t id) {
  if (!queue_.empty() && queue_.NextTime() == now_) {
    queue_.Push(now_, TimedEvent(EventKind::kCollectiveStart, id, 0, 0));
    return;
  }
  const Transfer& transfer = transfers_[id];
  TransferPrice price = pricing_.collectives[transfer.collective];
  for (const std::uint32_t member : meetings_[transfer.set].sets.Members(transfer.instance)) {
    const ComputeState& compute = compute_[member];
    if (!compute.slowable || compute.end <= now_) continue;
    price = SlowedTransfer(price, pricing_.interference.collective_under_kernel);
    break;
  }
  MoveBytes(id, price);
}

// The kernels of a step follow each other; `next` of them is the one that runs.
void Interpreter::StartRecordingKernels(std::uint32_t entity, std::int64_t duration) {
  const Entity& state = entities_[entity];
  Recording& recording = recordings_[state.program];
  const auto ids = programs_[state.program].OperationsOf(kCompute, state.done[kCompute]);
  recording.next = 0;
  recording.left_after_next = rates_.WorkOf(duration - DurationOn(state, ids.front()));
  recording.starts[ids.front()] = now_;
}

// Ends of kernels since `before`, at a steady rate.
void Interpreter::RecordKernels(std::uint32_t entity, const ComputeState& before) {
  const Entity& state = entities_[entity];
  Recording& recording = recordings_[state.program];
  const auto ids = programs_[state.program].OperationsOf(kCompute, state.done[kCompute]);
  while (recording.next < ids.size() && recording.left_after_next >= compute_[entity].left) {
    const std::int64_t end =
        before.since + before.PicosecondsFor(before.left - recording.left_after_next);
    recording.ends[ids[recording.next]] = end;
    if (++recording.next == ids.size()) return;
    recording.starts[ids[recording.next]] = end;
    recording.left_after_next -= rates_.WorkOf(DurationOn(state, ids[recording.next]));
  }
}

}  // namespace optimus::sim
