#include "schedule/step/slot_writer.h"

#include <algorithm>
#include <utility>

namespace optimus::step {
namespace {

using pipeline::Slot;
using pipeline::SlotKind;

bool IsForward(const Slot& slot) { return slot.kind == SlotKind::kForward; }
// Weight gradients are nobody's input.
bool HasNeighbours(const Slot& slot) { return slot.kind != SlotKind::kBackwardWeight; }

}  // namespace

void SlotWriter::Write(const Slot& slot, const VirtualStage& work) {
  Open open = Begin(slot, work, work.PiecesOf(slot.kind));
  while (AppendRun(open)) {
  }
  chain_ = open.chain;
  End(open);
}

void SlotWriter::WriteShared(const Half& forward, const Half& backward) {
  const bool measured = !forward.work.shared_forward.empty();
  Open a = Begin(forward.slot, forward.work,
                 measured ? forward.work.shared_forward : forward.work.forward);
  Open b = Begin(backward.slot, backward.work,
                 measured ? backward.work.shared_backward : backward.work.backward);
  if (measured) {
    // Start together, end together.
    a.inputs.insert(a.inputs.end(), b.inputs.begin(), b.inputs.end());
    for (Open* open : {&a, &b}) {
      while (AppendRun(*open)) {
      }
    }
    a.result = b.result;
  } else {
    AppendInTurns(a, b);
  }
  chain_ = {std::max(a.chain.compute, b.chain.compute), std::max(a.chain.tensor, b.chain.tensor)};
  End(a);
  End(b);
}

void SlotWriter::AppendInTurns(Open& a, Open& b) {
  bool more_a = true;
  bool more_b = true;
  while (more_a || more_b) {
    more_a = more_a && AppendRun(a);
    more_b = more_b && AppendRun(b);
  }
}

SlotWriter::Open SlotWriter::Begin(const Slot& slot, const VirtualStage& work,
                                   const std::vector<Piece>& pieces) {
  Open open;
  open.slot = slot;
  open.work = &work;
  open.pieces = &pieces;
  open.chain = chain_;
  if (wait_for_sends_) open.inputs = std::exchange(sends_, {});
  const bool forward = IsForward(slot);
  const std::int32_t transfer = forward ? work.edges.forward_in : work.edges.backward_in;
  if (HasNeighbours(slot) && transfer >= 0) {
    const int virtual_stage = placing_.VirtualStageOf({stage_, slot.chunk});
    const std::uint32_t receive =
        AppendMessage(slot,
                      {ir::OperationKind::kReceive, transfer,
                       forward ? virtual_stage - 1 : virtual_stage, PeerOf(slot, !forward)},
                      {});
    open.inputs.push_back(receive);
    open.result = receive;
  } else if (const auto before = HandOverBefore(slot); before.has_value()) {
    const auto found = handed_over_.find(*before);
    if (found != handed_over_.end()) {
      open.inputs.push_back(found->second);
      open.result = found->second;
      handed_over_.erase(found);
    }
  }
  return open;
}

void SlotWriter::End(const Open& open) {
  if (!HasNeighbours(open.slot) || open.result < 0) return;
  const bool forward = IsForward(open.slot);
  const Edges& edges = open.work->edges;
  const auto result = static_cast<std::uint32_t>(open.result);
  if (const auto behind = HandOverBehind(open.slot); behind.has_value()) {
    handed_over_[*behind] = result;
    return;
  }
  const std::int32_t transfer = forward ? edges.forward_out : edges.backward_out;
  if (transfer < 0) return;
  const int virtual_stage = placing_.VirtualStageOf({stage_, open.slot.chunk});
  sends_.push_back(
      AppendMessage(open.slot,
                    {ir::OperationKind::kSend, transfer,
                     forward ? virtual_stage : virtual_stage - 1, PeerOf(open.slot, forward)},
                    {&result, 1}));
}

std::int32_t SlotWriter::PeerOf(const Slot& slot, bool next) const {
  const pipeline::Place place{stage_, slot.chunk};
  const auto peer =
      next ? pipeline::NextPlace(placing_.placement, placing_.stages, placing_.chunks, place)
           : pipeline::PreviousPlace(placing_.placement, placing_.stages, place);
  return peer.value_or(place).stage;  // edges are there only where a neighbour is
}

std::optional<SlotWriter::HandOver> SlotWriter::HandOverBefore(const Slot& slot) const {
  if (!HasNeighbours(slot)) return std::nullopt;
  const int virtual_stage = placing_.VirtualStageOf({stage_, slot.chunk});
  const int boundary = IsForward(slot) ? virtual_stage - 1 : virtual_stage;
  if (boundary < 0 || !placing_.StaysBehind(boundary)) return std::nullopt;
  return HandOver{IsForward(slot), boundary, slot.micro_batch};
}

std::optional<SlotWriter::HandOver> SlotWriter::HandOverBehind(const Slot& slot) const {
  if (!HasNeighbours(slot)) return std::nullopt;
  const int virtual_stage = placing_.VirtualStageOf({stage_, slot.chunk});
  const int boundary = IsForward(slot) ? virtual_stage : virtual_stage - 1;
  if (boundary < 0 || !placing_.StaysBehind(boundary)) return std::nullopt;
  return HandOver{IsForward(slot), boundary, slot.micro_batch};
}

std::uint32_t SlotWriter::AppendMessage(const Slot& slot, const Message& message,
                                        absl::Span<const std::uint32_t> dependencies) {
  const bool forward = IsForward(slot);
  const bool send = message.kind == ir::OperationKind::kSend;
  ir::Operation op;
  op.kind = message.kind;
  if (forward) {
    op.stream = send ? ir::Stream::kForwardSend : ir::Stream::kForwardReceive;
  } else {
    op.stream = send ? ir::Stream::kBackwardSend : ir::Stream::kBackwardReceive;
  }
  op.work = message.transfer;
  op.peer_stage = message.peer;
  op.message = 2 * (message.boundary * micro_batches_ + slot.micro_batch) + (forward ? 0 : 1);
  op.tag.chunk = static_cast<std::int16_t>(slot.chunk);
  op.tag.micro_batch = slot.micro_batch;
  op.tag.phase = forward ? Phase::kForward : Phase::kBackward;
  return program_.Append(op, dependencies);
}

bool SlotWriter::NextBlock(Open& open) const {
  while (open.piece < open.pieces->size() && (*open.pieces)[open.piece].block->output < 0) {
    ++open.piece;
  }
  return open.piece < open.pieces->size();
}

bool SlotWriter::AppendRun(Open& open) {
  if (!NextBlock(open)) return false;
  for (bool collective = false; !collective && NextBlock(open);) {
    const Piece& piece = (*open.pieces)[open.piece];
    const LoweredOp& lowered = piece.block->ops[open.op];
    if (open.op == 0) {
      open.ids.clear();
      open.block_compute = open.block_tensor = false;
      const std::int64_t gather = data_parallel_.GatherFor(open.slot, open.piece);
      if (gather >= 0) gather_ = gather;
    }
    AppendOp(open, lowered, piece.tag);
    collective = lowered.kind == ir::OperationKind::kCollective;
    if (++open.op < piece.block->ops.size()) continue;
    const std::uint32_t output = open.ids[piece.block->output];
    open.result = output;
    const bool compute = program_.StreamOf(output) == ir::Stream::kCompute;
    open.chain = compute ? Tail{output, -1} : Tail{-1, output};
    data_parallel_.AfterPiece(open.slot, open.piece);
    open.op = 0;
    ++open.piece;
  }
  return true;
}

void SlotWriter::AppendOp(Open& open, const LoweredOp& lowered, ir::Tag tag) {
  const bool compute = lowered.stream == ir::Stream::kCompute;
  bool& slot_started = compute ? open.slot_compute : open.slot_tensor;
  bool& block_started = compute ? open.block_compute : open.block_tensor;
  scratch_.clear();
  if (compute && gather_ >= 0) {
    scratch_.push_back(static_cast<std::uint32_t>(std::exchange(gather_, -1)));
  }
  // On one stream the order says it.
  const std::int64_t before = compute ? open.chain.tensor : open.chain.compute;
  if (before >= 0 && (!block_started || lowered.needs_input)) {
    scratch_.push_back(static_cast<std::uint32_t>(before));
  }
  // In front of `after`: where the slot begins with a collective, waiting for the receive is the
  // pipeline's fault, and only the rest the collective's.
  if (!slot_started) {
    for (const std::uint32_t input : open.inputs) {
      if (input != before && program_.StreamOf(input) != lowered.stream) scratch_.push_back(input);
    }
  }
  for (const int earlier : lowered.after) scratch_.push_back(open.ids[earlier]);
  slot_started = block_started = true;
  tag.chunk = static_cast<std::int16_t>(open.slot.chunk);
  tag.micro_batch = open.slot.micro_batch;
  tag.phase = lowered.phase;
  ir::Operation op;
  op.kind = lowered.kind;
  op.stream = lowered.stream;
  op.work = lowered.work;
  op.tag = tag;
  open.ids.push_back(program_.Append(op, scratch_));
}

}  // namespace optimus::step
