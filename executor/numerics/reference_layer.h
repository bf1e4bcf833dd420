#pragma once
// One transformer layer of the reference on one sequence: plain loops. Internal to the reference.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/numerics/tensors.h"

namespace optimus::executor::numerics {

struct ReferenceTensor;

// [rows][columns]
using Rows = std::vector<std::vector<double>>;
Rows Zeros(std::size_t rows, std::size_t columns);

// y = x W^T + b; `bias` may be null. Gradients are added.
Rows LinearForward(const Rows& x, const ReferenceTensor& weight, const ReferenceTensor* bias);
Rows LinearBackward(const Rows& x, const Rows& dy, ReferenceTensor& weight, ReferenceTensor* bias);

// Layer norm, or RMS norm where `bias` is null.
Rows NormForward(const Rows& x, const ReferenceTensor& weight, const ReferenceTensor* bias);
Rows NormBackward(const Rows& x, const Rows& dy, ReferenceTensor& weight, ReferenceTensor* bias);

struct LayerTensors {
  ReferenceTensor *norm1 = nullptr, *norm1_bias = nullptr, *qkv = nullptr, *qkv_bias = nullptr,
                  *proj = nullptr, *proj_bias = nullptr, *norm2 = nullptr, *norm2_bias = nullptr,
                  *fc1 = nullptr, *fc1_bias = nullptr, *fc2 = nullptr, *fc2_bias = nullptr;
};

// What the backward needs of the forward.
struct LayerTrace {
  Rows x, n1, qkv, heads, mid, n2, f1, act;
};

Rows ReferenceLayerForward(const Dims& dims, const LayerTensors& tensors, const Rows& x,
                           LayerTrace& trace);
// Gradient of the layer's input.
Rows ReferenceLayerBackward(const Dims& dims, const LayerTensors& tensors, const LayerTrace& trace,
                            const Rows& dy);

}  // namespace optimus::executor::numerics
