#pragma once
// From an order of micro-batches and the items of every virtual stage to the programs of the
// pipeline stages.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {

// Appends operations to one stage's program.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(int stage) { program_.stage = stage; }

  // `dependencies` in the order of accounting; the operation's range is filled in here.
  std::uint32_t Append(ir::Operation operation, absl::Span<const std::uint32_t> dependencies);
  ir::Stream StreamOf(std::uint32_t id) const { return program_.operations[id].stream; }
  // The last operation of the compute stream: everything before it on that stream has ended too.
  std::int64_t last_compute() const { return last_compute_; }
  void Reserve(std::size_t operations) {
    program_.operations.reserve(operations);
    program_.dependencies.reserve(operations);
  }
  ir::Program Take() && { return std::move(program_); }

 private:
  ir::Program program_;
  std::int64_t last_compute_ = -1;
};

// What a slot of one virtual stage needs to know about its neighbours.
struct Edges {
  // Index into Schedule::transfers; -1: no message (first or last virtual stage, one pipeline
  // stage, or nothing trained in front).
  std::int32_t forward_in = -1, forward_out = -1, backward_in = -1, backward_out = -1;
};

// One block of a virtual stage; the tag has module, layer and slice.
struct Piece {
  const LoweredBlock* block = nullptr;
  ir::Tag tag;
};

// All that is lowered of a virtual stage, for one micro-batch in either direction.
struct VirtualStage {
  std::vector<Piece> forward, backward;
  Edges edges;
  std::int64_t trained_parameters = 0;  // on one GPU
};

// Fills schedule.programs; schedule.world and micro_batches must be set. `virtual_stages` has
// order.chunks * order.stages entries. UNIMPLEMENTED for slots that compute data and weight
// gradients apart.
absl::Status LowerPipeline(const Plan& plan, const hw::ProfileCostModel& costs,
                           const pipeline::Order& order,
                           const std::vector<VirtualStage>& virtual_stages, ir::Schedule& schedule);

// Writes a slot: receive, then the work, then the send. Work is appended by the caller between
// Begin and End.
//
// As in Megatron-LM the host issues a slot after the receive it waits for, and tensor-parallel
// collectives are synchronous: the compute stream does not go past one that it depends on. So the
// first operation of a slot on either stream waits for the receive, and the first operation of a
// block waits for the output of the block before, even where that one belongs to another slice or
// micro-batch.
class SlotWriter {
 public:
  SlotWriter(ProgramBuilder& program, int stages, int stage)
      : program_(program), stages_(stages), stage_(stage) {}

  void Begin(const pipeline::Slot& slot, int micro_batches, const Edges& edges);
  // The next compute operation waits for `operation` first (a parameter all-gather); -1: none.
  void WaitFirst(std::int64_t operation) {
    if (operation >= 0) gather_ = operation;
  }
  void Append(const Piece& piece);
  void End();

 private:
  void AppendMessage(ir::OperationKind kind, ir::Stream stream, std::int32_t transfer, int boundary,
                     int peer, absl::Span<const std::uint32_t> dependencies);
  void AppendOp(const LoweredOp& op, ir::Tag tag);
  bool forward() const { return slot_.kind == pipeline::SlotKind::kForward; }

  ProgramBuilder& program_;
  int stages_, stage_;
  pipeline::Slot slot_;
  Edges edges_;
  int micro_batches_ = 0;
  std::int64_t gather_ = -1;   // all-gather that the next compute operation waits for
  std::int64_t receive_ = -1;  // this slot's receive
  std::int64_t result_ = -1;   // what the send waits for
  std::int64_t chain_ = -1;    // output of the last block, of whatever slot
  bool slot_compute_ = false, slot_tensor_ = false;    // the slot has an op on that stream
  bool block_compute_ = false, block_tensor_ = false;  // the block has one
  std::vector<std::uint32_t> ids_;                     // of the block being appended
  std::vector<std::uint32_t> scratch_;
};

}  // namespace optimus::step
