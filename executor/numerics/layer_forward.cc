// Forward of a transformer layer, and the same again when it is recomputed.

#include <map>

#include "executor/numerics/layer_view.h"

namespace optimus::executor::numerics {
namespace {

class LayerForward : public LayerView {
 public:
  using LayerView::LayerView;

  absl::Status Kernel() {
    using Method = absl::Status (LayerForward::*)();
    static const auto* kMethods = new std::map<std::string, Method>{
        {"norm1", &LayerForward::Norm1},
        {"qkv", &LayerForward::Qkv},
        {"attention", &LayerForward::Attention},
        {"qk", &LayerForward::ScoresKernel},
        {"softmax", &LayerForward::SoftmaxKernel},
        {"attention_dropout", &LayerForward::Dropout},
        {"av", &LayerForward::Values},
        {"proj", &LayerForward::Proj},
        {"attention_residual", &LayerForward::AttentionResidual},
        {"norm2", &LayerForward::Norm2},
        {"fc1", &LayerForward::Fc1},
        {"gelu", &LayerForward::Activation},
        {"swiglu", &LayerForward::Activation},
        {"fc2", &LayerForward::Fc2},
        {"mlp_residual", &LayerForward::MlpResidual},
    };
    const auto method = kMethods->find(kernel());
    return method == kMethods->end() ? compiled_.Unknown() : (this->*method->second)();
  }

  absl::Status Collective() {
    const std::string& name = collective().name;
    if (name == "qkv_all_gather") {
      task().drops = {At(What::kNorm1)};
      return GatherTokens(What::kNorm1, 0, What::kNorm1Full);
    }
    if (name == "fc1_all_gather") {
      task().drops = {At(What::kNorm2)};
      return GatherTokens(What::kNorm2, 0, What::kNorm2Full);
    }
    if (name == "proj_reduce_scatter" || name == "proj_all_reduce") {
      return ReduceTokens(What::kProjPartial, What::kProjOutput);
    }
    if (name == "fc2_reduce_scatter" || name == "fc2_all_reduce") return ReduceFc2();
    return compiled_.Unknown();
  }

 private:
  bool FirstOfEncoder() const { return tag_.module != ir::kLlmModule && tag_.layer == 0; }

  // The encoder's patches are there from the start.
  absl::Status Norm1() {
    const NormParts norm = Norm("norm1");
    Append(task().reads, norm);
    Slot* x = At(What::kHidden);
    Slot* out = At(What::kNorm1);
    task().makes = {out};
    if (!FirstOfEncoder() || recomputes()) {
      task().needs = {x};
      task().body = [=] { out->Put(ApplyNorm(norm, x->data)); };
      return absl::OkStatus();
    }
    task().makes.push_back(x);
    task().body = [=, context = &context_, tag = tag_] {
      x->Put(Patches(*context, tag));
      out->Put(ApplyNorm(norm, x->data));
    };
    return absl::OkStatus();
  }

  // Local tokens of a slice, position by position.
  static Floats Patches(const Context& context, const ir::Tag& tag) {
    const ModulePlan& module = context.anatomy.module(tag.module);
    const NumericsEncoder& encoder = context.model().encoders[tag.module - 1];
    const int u = context.place.t % module.tp;
    const bool shared = context.anatomy.sequence_parallel();
    const RowRange positions = PartOf({0, module.length}, shared ? u : 0, shared ? module.tp : 1);
    const std::int64_t first_sample = context.anatomy.FirstSample(context.place.d, tag.micro_batch);
    Floats patches;
    for (std::int64_t s = positions.begin; s < positions.end; ++s) {
      for (std::int64_t b = 0; b < module.slice_sequences; ++b) {
        const std::int64_t sequence = tag.slice * module.slice_sequences + b;
        for (std::int64_t c = 0; c < module.dims.hidden; ++c) {
          patches.push_back(PatchOf(context.model(), tag.module - 1,
                                    first_sample + sequence / encoder.sequences_per_sample,
                                    sequence % encoder.sequences_per_sample, s, c));
        }
      }
    }
    return patches;
  }

