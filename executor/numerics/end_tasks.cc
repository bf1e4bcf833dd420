// Embedding, head with loss, projectors.
//
// Three places where the Schedule leaves out a communication that real data needs, and what is done
// instead:
//   - The loss over a vocabulary that is split over tensor-parallel ranks needs two sums a token.
//     Every rank holds the whole head weight and works out those sums alone; its GEMMs are those of
//     the Schedule, on its own part of the vocabulary. The other parts are kept up to date with the
//     gradient norm (sync_tasks.cc).
//   - The projector has no collectives in the Schedule. Under sequence parallelism every rank
//     projects its own tokens to the LLM's whole width (the same FLOPs as all tokens to a part of
//     the width); its partial weight gradients are summed with the gradient norm. Without sequence
//     parallelism every rank has all tokens and projects them all.
//   - Encoder outputs reach the LLM's ranks in parts (rows), as large as the Schedule's messages;
//     each rank adds its part to its partial embeddings, and the embedding's reduction, which the
//     Schedule has, puts them together.

#include <algorithm>
#include <cmath>
#include <map>

#include "executor/numerics/linear.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {
namespace {

class End {
 public:
  explicit End(Compiled& compiled)
      : compiled_(compiled),
        context_(compiled.context),
        tag_(compiled.op.tag),
        module_(context_.anatomy.module(tag_.module)),
        u_(context_.place.t % module_.tp) {}

 protected:
  Task& task() { return compiled_.task; }
  const Anatomy& anatomy() const { return context_.anatomy; }
  const Dims& dims() const { return module_.dims; }
  bool reduces() const { return module_.tp > 1; }
  bool gathers() const { return reduces() && anatomy().sequence_parallel(); }
  bool recomputes() const { return tag_.phase == Phase::kRecompute; }
  std::int64_t tokens() const { return module_.tokens(); }
  std::int64_t local_tokens() const { return anatomy().Local(module_, tokens()); }
  const std::string& kernel() const {
    return context_.schedule().kernels[compiled_.op.work].name;
  }
  const std::string& collective() const {
    return context_.schedule().collectives[compiled_.op.work].work.name;
  }
  Slot* At(What what, std::int64_t layer = -1, int slice = 0) {
    return context_.slots.At({what, tag_.module, static_cast<std::int16_t>(layer),
                              static_cast<std::int16_t>(slice), tag_.micro_batch});
  }
  // Parts of an encoder's output, seen from any module.
  Slot* Piece(What what, int module, int piece) {
    return context_.slots.At({what, static_cast<std::int16_t>(module), -1,
                              static_cast<std::int16_t>(piece), tag_.micro_batch});
  }
  absl::Status Move(Slot* from, Slot* to, std::int64_t in_tokens, std::int64_t out_tokens) {
    task().needs = {from};
    task().makes = {to};
    task().input_size = in_tokens * dims().hidden;
    task().output_size = out_tokens * dims().hidden;
    task().pack = [from](Floats& input) { input = from->data; };
    task().unpack = [to](Floats& output) { to->Put(std::move(output)); };
    return absl::OkStatus();
  }
  absl::Status Reduce(Slot* from, Slot* to) {
    task().drops = {from};
    return Move(from, to, tokens(), local_tokens());
  }

  Compiled& compiled_;
  const Context& context_;
  const ir::Tag tag_;
  const ModulePlan& module_;
  const int u_;
};

// --- embedding -----------------------------------------------------------------------------------

class Embedding : public End {
 public:
  using End::End;

  absl::Status Kernel() {
    if (kernel() == "embedding") return Forward();
    if (kernel() == "embedding_dgrad") return Backward();
    return compiled_.Unknown();
  }
  absl::Status Collective() {
    if (collective() == "embedding_reduce_scatter" || collective() == "embedding_all_reduce") {
      return Reduce(At(What::kEmbeddingPartial), At(What::kHidden, 0));
    }
    if (collective() == "embedding_dgrad_all_gather") {
      return Move(At(What::kGradHidden, 0), At(What::kGradEmbeddingFull), local_tokens(),
                  tokens());
    }
    return compiled_.Unknown();
  }

