// Backward of a transformer layer: gradients of its input and of its parameters.

#include <map>

#include "executor/numerics/layer_view.h"

namespace optimus::executor::numerics {
namespace {

class LayerBackward : public LayerView {
 public:
  using LayerView::LayerView;

  absl::Status Kernel() {
    using Method = absl::Status (LayerBackward::*)();
    static const auto* kMethods = new std::map<std::string, Method>{
        {"mlp_dropout_dgrad", &LayerBackward::MlpDropout},
        {"fc2_dgrad", &LayerBackward::Fc2},
        {"fc2_wgrad", &LayerBackward::Fc2Weight},
        {"gelu_dgrad", &LayerBackward::Activation},
        {"swiglu_dgrad", &LayerBackward::Activation},
        {"fc1_dgrad", &LayerBackward::Fc1},
        {"fc1_wgrad", &LayerBackward::Fc1Weight},
        {"norm2_dgrad", &LayerBackward::Norm2},
        {"residual_grad_add", &LayerBackward::AddResidual},
        {"attention_residual_dropout_dgrad", &LayerBackward::AttentionDropout},
        {"proj_dgrad", &LayerBackward::Proj},
        {"proj_wgrad", &LayerBackward::ProjWeight},
        {"attention_dgrad", &LayerBackward::Attention},
        {"av_dgrad_scores", &LayerBackward::ProbabilitiesKernel},
        {"av_dgrad_v", &LayerBackward::Values},
        {"attention_dropout_dgrad", &LayerBackward::Dropout},
        {"softmax_dgrad", &LayerBackward::SoftmaxKernel},
        {"qk_dgrad_q", &LayerBackward::Queries},
        {"qk_dgrad_k", &LayerBackward::Keys},
        {"qkv_dgrad", &LayerBackward::Qkv},
        {"qkv_wgrad", &LayerBackward::QkvWeight},
        {"norm1_dgrad", &LayerBackward::Norm1},
    };
    const auto method = kMethods->find(kernel());
    return method == kMethods->end() ? compiled_.Unknown() : (this->*method->second)();
  }

  absl::Status Collective() {
    const std::string& name = collective().name;
    if (name == "fc2_dgrad_all_gather") {
      return GatherTokens(What::kGradHidden, 1, What::kGradHiddenFull);
    }
    if (name == "proj_dgrad_all_gather") {
      return GatherTokens(What::kGradMiddle, 0, What::kGradMiddleFull);
    }
    if (name == "fc1_dgrad_reduce_scatter" || name == "fc1_dgrad_all_reduce") {
      return ReduceTokens(What::kGradNorm2Partial, What::kGradNorm2);
    }
    if (name == "qkv_dgrad_reduce_scatter" || name == "qkv_dgrad_all_reduce") {
      return ReduceTokens(What::kGradNorm1Partial, What::kGradNorm1);
    }
    return compiled_.Unknown();
  }

 private:
  absl::Status DataGradient(const char* name, Slot* in, Slot* out) {
    const LinearParts linear = Linear(name);
    Append(task().reads, linear.weights);
    task().needs = {in};
    task().makes = {out};
    task().body = [=] { out->Put(LinearDataGradient(linear, in->data)); };
    return compiled_.ExpectGemm(tokens(), linear.inputs(), linear.outputs());
  }

  absl::Status WeightGradient(const char* name, Slot* x, Slot* dy) {
    const LinearParts linear = Linear(name);
    Append(task().adds_to, linear.weights);
    Append(task().adds_to, linear.biases);
    task().needs = {x, dy};
    task().body = [=] { AddLinearGradients(linear, x->data, dy->data); };
    return compiled_.ExpectGemm(linear.outputs(), linear.inputs(), tokens());
  }

  absl::Status NothingTo(Slot* slot) {
    task().needs = {slot};
    task().body = [] {};
    return absl::OkStatus();
  }

  absl::Status MlpDropout() { return NothingTo(At(What::kGradHidden, 1)); }

