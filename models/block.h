#pragma once
// A block is the work of one layer (or embedding, LM head, projector) for one micro-batch slice on
// one GPU: kernels on the compute stream and collectives on the tensor-parallel stream.
//
// Conventions, so that blocks can be chained without knowing what is inside:
//   - `ops` is in issue order; ops of one stream run in that order.
//   - `after` lists the ops (indices into `ops`) of the OTHER stream that must have ended first.
//   - the block's input is ready when the previous block's `output` op has ended; ops with
//     `needs_input` wait for it.
//   - `output` is the op whose end means that the block's result is complete. Ops after it in `ops`
//     do not exist: work that may run under a collective (a weight gradient) comes before it.

#include <vector>

#include "base/kernel.h"
#include "base/phase.h"

namespace optimus::models {

struct BlockOp {
  bool is_collective = false;  // true: `collective` over the tensor-parallel group; false: `kernel`
  Kernel kernel;
  CollectiveWork collective;
  Phase phase = Phase::kForward;
  bool needs_input = false;
  std::vector<int> after;
};

struct Block {
  std::vector<BlockOp> ops;
  int output = -1;  // index into ops; -1: the block is empty and its output is its input
};

}  // namespace optimus::models