  absl::Status ApplyGemm(const char* name, Slot* in, Slot* out, bool with_bias) {
    const LinearParts linear = Linear(name);
    Append(task().reads, linear.weights);
    if (with_bias) Append(task().reads, linear.biases);
    task().needs = {in};
    task().makes = {out};
    task().body = [=] { out->Put(ApplyLinear(linear, in->data, with_bias)); };
    return compiled_.ExpectGemm(tokens(), linear.outputs(), linear.inputs());
  }

  absl::Status Qkv() { return ApplyGemm("qkv", QkvInput(), At(What::kQkv), true); }

  // Recomputed alone (selective), its result may be there already.
  void MakeHeads() {
    Slot* out = At(What::kHeads);
    if (recomputes() && anatomy().selective_recompute()) {
      task().remakes = {out};
    } else {
      task().makes = {out};
    }
  }

  absl::Status Attention() {
    Slot* qkv = At(What::kQkv);
    Slot* out = At(What::kHeads);
    task().needs = {qkv};
    MakeHeads();
    task().body = [=, dims = attention()] { out->Put(numerics::Attention(dims, qkv->data)); };
    return compiled_.ExpectAttention(attention());
  }

  absl::Status ScoresKernel() {
    Slot* qkv = At(What::kQkv);
    Slot* out = At(What::kScores);
    task().needs = {qkv};
    task().makes = {out};
    task().body = [=, dims = attention()] { out->Put(Scores(dims, qkv->data)); };
    return absl::OkStatus();
  }

  absl::Status SoftmaxKernel() {
    Slot* scores = At(What::kScores);
    Slot* out = At(What::kProbabilities);
    task().needs = task().drops = {scores};
    task().makes = {out};
    task().body = [=, dims = attention()] { out->Put(Softmax(dims, scores->data)); };
    return absl::OkStatus();
  }

  // Nothing is dropped: the reference would have to drop the same.
  absl::Status Dropout() {
    task().needs = {At(What::kProbabilities)};
    task().body = [] {};
    return absl::OkStatus();
  }

  absl::Status Values() {
    Slot* probabilities = At(What::kProbabilities);
    Slot* qkv = At(What::kQkv);
    Slot* out = At(What::kHeads);
    task().needs = {probabilities, qkv};
    MakeHeads();
    if (anatomy().selective_recompute() && !recomputes()) task().drops = {probabilities};
    task().body = [=, dims = attention()] {
      out->Put(WeightedValues(dims, probabilities->data, qkv->data));
    };
    return absl::OkStatus();
  }

  absl::Status Proj() {
    return ApplyGemm("proj", At(What::kHeads),
                     At(reduces() ? What::kProjPartial : What::kProjOutput), false);
  }

  // `sum` = residual + y + bias of a row-parallel layer.
  static Floats AddResidual(const Floats& residual, const Floats& y,
                            const std::vector<Parameter*>& bias) {
    Floats sum = residual;
    AddTo(sum, y);
    for (std::size_t i = 0; i < sum.size() && !bias.empty(); ++i) {
      sum[i] += bias.front()->value[i % bias.front()->value.size()];
    }
    return sum;
  }

  absl::Status AttentionResidual() {
    Slot* x = At(What::kHidden);
    Slot* y = At(What::kProjOutput);
    Slot* middle = At(What::kMiddle);
    const std::vector<Parameter*> bias = Linear("proj").biases;
    Append(task().reads, bias);
    task().needs = {x, y};
    task().drops = {y};
    task().makes = {middle};
    task().body = [=] { middle->Put(AddResidual(x->data, y->data, bias)); };
    return absl::OkStatus();
  }

