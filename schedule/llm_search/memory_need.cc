#include "schedule/llm_search/memory_need.h"

#include <algorithm>

namespace optimus::llm_search {
namespace {

Bytes With(const std::vector<step::StageMemory>& llm, const ir::Parallelism& world,
           const planner::EncoderOnGpus& encoder) {
  const planner::Split split =
      planner::BalancedSplit(encoder.micro_batches, planner::PipelinesOf(encoder.plan, world));
  const auto stages = planner::MemoryWithEncoders(llm, world.tp, absl::MakeConstSpan(&encoder, 1),
                                                  absl::MakeConstSpan(&split, 1));
  return planner::Fullest(stages).total();
}

// With the order of the LLM's pipeline that leaves most.
Bytes LeastWith(absl::Span<const std::vector<step::StageMemory>> llm_stages,
                const ir::Parallelism& world, const planner::EncoderOnGpus& encoder) {
  Bytes least = With(llm_stages.front(), world, encoder);
  for (const auto& llm : llm_stages) least = std::min(least, With(llm, world, encoder));
  return least;
}

}  // namespace

MemoryNeed NeedOf(absl::Span<const std::vector<step::StageMemory>> llm_stages,
                  const ir::Parallelism& world, absl::Span<const EncoderPlans> encoders,
                  Bytes capacity) {
  MemoryNeed need;
  need.least = planner::Fullest(llm_stages.front()).total();
  for (const auto& llm : llm_stages) {
    need.least = std::min(need.least, planner::Fullest(llm).total());
  }
  need.fits = need.least <= capacity;
  for (const EncoderPlans& plans : encoders) {
    std::vector<planner::EncoderPlan>& fitting = need.plans.emplace_back();
    Bytes least;
    for (const planner::EncoderOnGpus& encoder : plans) {
      const Bytes with = LeastWith(llm_stages, world, encoder);
      if (least == Bytes(0) || with < least) least = with;
      if (with <= capacity) fitting.push_back(encoder.plan);
    }
    need.least = std::max(need.least, least);
    need.fits = need.fits && !fitting.empty();
  }
  return need;
}

}  // namespace optimus::llm_search
