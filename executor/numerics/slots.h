#pragma once
// Tensors of one rank between operations. A Slot is made by one operation and used by others; that
// the maker ran first is what the Schedule has to see to, and what every use checks.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/numerics/math.h"

namespace optimus::executor::numerics {

// [tokens, width] where nothing else is said; "local": the rank's own tokens under sequence
// parallelism.
enum class What : std::uint8_t {
  kHidden,     // input of a layer (behind the last layer: of head or projector), local
  kNorm1,      // local
  kNorm1Full,  // gathered
  kQkv,        // queries, keys, values of this rank's heads
  kScores,     // unfused attention: [sequence, head, query, key]
  kProbabilities,
  kHeads,        // output of the attention core
  kProjPartial,  // to be summed over the tensor-parallel ranks
  kProjOutput,   // local
  kMiddle,       // between attention and MLP, local
  kNorm2,
  kNorm2Full,
  kFc1,         // before the activation
  kActivation,  // behind it
  kFc2Partial,
  kFc2Output,
  kGradHidden,  // gradients, named by what they are the gradient of
  kGradHiddenFull,
  kGradActivation,
  kGradFc1,
  kGradNorm2Partial,
  kGradNorm2,
  kGradMiddleNorm,  // through the norm alone, without the residual's
  kGradMiddle,
  kGradMiddleFull,
  kGradHeads,
  kGradProbabilities,
  kGradScores,
  kGradQkv,
  kGradNorm1Partial,
  kGradNorm1,
  kGradHiddenNorm,
  kProjected,  // [rows, LLM hidden] of a piece of an encoder's output (slice: the piece)
  kGradProjected,
  kEmbeddingPartial,
  kGradEmbeddingFull,
  kFinalNorm,
  kFinalNormFull,
  kLogits,   // this rank's part of the vocabulary
  kLogSums,  // [tokens]
  kGradLogits,
  kGradFinalNormPartial,
  kGradFinalNorm,
  kGradientNorm,  // one number: the step's gradients are final
};
const char* ToString(What what);

struct SlotKey {
  What what = What::kHidden;
  std::int16_t module = -1, layer = -1, slice = 0;
  std::int32_t micro_batch = -1;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in what is generated for ours.
  friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
};
// "hidden of module 1 layer 3 micro-batch 2 slice 1"
std::string Describe(const SlotKey& key);

struct Slot {
  SlotKey key;
  Floats data;
  // Between threads only where the Schedule orders them; atomic so that a Schedule that does not is
  // found out instead of undefined.
  std::atomic<bool> present{false};
  std::vector<std::uint32_t> makers;  // operations, ascending
  std::int64_t bytes = 0;             // that TensorMemory has counted; `kept`: for weight gradients
  bool kept = false;
  void Put(Floats floats) { data = std::move(floats); }
};

// Slots are created while operations are compiled, never while they run.
class Slots {
 public:
  Slot* At(const SlotKey& key) {
    std::unique_ptr<Slot>& slot = slots_[key];
    if (slot == nullptr) {
      slot = std::make_unique<Slot>();
      slot->key = key;
    }
    return slot.get();
  }
  const std::map<SlotKey, std::unique_ptr<Slot>>& all() const { return slots_; }

 private:
  std::map<SlotKey, std::unique_ptr<Slot>> slots_;
};

}  // namespace optimus::executor::numerics
