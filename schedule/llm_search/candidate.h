#pragma once
// What `optimus plan --search-llm` chooses from: how the LLM itself is put on the GPUs.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/step/experiment.pb.h"

namespace optimus::llm_search {

struct Candidate {
  step::Plan::Strategy strategy = step::Plan::OPTIMUS;
  std::int32_t data_parallel = 1, pipeline_parallel = 1, tensor_parallel = 1;
  std::int32_t model_chunks = 1;  // V; 1: 1F1B, more: interleaved 1F1B
  std::int32_t micro_batch = 1;   // samples
  step::Plan::Recompute recompute = step::Plan::RECOMPUTE_NONE;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// The plan that an experiment has; its defaults are filled in.
Candidate CandidateOf(const step::Experiment& experiment);
// "OPTIMUS, DP 48 x PP 8 x TP 8, V 12, micro-batch 2, recompute full".
std::string ToString(const Candidate& candidate);
const char* RecomputeName(step::Plan::Recompute recompute);  // "none", "selective", "full"

// What decides which candidates there are.
struct Domain {
  std::int32_t gpus = 0;
  std::int32_t gpus_per_node = 0;  // 0: nodes are as large as one likes
  std::int32_t llm_layers = 0;
  std::int32_t encoder_layers = 0;   // of all encoders, which a pipeline of PIPELINE holds too
  std::int32_t global_batch = 0;     // samples
  std::int32_t own_micro_batch = 0;  // of the experiment, taken too where it is no power of two
  bool with_encoders = false;        // then OPTIMUS as well as PIPELINE
};

// All of them, in the order that breaks ties: strategy (OPTIMUS first), then TP and PP, the largest
// first, then V, micro-batch and recomputation, the smallest first.
//   TP: divisors of the GPUs that divide a node.
//   PP: divisors of the rest, up to one layer a stage.
//   V: divisors of the LLM's layers of a stage, 1 where they do not divide. PIPELINE, whose
//   balanced
//     pipeline cuts encoders and LLM together: also the divisors of all layers of a stage, where
//     all layers divide (48 + 96 layers and PP 16: 9 chunks of one layer).
//   micro-batch: powers of two, and the experiment's own, that cut a replica's part of the global
//     batch evenly; where there is no such part, 1, so that the combination is refused by name.
std::vector<Candidate> Enumerate(const Domain& domain);

// The experiment with the candidate's plan. `base` is as it was written, without defaults filled
// in. What belongs to the plan that was there goes: encoder plans and splits, groups of
// micro-batches, explicit layouts. PIPELINE with encoders is laid out BALANCED. An encoder's slices
// stay as large as they are where that divides the micro-batch; otherwise they get the nearest size
// that does (NearestDivisor).
step::Experiment Apply(const step::Experiment& base, const Candidate& candidate);

// The divisor of `whole` that is nearest to `wanted`; of two as near the smaller one. Both are
// positive.
std::int64_t NearestDivisor(std::int64_t wanted, std::int64_t whole);

}  // namespace optimus::llm_search
