#pragma once
// Helpers of this folder's tests: small experiments of strategy OPTIMUS.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "schedule/colocate/optimus.h"
#include "schedule/step/testing.h"

namespace optimus::colocate::testing {

inline std::string Encoder(const std::string& model, const std::string& more = "") {
  return "encoders { model: \"examples/models/" + model +
         ".textproto\" sequences_per_sample: 2 sequence_length: 512 sequences_per_slice: 1 " +
         more + "}\n";
}

// An LLM on 2 replicas of 4 stages of 4 GPUs, 8 micro-batches. What `plan` says replaces what
// stands here.
inline step::Experiment Experiment(const std::string& encoders, const std::string& plan = "",
                                   const std::string& more = "") {
  return step::testing::Parse(R"(name: "small" llm: "examples/models/gpt-2b.textproto"
    hardware { profile: "h100-80gb" gpus: 32 }
    batch { global_batch: 16 micro_batch: 1 sequence_length: 1024 }
    plan { strategy: OPTIMUS data_parallel: 2 pipeline_parallel: 4 tensor_parallel: 4
           schedule: ONE_F_ONE_B layout: EQUAL_LAYERS recompute: RECOMPUTE_FULL )" +
                              plan + "}\n" + encoders + more);
}

inline std::string Plan(int pipeline_parallel, int tensor_parallel, const std::string& more = "") {
  return "encoder_plans { pipeline_parallel: " + std::to_string(pipeline_parallel) +
         " tensor_parallel: " + std::to_string(tensor_parallel) + " " + more + "} ";
}

}  // namespace optimus::colocate::testing
