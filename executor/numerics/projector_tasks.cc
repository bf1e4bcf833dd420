// From an encoder's width to the LLM's.

#include <algorithm>
#include <vector>

#include "executor/numerics/end_view.h"

namespace optimus::executor::numerics {
namespace {

class Projector : public End {
 public:
  using End::End;

  absl::Status Kernel() {
    if (kernel() == "projector") return recomputes() ? Again() : Forward();
    if (kernel() == "projector_dgrad") return DataGradient();
    if (kernel() == "projector_wgrad") return WeightGradient();
    return compiled_.Unknown();
  }
  absl::Status Collective() { return compiled_.Unknown(); }

 private:
  LinearParts Linear() { return LinearOf(context_, ModuleTensor(dims(), "projector")); }
  std::int64_t llm_part() const { return anatomy().module(0).dims.hidden / module_.tp; }
  std::vector<Slot*> Slices(What what) {
    std::vector<Slot*> slices;
    slices.reserve(module_.slices());
    for (int i = 0; i < module_.slices(); ++i) slices.push_back(At(what, dims().layers, i));
    return slices;
  }
  std::vector<Slot*> Pieces(What what) {
    std::vector<Slot*> pieces;
    pieces.reserve(module_.subgroups);
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
    rows.reserve(module_.subgroups);
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

}  // namespace

absl::Status CompileProjector(Compiled& compiled) { return CompileBy<Projector>(compiled); }

}  // namespace optimus::executor::numerics
