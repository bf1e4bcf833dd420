#pragma once
// The matrix product of a linear layer as training does it on the CPU.

#include "base/kernel.h"
#include "executor/cpu/primitives.h"

namespace optimus::executor {

// How the operands of a kGemm kernel lie, by the end of its name. All matrices by rows:
//   "..._dgrad": C = A W^T, the weights as the forward pass has them, [n, k];
//   "..._wgrad": C += A^T B with A [k, m]: a gradient that is summed in f32 over micro-batches;
//   else C = A B (the batched products of an unfused attention too: heads are folded into m).
MatMulShape TrainingGemm(const Kernel& kernel, Element element);

// Of the operands and the result of a product; at most kEndless (executor/cpu/sizes.h).
Bytes BytesOfA(const MatMulShape& shape);
Bytes BytesOfB(const MatMulShape& shape);
Bytes BytesOfC(const MatMulShape& shape);

}  // namespace optimus::executor