  // Fused: with the residual in front of it.
  absl::Status Norm2() {
    Slot* middle = At(What::kMiddle);
    Slot* out = At(What::kNorm2);
    const NormParts norm = Norm("norm2");
    if (fused()) {
      absl::Status status = AttentionResidual();
      if (!status.ok()) return status;
      task().body = [=, residual = std::move(task().body)] {
        residual();
        out->Put(ApplyNorm(norm, middle->data));
      };
    } else {
      task().needs = {middle};
      task().body = [=] { out->Put(ApplyNorm(norm, middle->data)); };
    }
    Append(task().reads, norm);
    task().makes.push_back(out);
    return absl::OkStatus();
  }

  // Fused: with the activation in its epilogue.
  absl::Status Fc1() {
    absl::Status status = ApplyGemm("fc1", Fc1Input(), At(What::kFc1), true);
    if (!status.ok() || !fused()) return status;
    Slot* f1 = At(What::kFc1);
    Slot* act = At(What::kActivation);
    task().makes.push_back(act);
    task().body = [=, gemm = std::move(task().body), width = ffn(), swiglu = dims().swiglu] {
      gemm();
      act->Put(Activate(f1->data, width, swiglu));
    };
    return absl::OkStatus();
  }

  absl::Status Activation() {
    Slot* f1 = At(What::kFc1);
    Slot* act = At(What::kActivation);
    task().needs = {f1};
    task().makes = {act};
    task().body = [=, width = ffn(), swiglu = dims().swiglu] {
      act->Put(Activate(f1->data, width, swiglu));
    };
    return absl::OkStatus();
  }

  // The layer's output, where its last operation makes it: of recomputation nothing is kept.
  // Behind it, all that is not needed again is let go.
  std::function<void(Floats)> Finish() {
    Slot* middle = At(What::kMiddle);
    Slot* out = At(What::kHidden, 1);
    const std::vector<Parameter*> bias = Linear("fc2").biases;
    Append(task().reads, bias);
    task().needs.push_back(middle);
    DropForward();
    if (recomputes()) return [](const Floats&) {};
    task().makes.push_back(out);
    return [=](const Floats& y) { out->Put(AddResidual(middle->data, y, bias)); };
  }

  void DropForward() {
    const bool again = anatomy().full_recompute() && !module_.frozen;
    if (recomputes() || (!again && !module_.frozen)) return;
    for (Slot* slot : {QkvInput(), At(What::kQkv), At(What::kHeads), At(What::kMiddle), Fc1Input(),
                       At(What::kFc1), At(What::kActivation), At(What::kProbabilities)}) {
      task().drops.push_back(slot);
    }
    if (module_.frozen) task().drops.push_back(At(What::kHidden));
  }

  absl::Status Fc2() {
    absl::Status status = ApplyGemm("fc2", At(What::kActivation),
                                    At(reduces() ? What::kFc2Partial : What::kFc2Output), false);
    if (!status.ok() || reduces() || !fused()) return status;
    Slot* act = At(What::kActivation);
    const LinearParts linear = Linear("fc2");
    task().makes.clear();
    task().body = [=, finish = Finish()] { finish(ApplyLinear(linear, act->data, false)); };
    return absl::OkStatus();
  }

  absl::Status ReduceFc2() {
    absl::Status status = ReduceTokens(What::kFc2Partial, What::kFc2Output);
    if (!fused()) return status;
    task().makes.clear();
    task().unpack = [finish = Finish()](Floats& output) { finish(output); };
    return status;
  }

  absl::Status MlpResidual() {
    Slot* y = At(What::kFc2Output);
    task().needs = {y};
    task().drops = {y};
    task().body = [y, finish = Finish()] { finish(y->data); };
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status CompileLayer(Compiled& compiled) {
  const Phase phase = compiled.op.tag.phase;
  if (phase != Phase::kForward && phase != Phase::kRecompute) return CompileLayerBackward(compiled);
  LayerForward layer(compiled);
  return compiled.op.kind == ir::OperationKind::kKernel ? layer.Kernel() : layer.Collective();
}

}  // namespace optimus::executor::numerics