 private:
  // The part of an encoder's output that this rank exchanges, and where its rows go.
  struct Input {
    int module = 0;
    Slot* slot = nullptr;
    RowRange rows;
  };
  std::vector<Input> Inputs(What what) {
    std::vector<Input> inputs;
    for (int m = 1; m < anatomy().modules(); ++m) {
      const ModulePlan& encoder = anatomy().module(m);
      if (encoder.skipped.contains(tag_.micro_batch)) continue;
      const int piece = context_.place.lane % encoder.subgroups;
      const int u = EncoderRank(encoder);
      inputs.push_back({m, Piece(what, m, piece),
                        what == What::kProjected ? anatomy().ForwardRows(m, u, piece)
                                                 : anatomy().BackwardRows(m, u, piece)});
    }
    return inputs;
  }
  // The rank of the encoder's tensor-parallel group that serves this one: lane `lane` is served by
  // the encoder's lane `lane / subgroups`, rank by rank.
  int EncoderRank(const ModulePlan& encoder) const {
    const int width = ir::LaneWidth(context_.schedule());
    return context_.place.lane / encoder.subgroups * width + context_.place.t % width;
  }

  struct Target {
    std::int64_t row = 0;
    float weight = 0;
  };
  static Target TargetOf(const Context& context, int m, std::int64_t row) {
    const ModulePlan& encoder = context.anatomy.module(m);
    const std::int64_t per_sample = context.model().encoders[m - 1].sequences_per_sample;
    const std::int64_t position = row / encoder.sequences;
    const std::int64_t sequence = row % encoder.sequences;
    const Pooling pooling = PoolingOf(context.model(), m - 1,
                                      sequence % per_sample * encoder.length + position);
    return {pooling.position * context.model().micro_batch + sequence / per_sample,
            static_cast<float>(pooling.weight)};
  }

  std::int64_t TokenAt(const Context& context, std::int64_t row) const {
    const std::int64_t first = context.anatomy.FirstSample(context.place.d, tag_.micro_batch);
    return TokenOf(context.model(), first + row % module_.sequences, row / module_.sequences);
  }

  Parameter* Rows() {
    for (Parameter* part :
         context_.parameters.PartsOf(ModuleTensor(dims(), "embedding weight"))) {
      if (part->holding.row == dims().vocabulary / module_.tp * u_) return part;
    }
    return nullptr;
  }
  std::vector<Parameter*> Positions() {
    return context_.parameters.PartsOf(ModuleTensor(dims(), "positions"));
  }

  // Rows of this rank's part of the vocabulary, positions on one rank, encoder outputs by parts.
  absl::Status Forward() {
    const Parameter* rows = Rows();
    const std::vector<Parameter*> positions = Positions();
    const std::vector<Input> inputs = Inputs(What::kProjected);
    Slot* out = reduces() ? At(What::kEmbeddingPartial) : At(What::kHidden, 0);
    task().reads = {Rows()};
    Append(task().reads, positions);
    task().makes = {out};
    for (const Input& input : inputs) {
      task().needs.push_back(input.slot);
      task().drops.push_back(input.slot);
    }
    task().body = [=, this_copy = *this, context = &context_] {
      const std::int64_t width = this_copy.dims().hidden;
      Floats sum(this_copy.tokens() * width, 0.0F);
      for (std::int64_t i = 0; i < this_copy.tokens(); ++i) {
        const std::int64_t token = this_copy.TokenAt(*context, i) - rows->holding.row;
        const bool here = token >= 0 && token < rows->holding.rows;
        const std::int64_t position = i / this_copy.module_.sequences;
        for (std::int64_t c = 0; c < width; ++c) {
          if (here) sum[i * width + c] += rows->value[token * width + c];
          if (positions.empty() || this_copy.u_ != 0) continue;
          sum[i * width + c] += positions.front()->value[position * width + c];
        }
      }
      for (const Input& input : inputs) AddRows(*context, input, width, sum);
      out->Put(std::move(sum));
    };
    return absl::OkStatus();
  }

  static void AddRows(const Context& context, const Input& input, std::int64_t width,
                      Floats& sum) {
    for (std::int64_t r = 0; r < input.rows.size(); ++r) {
      const Target target = TargetOf(context, input.module, input.rows.begin + r);
      for (std::int64_t c = 0; c < width; ++c) {
        sum[target.row * width + c] += target.weight * input.slot->data[r * width + c];
      }
    }
  }

