#pragma once
// Writes a Block op by op. Internal to models/.
//
// Ops form one data-flow chain that hops between the compute and the tensor-parallel stream; the
// builder adds an `after` edge at each hop, because within a stream order is enough. Weight
// gradients stand beside the chain: nothing in the block waits for them, so one that is issued
// after a collective runs under it.

#include "base/kernel.h"
#include "base/phase.h"
#include "models/block.h"
#include "models/layers.h"

namespace optimus::models {

class BlockBuilder {
 public:
  // `gradients` filters a backward block: kData drops weight gradients, kWeights everything else.
  explicit BlockBuilder(Gradients gradients = Gradients::kBoth) : gradients_(gradients) {}

  void SetPhase(Phase phase) { phase_ = phase; }
  // The next op of the chain waits for the block's input (true of the first op anyway).
  void RequireInput() { input_pending_ = true; }

  void Add(Kernel kernel);
  void Add(CollectiveWork collective);
  // `in_chain`: what comes after it waits for it.
  void AddWeightGradient(Kernel kernel, bool in_chain = false);

  Block Finish() &&;

 private:
  void Append(BlockOp op);

  Gradients gradients_;
  Phase phase_ = Phase::kForward;
  bool input_pending_ = true;
  int chain_ = -1;  // last op of the chain
  Block block_;
};

}  // namespace optimus::models
