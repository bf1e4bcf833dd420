#pragma once
// Writes the slots of one stage, one after the other: receive, then the work, then the send.
//
// As in Megatron-LM the host issues a slot after the receive it waits for, and tensor-parallel
// collectives are synchronous: the compute stream does not go past one that it depends on. So the
// first operation of a slot on either stream waits for the receive, and the first operation of a
// block waits for the output of the block before, even where that one belongs to another slice or
// micro-batch.
//
// A neighbour on the same stage (at the turns of a V) is waited for without a message.
//
// Two slots that share the stage are two such chains. They are issued in turns, each as far as its
// next collective, so that the collectives of one run under kernels of the other.

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/data_parallel.h"
#include "schedule/step/placing.h"
#include "schedule/step/program_builder.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::step {

class SlotWriter {
 public:
  // `data_parallel` says what pieces wait for, and is told of every piece.
  SlotWriter(ProgramBuilder& program, const Placing& placing, int stage, int micro_batches,
             DataParallelWriter& data_parallel)
      : program_(program),
        placing_(placing),
        stage_(stage),
        micro_batches_(micro_batches),
        data_parallel_(data_parallel) {}

  // From now on a slot waits for what the slots before it have sent.
  void WaitForSends() { wait_for_sends_ = true; }

  void Write(const pipeline::Slot& slot, const VirtualStage& work);

  // `forward` is with_next, `backward` is that slot.
  struct Half {
    const pipeline::Slot& slot;
    const VirtualStage& work;
  };
  void WriteShared(const Half& forward, const Half& backward);

 private:
  // Outputs of what was written last; -1: none. Everything before them on their streams has ended
  // when they have.
  struct Tail {
    std::int64_t compute = -1, tensor = -1;
  };
  // A slot that is being written.
  struct Open {
    pipeline::Slot slot;
    const VirtualStage* work = nullptr;
    const std::vector<Piece>* pieces = nullptr;
    std::size_t piece = 0, op = 0;      // next to append
    std::vector<std::uint32_t> inputs;  // the first operation on either stream waits for them
    std::int64_t result = -1;           // what the send waits for
    Tail chain;                         // output of the last block, of whatever slot
    bool slot_compute = false, slot_tensor = false;    // the slot has an op on that stream
    bool block_compute = false, block_tensor = false;  // the block has one
    std::vector<std::uint32_t> ids;                    // of the block being appended
  };

  Open Begin(const pipeline::Slot& slot, const VirtualStage& work,
             const std::vector<Piece>& pieces);
  // Appends up to and with the next collective. False: there was nothing left.
  bool AppendRun(Open& open);
  bool NextBlock(Open& open) const;
  void AppendOp(Open& open, const LoweredOp& lowered, ir::Tag tag);
  void End(const Open& open);
  void AppendInTurns(Open& a, Open& b);

  struct Message {
    ir::OperationKind kind = ir::OperationKind::kSend;
    std::int32_t transfer = -1;
    int boundary = 0;  // the virtual stage in front of the boundary that it crosses
    int peer = 0;      // stage
  };
  std::uint32_t AppendMessage(const pipeline::Slot& slot, const Message& message,
                              absl::Span<const std::uint32_t> dependencies);
  std::int32_t PeerOf(const pipeline::Slot& slot, bool next) const;
  // The same for the two slots at either side of a boundary that stays on this stage.
  using HandOver = std::tuple<bool, int, std::int32_t>;  // forward, boundary, micro-batch
  std::optional<HandOver> HandOverBefore(const pipeline::Slot& slot) const;
  std::optional<HandOver> HandOverBehind(const pipeline::Slot& slot) const;

  ProgramBuilder& program_;
  Placing placing_;
  int stage_, micro_batches_;
  DataParallelWriter& data_parallel_;
  std::int64_t gather_ = -1;  // parameter all-gather that the next compute operation waits for
  Tail chain_;
  bool wait_for_sends_ = false;
  std::vector<std::uint32_t> sends_;  // that no slot waits for yet
  absl::flat_hash_map<HandOver, std::uint32_t> handed_over_;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace optimus::step