  absl::Status Backward() {
    Parameter* rows = Rows();
    const std::vector<Parameter*> positions = Positions();
    const std::vector<Input> outputs = Inputs(What::kGradProjected);
    Slot* dx = gathers() ? At(What::kGradEmbeddingFull) : At(What::kGradHidden, 0);
    task().needs = {dx};
    task().drops = {dx, At(What::kGradHidden, 0)};
    task().adds_to = {rows};
    Append(task().adds_to, positions);
    for (const Input& output : outputs) task().makes.push_back(output.slot);
    task().body = [=, this_copy = *this, context = &context_] {
      const std::int64_t width = this_copy.dims().hidden;
      for (std::int64_t i = 0; i < this_copy.tokens(); ++i) {
        const std::int64_t token = this_copy.TokenAt(*context, i) - rows->holding.row;
        const bool here = token >= 0 && token < rows->holding.rows;
        const std::int64_t position = i / this_copy.module_.sequences;
        for (std::int64_t c = 0; c < width; ++c) {
          const float g = dx->data[i * width + c];
          if (here) rows->gradient[token * width + c] += g;
          if (!positions.empty()) positions.front()->gradient[position * width + c] += g;
        }
      }
      for (const Input& output : outputs) TakeRows(*context, output, width, dx->data);
    };
    return absl::OkStatus();
  }