  // Fused: through the activation too.
  absl::Status Fc2() {
    Slot* dact = At(What::kGradActivation);
    absl::Status status = DataGradient("fc2", Fc2Gradient(), dact);
    if (!status.ok() || !fused()) return status;
    Slot* f1 = At(What::kFc1);
    Slot* df1 = At(What::kGradFc1);
    task().needs.push_back(f1);
    task().makes = {df1};
    task().body = [=, gemm = std::move(task().body), width = ffn(), swiglu = dims().swiglu] {
      gemm();
      df1->Put(ActivateBackward(f1->data, dact->data, width, swiglu));
      dact->Put({});
    };
    return absl::OkStatus();
  }
  absl::Status Fc2Weight() { return WeightGradient("fc2", At(What::kActivation), Fc2Gradient()); }

  absl::Status Activation() {
    Slot* f1 = At(What::kFc1);
    Slot* dact = At(What::kGradActivation);
    Slot* df1 = At(What::kGradFc1);
    task().needs = {f1, dact};
    task().drops = {dact};
    task().makes = {df1};
    task().body = [=, width = ffn(), swiglu = dims().swiglu] {
      df1->Put(ActivateBackward(f1->data, dact->data, width, swiglu));
    };
    return absl::OkStatus();
  }

  absl::Status Fc1() {
    return DataGradient("fc1", At(What::kGradFc1),
                        At(reduces() ? What::kGradNorm2Partial : What::kGradNorm2));
  }
  absl::Status Fc1Weight() { return WeightGradient("fc1", Fc1Input(), At(What::kGradFc1)); }

  // `x` is the norm's input, `dy` its output's gradient. Fused: the residual's gradient is added.
  absl::Status NormKernel(const char* name, Slot* x, Slot* dy, Slot* residual, Slot* out,
                          Slot* before_residual) {
    const NormParts norm = Norm(name);
    Append(task().reads, norm);
    Append(task().adds_to, norm);
    task().needs = {x, dy};
    task().drops.push_back(dy);
    if (!fused()) {
      task().makes = {before_residual};
      task().body = [=] { before_residual->Put(ApplyNormBackward(norm, x->data, dy->data)); };
      return absl::OkStatus();
    }
    task().needs.push_back(residual);
    if (out != nullptr) task().makes = {out};
    task().body = [=] {
      Floats dx = ApplyNormBackward(norm, x->data, dy->data);
      AddTo(dx, residual->data);
      if (out != nullptr) out->Put(std::move(dx));
    };
    return absl::OkStatus();
  }

  // Nobody wants the gradient of an encoder's patches.
  Slot* InputGradient() {
    const bool patches = tag_.module != ir::kLlmModule && tag_.layer == 0;
    return patches ? nullptr : At(What::kGradHidden);
  }

  absl::Status Norm2() {
    if (fused()) DropMlp();
    return NormKernel("norm2", At(What::kMiddle), At(What::kGradNorm2), At(What::kGradHidden, 1),
                      At(What::kGradMiddle), At(What::kGradMiddleNorm));
  }
  absl::Status Norm1() {
    if (fused()) DropAttention();
    return NormKernel("norm1", At(What::kHidden), At(What::kGradNorm1), At(What::kGradMiddle),
                      InputGradient(), At(What::kGradHiddenNorm));
  }

  // Comes behind either norm: the first time the MLP's gradient is not there yet.
  absl::Status AddResidual() {
    const bool behind_norm1 = compiled_.repeated;
    Slot* norm = At(behind_norm1 ? What::kGradHiddenNorm : What::kGradMiddleNorm);
    Slot* residual = behind_norm1 ? At(What::kGradMiddle) : At(What::kGradHidden, 1);
    Slot* out = behind_norm1 ? InputGradient() : At(What::kGradMiddle);
    task().needs = {norm, residual};
    task().drops = {norm};
    if (out != nullptr) task().makes = {out};
    if (behind_norm1) {
      DropAttention();
    } else {
      DropMlp();
    }
    task().body = [=] {
      if (out == nullptr) return;
      Floats sum = norm->data;
      AddTo(sum, residual->data);
      out->Put(std::move(sum));
    };
    return absl::OkStatus();
  }

  void Drop(std::initializer_list<Slot*> slots) {
    task().drops.insert(task().drops.end(), slots.begin(), slots.end());
  }
  void DropMlp() {
    Drop({At(What::kGradHidden, 1), Fc1Input(), At(What::kFc1), At(What::kActivation),
          At(What::kGradFc1)});
    if (gathers()) Drop({At(What::kGradHiddenFull)});
  }
  void DropAttention() {
    Drop({At(What::kHidden), QkvInput(), At(What::kQkv), At(What::kHeads), At(What::kMiddle),
          At(What::kGradMiddle), At(What::kGradQkv), At(What::kProbabilities)});
    if (gathers()) Drop({At(What::kGradMiddleFull)});
  }

