#include "schedule/step/lower.h"

#include <algorithm>
#include <utility>

#include "schedule/step/data_parallel.h"

namespace optimus::step {

std::uint32_t ProgramBuilder::Append(ir::Operation operation,
                                     absl::Span<const std::uint32_t> dependencies) {
  const auto id = static_cast<std::uint32_t>(program_.operations.size());
  operation.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
  operation.dependency_count = static_cast<std::uint32_t>(dependencies.size());
  program_.dependencies.insert(program_.dependencies.end(), dependencies.begin(),
                               dependencies.end());
  if (operation.stream == ir::Stream::kCompute) last_compute_ = id;
  program_.operations.push_back(operation);
  return id;
}

void SlotWriter::Begin(const pipeline::Slot& slot, int micro_batches, const Edges& edges) {
  slot_ = slot;
  edges_ = edges;
  micro_batches_ = micro_batches;
  receive_ = result_ = -1;
  slot_compute_ = slot_tensor_ = false;
  const int virtual_stage = slot.chunk * stages_ + stage_;
  if (forward() && edges.forward_in >= 0) {
    AppendMessage(ir::OperationKind::kReceive, ir::Stream::kForwardReceive, edges.forward_in,
                  virtual_stage - 1, stage_ - 1, {});
  } else if (!forward() && edges.backward_in >= 0) {
    AppendMessage(ir::OperationKind::kReceive, ir::Stream::kBackwardReceive, edges.backward_in,
                  virtual_stage, stage_ + 1, {});
  }
}

void SlotWriter::End() {
  const int virtual_stage = slot_.chunk * stages_ + stage_;
  const std::int32_t transfer = forward() ? edges_.forward_out : edges_.backward_out;
  if (transfer < 0 || result_ < 0) return;
  const auto result = static_cast<std::uint32_t>(result_);
  if (forward()) {
    AppendMessage(ir::OperationKind::kSend, ir::Stream::kForwardSend, transfer, virtual_stage,
                  stage_ + 1, {&result, 1});
  } else {
    AppendMessage(ir::OperationKind::kSend, ir::Stream::kBackwardSend, transfer, virtual_stage - 1,
                  stage_ - 1, {&result, 1});
  }
}

// `boundary` is the virtual stage in front of the boundary that the message crosses.
void SlotWriter::AppendMessage(ir::OperationKind kind, ir::Stream stream, std::int32_t transfer,
                               int boundary, int peer,
                               absl::Span<const std::uint32_t> dependencies) {
  ir::Operation op;
  op.kind = kind;
  op.stream = stream;
  op.work = transfer;
  op.peer_stage = (peer + stages_) % stages_;
  op.message = 2 * (boundary * micro_batches_ + slot_.micro_batch) + (forward() ? 0 : 1);
  op.tag.chunk = static_cast<std::int16_t>(slot_.chunk);
  op.tag.micro_batch = slot_.micro_batch;
  op.tag.phase = forward() ? Phase::kForward : Phase::kBackward;
  const std::uint32_t id = program_.Append(op, dependencies);
  if (kind == ir::OperationKind::kReceive) receive_ = result_ = id;
}

void SlotWriter::Append(const Piece& piece) {
  const LoweredBlock& block = *piece.block;
  if (block.output < 0) return;
  ir::Tag tag = piece.tag;
  tag.chunk = static_cast<std::int16_t>(slot_.chunk);
  tag.micro_batch = slot_.micro_batch;
  ids_.clear();
  block_compute_ = block_tensor_ = false;
  for (const LoweredOp& op : block.ops) AppendOp(op, tag);
  chain_ = result_ = ids_[block.output];
}

void SlotWriter::AppendOp(const LoweredOp& lowered, ir::Tag tag) {
  const bool compute = lowered.stream == ir::Stream::kCompute;
  bool& slot_started = compute ? slot_compute_ : slot_tensor_;
  bool& block_started = compute ? block_compute_ : block_tensor_;
  scratch_.clear();
  if (compute && gather_ >= 0)
    scratch_.push_back(static_cast<std::uint32_t>(std::exchange(gather_, -1)));
  if (chain_ >= 0 && (!block_started || lowered.needs_input)) {
    const auto before = static_cast<std::uint32_t>(chain_);
    if (program_.StreamOf(before) != lowered.stream) scratch_.push_back(before);
  }
  // In front of `after`: where the slot begins with a collective, waiting for the receive is the
  // pipeline's fault, and only the rest the collective's.
  if (receive_ >= 0 && !slot_started) scratch_.push_back(static_cast<std::uint32_t>(receive_));
  for (const int before : lowered.after) scratch_.push_back(ids_[before]);
  slot_started = block_started = true;
  tag.phase = lowered.phase;
  ir::Operation op;
  op.kind = lowered.kind;
  op.stream = lowered.stream;
  op.work = lowered.work;
  op.tag = tag;
  ids_.push_back(program_.Append(op, scratch_));
}

namespace {

std::size_t CountOperations(const std::vector<pipeline::Slot>& slots, int stages, int stage,
                            const std::vector<VirtualStage>& virtual_stages) {
  std::size_t count = 0;
  for (const pipeline::Slot& slot : slots) {
    const VirtualStage& work = virtual_stages[slot.chunk * stages + stage];
    const bool forward = slot.kind == pipeline::SlotKind::kForward;
    for (const Piece& piece : forward ? work.forward : work.backward) {
      count += piece.block->ops.size();
    }
    count += 2;  // receive and send
  }
  return count;
}

ir::Program LowerStage(const Plan& plan, const hw::ProfileCostModel& costs,
                       const pipeline::Order& order, int stage,
                       const std::vector<VirtualStage>& virtual_stages, ir::Schedule& schedule) {
  const std::vector<pipeline::Slot>& slots = order.slots[stage];
  ProgramBuilder program(stage);
  // Beside the slots: at most a gather and a reduction per chunk, gradient norm and optimizer.
  const auto chunks = static_cast<std::size_t>(order.chunks);
  program.Reserve(CountOperations(slots, order.stages, stage, virtual_stages) + 2 * chunks + 2);
  std::vector<std::int64_t> trained(chunks);
  for (int c = 0; c < order.chunks; ++c) {
    trained[c] = virtual_stages[c * order.stages + stage].trained_parameters;
  }
  DataParallelWriter data_parallel(plan, costs, std::move(trained), program, schedule);
  data_parallel.Begin(slots);
  SlotWriter writer(program, order.stages, stage);
  for (const pipeline::Slot& slot : slots) {
    const VirtualStage& work = virtual_stages[slot.chunk * order.stages + stage];
    writer.Begin(slot, order.micro_batches, work.edges);
    writer.WaitFirst(data_parallel.GatherFor(slot));
    const bool forward = slot.kind == pipeline::SlotKind::kForward;
    for (const Piece& piece : forward ? work.forward : work.backward) writer.Append(piece);
    writer.End();
    data_parallel.AfterSlot(slot);
  }
  data_parallel.End();
  return std::move(program).Take();
}

}  // namespace

absl::Status LowerPipeline(const Plan& plan, const hw::ProfileCostModel& costs,
                           const pipeline::Order& order,
                           const std::vector<VirtualStage>& virtual_stages,
                           ir::Schedule& schedule) {
  for (const std::vector<pipeline::Slot>& slots : order.slots) {
    for (const pipeline::Slot& slot : slots) {
      if (slot.kind != pipeline::SlotKind::kForward && slot.kind != pipeline::SlotKind::kBackward) {
        return absl::UnimplementedError(
            "plan.schedule: slots with data and weight gradients apart are not lowered yet; use "
            "GPIPE, ONE_F_ONE_B or INTERLEAVED");
      }
    }
  }
  schedule.programs.clear();
  for (int s = 0; s < order.stages; ++s) {
    schedule.programs.push_back(LowerStage(plan, costs, order, s, virtual_stages, schedule));
  }
  return absl::OkStatus();
}

}  // namespace optimus::step