  static void TakeRows(const Context& context, const Input& output, std::int64_t width,
                       const Floats& dx) {
    Floats rows(output.rows.size() * width);
    for (std::int64_t r = 0; r < output.rows.size(); ++r) {
      const Target target = TargetOf(context, output.module, output.rows.begin + r);
      for (std::int64_t c = 0; c < width; ++c) {
        rows[r * width + c] = target.weight * dx[target.row * width + c];
      }
    }
    output.slot->Put(std::move(rows));
  }
};

// --- head ----------------------------------------------------------------------------------------

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
      const absl::Status status =
          Move(At(What::kFinalNorm), At(What::kFinalNormFull), local_tokens(), tokens());
      task().drops = {At(What::kFinalNorm)};
      return status;
    }
    if (collective() == "lm_head_dgrad_reduce_scatter" || collective() == "lm_head_dgrad_all_reduce") {
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
  static std::int64_t TargetHere(const Context& context, std::int32_t micro_batch,
                                 std::int64_t row, RowRange here) {
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
          gradient[i * width + v] = scale * std::exp(logits->data[i * width + v] - log_sums->data[i]);
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

// --- projector -----------------------------------------------------------------------------------

class Projector : public End {
 public:
  using End::End;

  absl::Status Kernel() {
    if (kernel() == "projector") return recomputes() ? Again() : Forward();
    if (kernel() == "projector_dgrad") return DataGradient();
    if (kernel() == "projector_wgrad") return WeightGradient();
    return compiled_.Unknown();
  }

 private:
  LinearParts Linear() { return LinearOf(context_, ModuleTensor(dims(), "projector")); }
  std::int64_t llm_part() const { return anatomy().module(0).dims.hidden / module_.tp; }
  std::vector<Slot*> Slices(What what) {
    std::vector<Slot*> slices;
    for (int i = 0; i < module_.slices(); ++i) slices.push_back(At(what, dims().layers, i));
    return slices;
  }
  std::vector<Slot*> Pieces(What what) {
    std::vector<Slot*> pieces;
    for (int i = 0; i < module_.subgroups; ++i) pieces.push_back(Piece(what, tag_.module, i));
    return pieces;
  }
  // First row of the micro-batch that this rank has: its own under sequence parallelism, else 0.
  std::int64_t FirstRow() const { return gathers() ? tokens() / module_.tp * u_ : 0; }
  absl::Status CheckForward() const {
    return compiled_.ExpectGemm(tokens(), llm_part(), dims().hidden);
  }

  // The sequences of all slices side by side, position by position.
  static Floats Join(const std::vector<Slot*>& slices, std::int64_t slice_sequences,
                     std::int64_t width) {
    const auto count = static_cast<std::int64_t>(slices.size());
    const std::int64_t run = slice_sequences * width;
    const std::int64_t positions = static_cast<std::int64_t>(slices.front()->data.size()) / run;
    Floats all(positions * count * run);
    for (std::int64_t s = 0; s < positions; ++s) {
      for (std::int64_t j = 0; j < count; ++j) {
        std::copy_n(&slices[j]->data[s * run], run, &all[(s * count + j) * run]);
      }
    }
    return all;
  }
  static void Cut(const Floats& all, const std::vector<Slot*>& slices, std::int64_t slice_sequences,
                  std::int64_t width) {
    const auto count = static_cast<std::int64_t>(slices.size());
    const std::int64_t run = slice_sequences * width;
    const std::int64_t positions = static_cast<std::int64_t>(all.size()) / run / count;
    for (std::int64_t j = 0; j < count; ++j) {
      Floats slice(positions * run);
      for (std::int64_t s = 0; s < positions; ++s) {
        std::copy_n(&all[(s * count + j) * run], run, &slice[s * run]);
      }
      slices[j]->Put(std::move(slice));
    }
  }

  absl::Status Forward() {
    const LinearParts linear = Linear();
    const std::vector<Slot*> slices = Slices(What::kHidden);
    const std::vector<Slot*> pieces = Pieces(What::kProjected);
    Append(task().reads, linear.weights);
    Append(task().reads, linear.biases);
    task().needs = slices;
    task().makes = pieces;
    std::vector<RowRange> rows;
    for (int i = 0; i < module_.subgroups; ++i) {
      rows.push_back(anatomy().ForwardRows(tag_.module, u_, i));
    }
    task().body = [=, first = FirstRow(), run = module_.slice_sequences, width = dims().hidden] {
      const Floats y = ApplyLinear(linear, Join(slices, run, width), true);
      const std::int64_t out = linear.outputs();
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        pieces[i]->Put(Floats(y.begin() + (rows[i].begin - first) * out,
                              y.begin() + (rows[i].end - first) * out));
      }
    };
    return CheckForward();
  }

  // Its result went to the LLM long ago.
  absl::Status Again() {
    const LinearParts linear = Linear();
    const std::vector<Slot*> slices = Slices(What::kHidden);
    Append(task().reads, linear.weights);
    Append(task().reads, linear.biases);
    task().needs = slices;
    task().body = [=, run = module_.slice_sequences, width = dims().hidden] {
      ApplyLinear(linear, Join(slices, run, width), true);
    };
    return CheckForward();
  }

  static Floats Concatenate(const std::vector<Slot*>& pieces) {
    Floats all;
    for (const Slot* piece : pieces) all.insert(all.end(), piece->data.begin(), piece->data.end());
    return all;
  }

  absl::Status DataGradient() {
    const LinearParts linear = Linear();
    const std::vector<Slot*> pieces = Pieces(What::kGradProjected);
    const std::vector<Slot*> slices = Slices(What::kGradHidden);
    Append(task().reads, linear.weights);
    task().needs = pieces;
    task().makes = slices;
    task().body = [=, run = module_.slice_sequences, width = dims().hidden] {
      Cut(LinearDataGradient(linear, Concatenate(pieces)), slices, run, width);
    };
    return compiled_.ExpectGemm(tokens(), dims().hidden, llm_part());
  }

  absl::Status WeightGradient() {
    const LinearParts linear = Linear();
    const std::vector<Slot*> pieces = Pieces(What::kGradProjected);
    const std::vector<Slot*> slices = Slices(What::kHidden);
    Append(task().adds_to, linear.weights);
    Append(task().adds_to, linear.biases);
    task().needs = slices;
    task().needs.insert(task().needs.end(), pieces.begin(), pieces.end());
    task().drops = task().needs;
    task().body = [=, run = module_.slice_sequences, width = dims().hidden] {
      AddLinearGradients(linear, Join(slices, run, width), Concatenate(pieces));
    };
    return compiled_.ExpectGemm(llm_part(), dims().hidden, tokens());
  }
};

template <class Compiler>
absl::Status CompileBy(Compiled& compiled) {
  Compiler compiler(compiled);
  return compiled.op.kind == ir::OperationKind::kKernel ? compiler.Kernel() : compiler.Collective();
}

}  // namespace

absl::Status CompileEnds(Compiled& compiled) {
  switch (compiled.op.tag.layer) {
    case ir::kEmbeddingLayer:
      return CompileBy<Embedding>(compiled);
    case ir::kHeadLayer:
      return CompileBy<Head>(compiled);
    case ir::kProjectorLayer:
      if (compiled.op.kind == ir::OperationKind::kKernel) return Projector(compiled).Kernel();
      break;
    default:
      break;
  }
  return compiled.Unknown();
}

}  // namespace optimus::executor::numerics
