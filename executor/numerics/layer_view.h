#pragma once
// What the operations of one layer have in common while they are compiled. Internal to the layer's
// compilers.

#include <algorithm>
#include <string>
#include <utility>

#include "executor/numerics/linear.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {

class LayerView {
 public:
  explicit LayerView(Compiled& compiled)
      : compiled_(compiled),
        context_(compiled.context),
        tag_(compiled.op.tag),
        module_(context_.anatomy.module(tag_.module)) {}

 protected:
  Task& task() { return compiled_.task; }
  const Dims& dims() const { return module_.dims; }
  const Anatomy& anatomy() const { return context_.anatomy; }
  bool fused() const { return anatomy().fused(); }
  bool recomputes() const { return tag_.phase == Phase::kRecompute; }
  bool reduces() const { return module_.tp > 1; }
  bool gathers() const { return reduces() && anatomy().sequence_parallel(); }
  std::int64_t tokens() const { return module_.slice_tokens(); }
  std::int64_t local_tokens() const { return anatomy().Local(module_, tokens()); }
  std::int64_t heads() const { return dims().heads / module_.tp; }
  std::int64_t kv_heads() const { return std::max<std::int64_t>(1, dims().kv_heads / module_.tp); }
  std::int64_t heads_width() const { return heads() * dims().head_dim; }
  std::int64_t qkv_width() const { return (heads() + 2 * kv_heads()) * dims().head_dim; }
  std::int64_t ffn() const { return dims().ffn / module_.tp; }
  std::int64_t fc1_width() const { return dims().fc1_width() / module_.tp; }
  AttentionDims attention() const {
    return {module_.slice_sequences, module_.length, heads(), kv_heads(),
            dims().head_dim,         dims().causal};
  }
  // Slot of this layer's pass; `layer`: so many layers further.
  Slot* At(What what, int layer = 0) {
    return context_.slots.At({what, tag_.module, static_cast<std::int16_t>(tag_.layer + layer),
                              std::max<std::int16_t>(tag_.slice, 0), tag_.micro_batch});
  }
  // Operands of qkv and fc1, and of the backward of fc2 and proj.
  Slot* QkvInput() { return At(gathers() ? What::kNorm1Full : What::kNorm1); }
  Slot* Fc1Input() { return At(gathers() ? What::kNorm2Full : What::kNorm2); }
  Slot* Fc2Gradient() { return gathers() ? At(What::kGradHiddenFull) : At(What::kGradHidden, 1); }
  Slot* ProjGradient() { return At(gathers() ? What::kGradMiddleFull : What::kGradMiddle); }

  LinearParts Linear(const char* name) {
    return LinearOf(context_, LayerTensor(dims(), tag_.layer, name));
  }
  NormParts Norm(const char* name) {
    return NormOf(context_, LayerTensor(dims(), tag_.layer, name));
  }
  const std::string& kernel() const { return context_.schedule().kernels[compiled_.op.work].name; }
  const CollectiveWork& collective() const {
    return context_.schedule().collectives[compiled_.op.work].work;
  }

  // A collective that turns one slot into another.
  absl::Status Move(What from, int from_layer, What to, std::int64_t in_tokens,
                    std::int64_t out_tokens) {
    Slot* source = At(from, from_layer);
    Slot* target = At(to);
    task().needs = {source};
    task().makes = {target};
    task().input_size = in_tokens * dims().hidden;
    task().output_size = out_tokens * dims().hidden;
    task().pack = [source](Floats& input) { input = source->data; };
    task().unpack = [target](Floats& output) { target->Put(std::move(output)); };
    return absl::OkStatus();
  }
  absl::Status GatherTokens(What from, int from_layer, What to) {
    return Move(from, from_layer, to, local_tokens(), tokens());
  }
  absl::Status ReduceTokens(What from, What to) {
    task().drops = {At(from)};
    return Move(from, 0, to, tokens(), local_tokens());
  }

  Compiled& compiled_;
  const Context& context_;
  const ir::Tag tag_;
  const ModulePlan& module_;
};

}  // namespace optimus::executor::numerics