  absl::Status AttentionDropout() { return NothingTo(At(What::kGradMiddle)); }
  absl::Status Proj() { return DataGradient("proj", ProjGradient(), At(What::kGradHeads)); }
  absl::Status ProjWeight() { return WeightGradient("proj", At(What::kHeads), ProjGradient()); }

  absl::Status Attention() {
    Slot* qkv = At(What::kQkv);
    Slot* dheads = At(What::kGradHeads);
    Slot* dqkv = At(What::kGradQkv);
    task().needs = {qkv, dheads};
    task().drops = {dheads};
    task().makes = {dqkv};
    task().body = [=, dims = attention()] {
      dqkv->Put(AttentionBackward(dims, qkv->data, dheads->data));
    };
    return compiled_.ExpectAttention(attention());
  }

  absl::Status ProbabilitiesKernel() {
    Slot* qkv = At(What::kQkv);
    Slot* dheads = At(What::kGradHeads);
    Slot* out = At(What::kGradProbabilities);
    task().needs = {qkv, dheads};
    task().makes = {out};
    task().body = [=, dims = attention()] {
      out->Put(ProbabilityGradients(dims, qkv->data, dheads->data));
    };
    return absl::OkStatus();
  }

  absl::Status Values() {
    Slot* qkv = At(What::kQkv);
    Slot* probabilities = At(What::kProbabilities);
    Slot* dheads = At(What::kGradHeads);
    Slot* dqkv = At(What::kGradQkv);
    task().needs = {qkv, probabilities, dheads};
    task().drops = {dheads};
    task().makes = {dqkv};
    task().body = [=, dims = attention()] {
      dqkv->Put(Floats(qkv->data.size(), 0.0F));
      AddValueGradients(dims, probabilities->data, dheads->data, dqkv->data);
    };
    return absl::OkStatus();
  }

  absl::Status Dropout() { return NothingTo(At(What::kGradProbabilities)); }

  absl::Status SoftmaxKernel() {
    Slot* probabilities = At(What::kProbabilities);
    Slot* dprobabilities = At(What::kGradProbabilities);
    Slot* out = At(What::kGradScores);
    task().needs = {probabilities, dprobabilities};
    task().drops = {probabilities, dprobabilities};
    task().makes = {out};
    task().body = [=, dims = attention()] {
      out->Put(SoftmaxBackward(dims, probabilities->data, dprobabilities->data));
    };
    return absl::OkStatus();
  }

  absl::Status Queries() {
    Slot* qkv = At(What::kQkv);
    Slot* dscores = At(What::kGradScores);
    Slot* dqkv = At(What::kGradQkv);
    task().needs = {qkv, dscores, dqkv};
    task().body = [=, dims = attention()] {
      AddQueryGradients(dims, qkv->data, dscores->data, dqkv->data);
    };
    return absl::OkStatus();
  }

  absl::Status Keys() {
    Slot* qkv = At(What::kQkv);
    Slot* dscores = At(What::kGradScores);
    Slot* dqkv = At(What::kGradQkv);
    task().needs = {qkv, dscores, dqkv};
    task().drops = {dscores};
    task().body = [=, dims = attention()] {
      AddKeyGradients(dims, qkv->data, dscores->data, dqkv->data);
    };
    return absl::OkStatus();
  }

  absl::Status Qkv() {
    return DataGradient("qkv", At(What::kGradQkv),
                        At(reduces() ? What::kGradNorm1Partial : What::kGradNorm1));
  }
  absl::Status QkvWeight() { return WeightGradient("qkv", QkvInput(), At(What::kGradQkv)); }
};

}  // namespace

absl::Status CompileLayerBackward(Compiled& compiled) {
  if (compiled.context.anatomy.module(compiled.op.tag.module).frozen) return compiled.Unknown();
  LayerBackward layer(compiled);
  return compiled.op.kind == ir::OperationKind::kKernel ? layer.Kernel() : layer.Collective();
}

}  // namespace optimus::executor::numerics
