#include "models/layers.h"

#include <string>
#include <utility>
#include <vector>

#include "models/block_builder.h"
#include "models/gpu_shape.h"
#include "models/kernels.h"
#include "models/layer_pieces.h"

namespace optimus::models {
namespace {

// One transformer layer being written: the four linear layers and the elementwise kernels between
// them, forward and backward.
class LayerWriter {
 public:
  LayerWriter(const ModelConfig& model, const LayerShape& shape, Gradients gradients)
      : shape_(shape),
        gpu_(MakeGpuShape(model, shape)),
        swiglu_(model.activation() == ModelConfig::SWIGLU),
        qkv_{"qkv", gpu_.tokens, gpu_.hidden, gpu_.qkv_width},
        proj_{"proj", gpu_.tokens, gpu_.attention_width, gpu_.hidden},
        fc1_{"fc1", gpu_.tokens, gpu_.hidden, gpu_.fc1_width},
        fc2_{"fc2", gpu_.tokens, gpu_.ffn_width, gpu_.hidden},
        block_(gradients) {}

  void Forward(Phase phase) {
    block_.SetPhase(phase);
    Norm("norm1");
    Enter(block_, gpu_, shape_, "qkv");
    block_.Add(models::Forward(qkv_));
    AddAll(AttentionForward(gpu_, shape_));
    block_.Add(models::Forward(proj_));
    Leave(block_, gpu_, shape_, "proj");
    DropoutAdd("attention_residual");
    Norm("norm2");
    Enter(block_, gpu_, shape_, "fc1");
    block_.Add(models::Forward(fc1_));
    Activation();
    block_.Add(models::Forward(fc2_));
    Leave(block_, gpu_, shape_, "fc2");
    DropoutAdd("mlp_residual");
  }

  void Backward() {
    if (shape_.recompute == Recompute::kFull) {
      // Autograd starts the recomputation when the gradient arrives, and uses the gradient after.
      Forward(Phase::kRecompute);
      block_.RequireInput();
    }
    block_.SetPhase(Phase::kBackward);
    MlpBackward();
    AttentionBlockBackward();
  }

  Block Finish() && { return std::move(block_).Finish(); }

 private:
  void MlpBackward() {
    DropoutBackward("mlp_dropout_dgrad");
    Enter(block_, gpu_, shape_, "fc2_dgrad");
    block_.Add(DataGradient(fc2_));
    block_.AddWeightGradient(WeightGradient(fc2_));
    ActivationBackward();
    block_.Add(DataGradient(fc1_));
    LeaveWithWeightGradient(block_, gpu_, shape_, "fc1_dgrad", WeightGradient(fc1_));
    NormBackward("norm2_dgrad");
  }

  void AttentionBlockBackward() {
    DropoutBackward("attention_residual_dropout_dgrad");
    Enter(block_, gpu_, shape_, "proj_dgrad");
    block_.Add(DataGradient(proj_));
    block_.AddWeightGradient(WeightGradient(proj_));
    if (shape_.recompute == Recompute::kSelective) {
      block_.SetPhase(Phase::kRecompute);
      AddAll(AttentionForward(gpu_, shape_));
      block_.SetPhase(Phase::kBackward);
    }
    AddAll(AttentionBackward(gpu_, shape_));
    block_.Add(DataGradient(qkv_));
    LeaveWithWeightGradient(block_, gpu_, shape_, "qkv_dgrad", WeightGradient(qkv_));
    NormBackward("norm1_dgrad");
  }

  void AddAll(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) block_.Add(kernel);
  }

  // Fused: the residual add before the norm is part of it (two inputs, sum and norm out).
  void Norm(const std::string& name) {
    block_.Add(MemoryBound(name, gpu_.local() * (shape_.fused_elementwise ? 4 : 2)));
  }

  void NormBackward(const std::string& name) {
    if (shape_.fused_elementwise) {
      block_.Add(MemoryBound(name, gpu_.local() * 4));  // with the residual's gradient added
      return;
    }
    block_.Add(MemoryBound(name, gpu_.local() * 3));  // input and output gradient in, gradient out
    block_.Add(MemoryBound("residual_grad_add", gpu_.local() * 3));
  }

  // Bias, dropout, residual add: two inputs and one output, and the mask (one byte an element, half
  // of a bf16 activation).
  void DropoutAdd(const std::string& name) {
    if (shape_.fused_elementwise) return;
    block_.Add(MemoryBound(name, gpu_.local() * 3 + DropoutMask()));
  }

  void DropoutBackward(const std::string& name) {
    if (shape_.fused_elementwise) return;
    block_.Add(MemoryBound(name, gpu_.local() * 2 + DropoutMask()));
  }

  void Activation() {
    if (shape_.fused_elementwise) return;
    block_.Add(MemoryBound(swiglu_ ? "swiglu" : "gelu", FfnActivation() * (swiglu_ ? 3 : 2)));
  }

  // GELU: output gradient and input in, input gradient out. SwiGLU has two inputs and two
  // gradients.
  void ActivationBackward() {
    if (shape_.fused_elementwise) return;
    block_.Add(
        MemoryBound(swiglu_ ? "swiglu_dgrad" : "gelu_dgrad", FfnActivation() * (swiglu_ ? 5 : 3)));
  }

  Bytes DropoutMask() const { return Bytes(gpu_.local_tokens * gpu_.hidden); }
  Bytes FfnActivation() const { return Bytes(gpu_.tokens * gpu_.ffn_width * kBf16Bytes); }

  LayerShape shape_;
  GpuShape gpu_;
  bool swiglu_;
  Linear qkv_, proj_, fc1_, fc2_;
  BlockBuilder block_;
};

}  // namespace

Block LayerForward(const ModelConfig& model, const LayerShape& shape) {
  LayerWriter layer(model, shape, Gradients::kBoth);
  layer.Forward(Phase::kForward);
  return std::move(layer).Finish();
}

Block LayerBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients) {
  LayerWriter layer(model, shape, gradients);
  layer.Backward();
  return std::move(layer).Finish();
}

}  // namespace optimus::models
