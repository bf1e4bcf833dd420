#pragma once
// The model of an experiment as one sequence of items, in the order in which a micro-batch passes
// them: for every encoder its layers and its projector, then the token embedding, the LLM's layers
// and the head. A virtual stage holds a contiguous range of it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "models/layers.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// One model as the experiment runs it. Module 0 is the LLM, module k + 1 is encoder k.
struct Module {
  std::string name;  // "llm", "vit-22b"
  models::ModelConfig config;
  bool frozen = false;
  models::LayerShape slice;  // what one pass of a layer sees: a slice of the micro-batch
  int slices = 1;            // passes of a layer per micro-batch
  models::LayerShape whole;  // all of the micro-batch at once (projector, embedding, head)
};

enum class ItemKind : std::uint8_t { kLayer, kProjector, kEmbedding, kHead };

struct Item {
  ItemKind kind = ItemKind::kLayer;
  int module = 0;
  int layer = 0;  // kLayer: counted from 0 within the module
};

// The items of virtual stage v are [begin[v], begin[v + 1]).
using ItemRanges = std::vector<int>;

struct Stack {
  std::vector<Module> modules;
  std::vector<Item> items;
  int encoder_layers = 0;  // of all encoders
  int layers() const { return encoder_layers + modules[0].config.num_layers(); }
};

// The model that llm names or inline_llm is, for the experiment's tensor parallelism.
absl::StatusOr<models::ModelConfig> LoadLlm(const Experiment& experiment);

// Loads the models. Errors name the field ("llm: ...", "encoders[0].model: ...").
absl::StatusOr<Stack> BuildStack(const Experiment& experiment);

// True if the item has gradients: everything but the layers of a frozen encoder. Its projector is
// trained (the paper, section 6).
bool IsTrained(const Stack& stack, const Item& item);

// "vit-22b 0-2, projector, embedding, llm 0-1" for items [begin, end).
std::string DescribeItems(const Stack& stack, int begin, int end);

// Bytes per GPU that one micro-batch sends across the boundary behind `item`: the encoder's tokens
// inside an encoder, the LLM's tokens behind the projector (which pools to them). With sequence
// parallelism every GPU holds 1/tp of them; without, Megatron's scatter-gather sends 1/tp as well.
Bytes BoundaryBytes(const Stack& stack, const Item& item);

}  // namespace optimus::step
