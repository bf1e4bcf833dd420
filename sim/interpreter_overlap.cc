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
  Entity& state = entities_[entity];
  std::int64_t end = now_ + duration;
  if (stream != kCompute) {
    ChangeLoad(entity, step.role, +1);
  } else {
    state.slowable = step.role == OverlapRole::kKernel;
    if (state.slowable) {
      compute_[entity].Start(now_, rates_.WorkOf(duration));
      end = compute_[entity].End();
      if (state.recorded) StartRecordingKernels(entity, duration);
    }
    state.compute_end = end;
  }
  queue_.Push(end, TimedEvent(EventKind::kStepEnd, entity, stream, 1));
}

// The step of role kKernel at the head of the compute stream is over now.
void Interpreter::EndKernel(std::uint32_t entity, const Step& step) {
  Settle(entity);
  entities_[entity].slowable = false;
  entities_[entity].account.Run(Picoseconds(compute_[entity].start), Picoseconds(now_),
                                step.account == Account::kOptimizer);
}

// A collective of this role begins (+1) or ends (-1) on the entity.
void Interpreter::ChangeLoad(std::uint32_t entity, OverlapRole role, int change) {
  ComputeState& compute = compute_[entity];
  if (role == OverlapRole::kNvlink) compute.nvlink += change;
  if (role == OverlapRole::kNic) compute.nic += change;
  const std::int64_t rate = rates_.PerPicosecond(compute.nvlink > 0, compute.nic > 0);
  if (rate == compute.rate) return;
  Entity& state = entities_[entity];
  if (state.slowable) Settle(entity);
  compute.rate = rate;
  if (!state.slowable || compute.End() == state.compute_end) return;
  state.compute_end = compute.End();
  queue_.Push(state.compute_end, TimedEvent(EventKind::kStepEnd, entity, kCompute, 1));
}

void Interpreter::Settle(std::uint32_t entity) {
  ComputeState& compute = compute_[entity];
  if (!entities_[entity].recorded) return compute.Settle(now_);
  const ComputeState before = compute;
  compute.Settle(now_);
  RecordKernels(entity, before);
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
    if (!entities_[member].slowable || entities_[member].compute_end <= now_) continue;
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
