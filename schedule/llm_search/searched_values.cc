#include "schedule/llm_search/searched_values.h"

namespace optimus::llm_search {

std::vector<SearchedValues> ValuesOf(absl::Span<const Candidate> candidates,
                                     const step::Experiment& base) {
  std::vector<SearchedValues> all;
  for (const Candidate& candidate : candidates) {
    if (all.empty() || all.back().strategy != candidate.strategy) {
      SearchedValues& added = all.emplace_back();
      added.strategy = candidate.strategy;
      added.layout = Apply(base, candidate).plan().layout();
    }
    SearchedValues& values = all.back();
    values.data_parallel.insert(candidate.data_parallel);
    values.pipeline_parallel.insert(candidate.pipeline_parallel);
    values.tensor_parallel.insert(candidate.tensor_parallel);
    values.model_chunks.insert(candidate.model_chunks);
    values.micro_batch.insert(candidate.micro_batch);
    values.recompute.insert(candidate.recompute);
    ++values.combinations;
  }
  return all;
}

}  // namespace optimus::llm_search
