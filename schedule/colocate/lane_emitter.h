#pragma once
// One lane of one stage: the LLM's program with everything the encoders do there merged in.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/colocate/emit_messages.h"
#include "schedule/colocate/lane_program.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::colocate {

// What all lanes have in common.
struct EmitInput {
  const ir::Schedule& tables;                           // world, lanes, collectives, groups
  const std::vector<ir::Program>& llm_programs;         // by stage
  const std::vector<std::vector<ir::Span>>& llm_spans;  // by stage and operation
  const bubble::Problem& problem;
  const bubble::Result& result;
  const std::vector<Message>& messages;
  std::int32_t first_message = 0;               // id of messages[0]
  std::vector<std::int32_t> optimizer_kernels;  // by stage, index into tables.kernels
};

class LaneEmitter {
 public:
  LaneEmitter(const EmitInput& input, std::int32_t stage, std::int32_t lane)
      : in_(input), stage_(stage), lane_(lane), here_(input.problem.encoders.size()) {}

  ir::Program Emit() &&;

 private:
  using Item = LaneProgram::Item;
  // The last (or first) operations on the compute and on a communication stream.
  struct Ends {
    std::optional<Item> compute, communication;
  };
  // The part of one encoder that is on this lane.
  struct EncoderHere {
    std::int32_t pipeline = 0, encoder_stage = 0;
    std::vector<Item> forward_begin;        // by unit: item of its first operation
    std::vector<Item> forward, backward;    // all items
    std::vector<Item> gathers, reductions;  // by bucket
  };
  using MessageKey = std::tuple<Leg, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

  void AddLlm();
  void NoteSlotEnds(Item item);
  void AddMessages();
  void AddEncoder(std::size_t e);
  Item AddWork(std::size_t e, const bubble::StageWork& work, const bubble::PlacedStage& placed,
               std::int32_t micro_batch, std::vector<Item>& all);
  void WaitForInput(std::size_t e, std::size_t unit, bool forward, Item item, std::int16_t part);
  void SendOutputs(std::size_t e, std::size_t unit, bool forward, Item begin);
  void AddSync(std::size_t e);
  std::vector<Item> AddBuckets(std::size_t e, bool gather);
  void ConnectGathers(std::size_t e);
  void ConnectReductions(std::size_t e);
  void ConnectLlmForward();
  void SendGradients();
  void ConnectEnd();
  void TakeTurnsOnLink();

  void Extend(Ends& ends, Item item, bool last) const;
  void WaitForAll(Item item, const Ends& ends);
  bool IsStepEnd(const ir::Operation& op) const;
  const std::vector<Item>& Find(const std::map<MessageKey, std::vector<Item>>& in,
                                const MessageKey& key) const;

  const EmitInput& in_;
  std::int32_t stage_, lane_;
  LaneProgram program_;
  std::vector<EncoderHere> here_;
  std::size_t llm_operations_ = 0;
  // Of the LLM's stage 0, chunk 0, by micro-batch; empty on other stages.
  std::vector<Ends> forward_begins_, backward_ends_;
  std::map<MessageKey, std::vector<Item>> sends_, receives_;
};

}  // namespace optimus::colocate
