#include "executor/cpu/training_gemm.h"

#include "absl/strings/match.h"
#include "executor/cpu/sizes.h"

namespace optimus::executor {

MatMulShape TrainingGemm(const Kernel& kernel, Element element) {
  MatMulShape shape;
  shape.m = kernel.gemm.m;
  shape.n = kernel.gemm.n;
  shape.k = kernel.gemm.k;
  shape.operands = element;
  shape.result = element;
  if (absl::EndsWith(kernel.name, "_dgrad")) {
    shape.b = Transpose::kYes;
  } else if (absl::EndsWith(kernel.name, "_wgrad")) {
    shape.a = Transpose::kYes;
    shape.result = Element::kF32;
    shape.accumulate = true;
  }
  return shape;
}

Bytes BytesOfA(const MatMulShape& shape) {
  return Bytes(SaturatedProduct({shape.m, shape.k, SizeOf(shape.operands)}));
}
Bytes BytesOfB(const MatMulShape& shape) {
  return Bytes(SaturatedProduct({shape.k, shape.n, SizeOf(shape.operands)}));
}
Bytes BytesOfC(const MatMulShape& shape) {
  return Bytes(SaturatedProduct({shape.m, shape.n, SizeOf(shape.result)}));
}

}  // namespace optimus::executor
