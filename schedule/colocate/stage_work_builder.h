#pragma once
// Writes the work of one encoder stage for one micro-batch, block by block.

#include <cstdint>
#include <vector>

#include "base/cost_model.h"
#include "models/block.h"
#include "schedule/bubble/problem.h"
#include "schedule/ir/schedule.h"
#include "schedule/step/work_tables.h"

namespace optimus::colocate {

struct PricedBlock {
  step::LoweredBlock block;
  std::vector<Picoseconds> durations;  // by op
};

// Interns the block's work into `tables`, its collectives over `group`.
PricedBlock PriceBlock(const models::Block& block, const ir::Group& group, const CostModel& costs,
                       ir::Schedule& tables);

// `by_slice`: slices are chains of their own, and so is what is done for all slices at once.
// Otherwise there is one chain: a block's first operation on either resource waits for the output
// of the block before, of whatever slice.
class StageWorkBuilder {
 public:
  StageWorkBuilder(int slices, bool by_slice);

  // 0: no input. 1: blocks that have nothing before them wait for one part. As many as slices: each
  // slice for its own part.
  void SetInputParts(int parts);

  void Append(const PricedBlock& block, std::int16_t layer, int slice);
  // A block that needs all slices, and that all slices behind it need.
  void AppendForAll(const PricedBlock& block, std::int16_t layer);

  bubble::StageWork Finish() &&;

 private:
  struct Place {
    std::int16_t layer = 0, slice = -1;
    std::int32_t chain = 0;
    std::int16_t input_part = -1;
  };
  // Ops of the block wait for `before` (outputs of blocks). Returns the block's own output.
  std::int64_t AppendBlock(const PricedBlock& block, const Place& place,
                           const std::vector<std::uint32_t>& before);
  void AppendOp(const step::LoweredOp& op, Picoseconds duration, const Place& place,
                const std::vector<std::uint32_t>* before, std::uint32_t block_begin);
  std::int16_t InputPart(int slice) const;

  int slices_;
  bool by_slice_;
  int input_parts_ = 0;
  bool joined_ = false;                // the last block was for all slices: there is one output
  std::vector<std::int64_t> outputs_;  // by slice; -1: nothing was done for it yet. One chain: one
  bubble::StageWork work_;
};

}  // namespace optimus::colocate
