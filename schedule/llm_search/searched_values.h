#pragma once
// Which values of each size a search goes through: what "no other of these combinations" refers to.

#include <cstdint>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "schedule/llm_search/candidate.h"

namespace optimus::llm_search {

// Of the candidates of one strategy. Not every combination of them is a candidate: V depends on PP,
// the micro-batch on DP.
struct SearchedValues {
  step::Plan::Strategy strategy = step::Plan::OPTIMUS;
  step::Plan::Layout layout = step::Plan::EQUAL_LAYERS;  // that Apply gives them all
  std::set<std::int32_t> data_parallel, pipeline_parallel, tensor_parallel, model_chunks,
      micro_batch;
  std::set<step::Plan::Recompute> recompute;
  std::int64_t combinations = 0;
};

// By strategy, in the order of the candidates. `base`: as Apply.
std::vector<SearchedValues> ValuesOf(absl::Span<const Candidate> candidates,
                                     const step::Experiment& base);

}  // namespace optimus::llm_search
