// Final norm, LM head and loss.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "executor/numerics/end_view.h"

namespace optimus::executor::numerics {
namespace {

class Head : public End {
 public:
  using End::End;

  absl::Status Kernel() {
    using Method = absl::Status (Head::*)();
    static const auto* kMethods = new std::map<std::string, Method>{
        {"final_norm", &Head::Norm},
        {"lm_head", &Head::Logits},
        {"cross_entropy", &Head::Loss},
        {"cross_entropy_dgrad", &Head::LossBackward},
        {"lm_head_dgrad", &Head::DataGradient},
        {"lm_head_wgrad", &Head::WeightGradient},
        {"final_norm_dgrad", &Head::NormBackward},
    };
    const auto method = kMethods->find(kernel());
    return method == kMethods->end() ? compiled_.Unknown() : (this->*method->second)();
  }

  absl::Status Collective() {
    if (collective() == "lm_head_all_gather") {
      absl::Status status =
          Move(At(What::kFinalNorm), At(What::kFinalNormFull), local_tokens(), tokens());
      task().drops = {At(What::kFinalNorm)};
      return status;
    }
    if (collective() == "lm_head_dgrad_reduce_scatter" ||
        collective() == "lm_head_dgrad_all_reduce") {
      return Reduce(At(What::kGradFinalNormPartial), At(What::kGradFinalNorm));
    }
    return compiled_.Unknown();
  }

 private:
  std::int64_t vocabulary() const { return dims().vocabulary / module_.tp; }
  Slot* Input() { return At(gathers() ? What::kFinalNormFull : What::kFinalNorm); }
  Slot* Hidden() { return At(What::kHidden, dims().layers); }
  std::vector<Parameter*> AllParts() {
    return context_.parameters.PartsOf(
        ModuleTensor(dims(), dims().tied ? "embedding weight" : "lm_head weight"));
  }
  LinearParts Own() { return {{AllParts()[u_]}, {}}; }
  NormParts FinalNorm() { return NormOf(context_, ModuleTensor(dims(), "final_norm")); }

  absl::Status Norm() {
    const NormParts norm = FinalNorm();
    Slot* x = Hidden();
    Slot* out = At(What::kFinalNorm);
    Append(task().reads, norm);
    task().needs = {x};
    task().makes = {out};
    task().body = [=] { out->Put(ApplyNorm(norm, x->data)); };
    return absl::OkStatus();
  }

  absl::Status Logits() {
    const LinearParts own = Own();
    Slot* x = Input();
    Slot* out = At(What::kLogits);
    Append(task().reads, own.weights);
    task().needs = {x};
    task().makes = {out};
    task().body = [=] { out->Put(ApplyLinear(own, x->data, false)); };
    return compiled_.ExpectGemm(tokens(), vocabulary(), dims().hidden);
  }

  // Target of a token where it is in this rank's part of the vocabulary, else -1.
  static std::int64_t TargetHere(const Context& context, std::int32_t micro_batch, std::int64_t row,
                                 RowRange here) {
    const ModulePlan& llm = context.anatomy.module(0);
    const std::int64_t first = context.anatomy.FirstSample(context.place.d, micro_batch);
    const std::int64_t target =
        TokenOf(context.model(), first + row % llm.sequences, row / llm.sequences + 1);
    return target >= here.begin && target < here.end ? target - here.begin : -1;
  }

  // The logits of the whole vocabulary, for the sums; every rank arrives at the same loss and the
  // first one reports it.
  absl::Status Loss() {
    const LinearParts all = {AllParts(), {}};
    Slot* x = Input();
    Slot* logits = At(What::kLogits);
    Slot* log_sums = At(What::kLogSums);
    Append(task().reads, all.weights);
    task().needs = {x, logits};
    task().makes = {log_sums};
    task().body = [=, context = &context_, rows = tokens(), all_of = dims().vocabulary,
                   micro_batch = tag_.micro_batch, reports = u_ == 0] {
      const Floats every = ApplyLinear(all, x->data, false);
      Floats sums(rows);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float* row = &every[i * all_of];
        const double largest = *std::max_element(row, row + all_of);
        double sum = 0;
        for (std::int64_t v = 0; v < all_of; ++v) sum += std::exp(row[v] - largest);
        const double log_sum = largest + std::log(sum);
        sums[i] = static_cast<float>(log_sum);
        const std::int64_t target = TargetHere(*context, micro_batch, i, {0, all_of});
        if (reports) *context->loss += (log_sum - row[target]) * PerToken(*context);
      }
      log_sums->Put(std::move(sums));
    };
    return absl::OkStatus();
  }

  static double PerToken(const Context& context) {
    const NumericsModel& model = context.model();
    return 1.0 / static_cast<double>(model.global_batch * model.sequence_length);
  }

  absl::Status LossBackward() {
    Slot* logits = At(What::kLogits);
    Slot* log_sums = At(What::kLogSums);
    Slot* out = At(What::kGradLogits);
    task().needs = task().drops = {logits, log_sums};
    task().makes = {out};
    task().body = [=, context = &context_, rows = tokens(), width = vocabulary(), u = u_,
                   micro_batch = tag_.micro_batch] {
      const auto scale = static_cast<float>(PerToken(*context));
      Floats gradient(rows * width);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t v = 0; v < width; ++v) {
          gradient[i * width + v] =
              scale * std::exp(logits->data[i * width + v] - log_sums->data[i]);
        }
        const std::int64_t target =
            TargetHere(*context, micro_batch, i, {u * width, (u + 1) * width});
        if (target >= 0) gradient[i * width + target] -= scale;
      }
      out->Put(std::move(gradient));
    };
    return absl::OkStatus();
  }

  absl::Status DataGradient() {
    const LinearParts own = Own();
    Slot* dy = At(What::kGradLogits);
    Slot* out = At(reduces() ? What::kGradFinalNormPartial : What::kGradFinalNorm);
    Append(task().reads, own.weights);
    task().needs = {dy};
    task().makes = {out};
    task().body = [=] { out->Put(LinearDataGradient(own, dy->data)); };
    return compiled_.ExpectGemm(tokens(), dims().hidden, vocabulary());
  }

  absl::Status WeightGradient() {
    const LinearParts own = Own();
    Slot* x = Input();
    Slot* dy = At(What::kGradLogits);
    Append(task().adds_to, own.weights);
    task().needs = {x, dy};
    task().body = [=] { AddLinearGradients(own, x->data, dy->data); };
    return compiled_.ExpectGemm(vocabulary(), dims().hidden, tokens());
  }

  absl::Status NormBackward() {
    const NormParts norm = FinalNorm();
    Slot* x = Hidden();
    Slot* dy = At(What::kGradFinalNorm);
    Slot* out = At(What::kGradHidden, dims().layers);
    Append(task().reads, norm);
    Append(task().adds_to, norm);
    task().needs = {x, dy};
    task().makes = {out};
    task().drops = {x, dy, Input(), At(What::kGradLogits)};
    task().body = [=] { out->Put(ApplyNormBackward(norm, x->data, dy->data)); };
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status CompileHead(Compiled& compiled) { return CompileBy<Head>(compiled); }

}  // namespace optimus::executor::numerics
