#include "models/block_builder.h"

#include <utility>

namespace optimus::models {

void BlockBuilder::Add(Kernel kernel) {
  if (gradients_ == Gradients::kWeights) return;
  BlockOp op;
  op.kernel = std::move(kernel);
  op.phase = phase_;
  Append(std::move(op));
}

void BlockBuilder::Add(CollectiveWork collective) {
  if (gradients_ == Gradients::kWeights) return;
  BlockOp op;
  op.is_collective = true;
  op.collective = std::move(collective);
  op.phase = phase_;
  Append(std::move(op));
}

void BlockBuilder::AddWeightGradient(Kernel kernel, bool in_chain) {
  if (gradients_ == Gradients::kData) return;
  BlockOp op;
  op.kernel = std::move(kernel);
  op.phase = Phase::kWeightGradient;
  if (in_chain) {
    Append(std::move(op));
    return;
  }
  op.needs_input = std::exchange(input_pending_, false);
  block_.ops.push_back(std::move(op));
}

void BlockBuilder::Append(BlockOp op) {
  op.needs_input = std::exchange(input_pending_, false);
  if (chain_ >= 0 && block_.ops[chain_].is_collective != op.is_collective) {
    op.after.push_back(chain_);
  }
  chain_ = static_cast<int>(block_.ops.size());
  block_.ops.push_back(std::move(op));
}

Block BlockBuilder::Finish() && {
  block_.output = static_cast<int>(block_.ops.size()) - 1;
  return std::move(block_);
}

}  // namespace optimus::models
