#pragma once
// Small models and sums over blocks for the tests of this folder.

#include <map>
#include <string>
#include <vector>

#include "models/block.h"
#include "models/layers.h"
#include "models/model.pb.h"

namespace optimus::models {

inline ModelConfig SmallGpt() {
  ModelConfig model;
  model.set_name("small-gpt");
  model.set_hidden_size(1024);
  model.set_num_layers(4);
  model.set_ffn_hidden_size(4096);
  model.set_num_attention_heads(16);
  model.set_vocabulary_size(8192);
  model.set_max_position_embeddings(512);
  model.set_activation(ModelConfig::GELU);
  model.set_attention(ModelConfig::CAUSAL);
  model.set_norm(ModelConfig::LAYER_NORM);
  model.set_linear_bias(true);
  model.set_tied_embeddings(true);
  return model;
}

inline ModelConfig SmallVit() {
  ModelConfig model = SmallGpt();
  model.set_name("small-vit");
  model.set_vocabulary_size(0);
  model.set_max_position_embeddings(0);
  model.set_tied_embeddings(false);
  model.set_attention(ModelConfig::FULL);
  return model;
}

// Grouped queries (4 key/value heads), SwiGLU, RMSNorm, heads narrower than hidden / heads.
inline ModelConfig SmallLlama() {
  ModelConfig model = SmallGpt();
  model.set_name("small-llama");
  model.set_ffn_hidden_size(2816);
  model.set_num_query_groups(4);
  model.set_head_dim(48);
  model.set_max_position_embeddings(0);
  model.set_activation(ModelConfig::SWIGLU);
  model.set_norm(ModelConfig::RMS_NORM);
  model.set_linear_bias(false);
  model.set_tied_embeddings(false);
  return model;
}

inline LayerShape Shape(std::int64_t sequences, std::int64_t sequence_length, int tensor_parallel) {
  LayerShape shape;
  shape.sequences = sequences;
  shape.sequence_length = sequence_length;
  shape.tensor_parallel = tensor_parallel;
  return shape;
}

inline std::string NameOf(const BlockOp& op) {
  return op.is_collective ? op.collective.name : op.kernel.name;
}

inline std::vector<std::string> Names(const Block& block) {
  std::vector<std::string> names;
  for (const BlockOp& op : block.ops) names.push_back(NameOf(op));
  return names;
}

inline double TotalFlops(const Block& block) {
  double flops = 0;
  for (const BlockOp& op : block.ops) flops += op.kernel.flops.value();
  return flops;
}

inline double GemmFlops(const Block& block) {
  double flops = 0;
  for (const BlockOp& op : block.ops) {
    if (op.kernel.kind == KernelKind::kGemm) flops += op.kernel.flops.value();
  }
  return flops;
}

inline std::map<std::string, BlockOp> ByName(const Block& block) {
  std::map<std::string, BlockOp> ops;
  for (const BlockOp& op : block.ops) ops[NameOf(op)] = op;
  return ops;
}

}  // namespace optimus::models
