#pragma once
// What the operations of embedding, head and projectors have in common while they are compiled.
// Internal to their compilers.
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

#include <cstdint>
#include <string>
#include <utility>

#include "executor/numerics/linear.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {

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
  const std::string& kernel() const { return context_.schedule().kernels[compiled_.op.work].name; }
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

template <class Compiler>
absl::Status CompileBy(Compiled& compiled) {
  Compiler compiler(compiled);
  return compiled.op.kind == ir::OperationKind::kKernel ? compiler.Kernel() : compiler.Collective();
}

}  // namespace optimus::executor::numerics
