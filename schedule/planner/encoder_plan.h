#pragma once
// Encoder plans over the LLM's GPUs (the paper, section 4.1).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/model.pb.h"
#include "schedule/ir/schedule.h"

namespace optimus::planner {

// How one encoder is put on the GPUs of the LLM's plan `llm`:
//   DP_enc = llm.gpus() / (pipeline_parallel * tensor_parallel),
//   m = DP_enc / llm.dp encoder pipelines share the GPUs of one LLM pipeline.
// Encoder pipeline j of an LLM pipeline sits on the stages
// [block * PP_enc, (block + 1) * PP_enc) with block = j / subgroups, and on the tensor-parallel
// ranks [subgroup * TP_enc, (subgroup + 1) * TP_enc) with subgroup = j mod subgroups, where
// subgroups = llm.tp / TP_enc. Its encoder stage p is on LLM stage block * PP_enc + p.
struct EncoderPlan {
  std::int32_t pipeline_parallel = 1;  // PP_enc, divides llm.pp
  std::int32_t tensor_parallel = 1;    // TP_enc, divides llm.tp
  friend bool operator==(const EncoderPlan&, const EncoderPlan&) = default;
};

std::int32_t PipelinesOf(const EncoderPlan& plan, const ir::Parallelism& llm);     // m
std::int32_t DataParallelOf(const EncoderPlan& plan, const ir::Parallelism& llm);  // DP_enc
std::string ToString(const EncoderPlan& plan);                                     // "PP 2 x TP 8"

// All plans over the divisors of llm.pp and llm.tp (16 for 8 and 8), ordered by pipeline, then
// tensor parallelism, largest tensor parallelism first.
std::vector<EncoderPlan> EnumeratePlans(const ir::Parallelism& llm);

// For a plan that a user wrote: both numbers divide the LLM's. INVALID_ARGUMENT names the number
// and lists the ones that do.
absl::Status ValidatePlan(const EncoderPlan& plan, const ir::Parallelism& llm);
// ValidatePlan, and that the model can be cut so: a layer for every encoder stage, whole heads and
// widths for every tensor-parallel rank. The message is the reason for which a plan is dropped.
absl::Status ValidatePlanFor(const EncoderPlan& plan, const ir::Parallelism& llm,
                             const models::ModelConfig& encoder);

}  // namespace optimus::planner
