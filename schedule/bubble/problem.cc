#include "schedule/bubble/problem.h"

namespace optimus::bubble {

std::int32_t PipelineCount(const Problem& problem, const EncoderWork& encoder) {
  const auto stages = static_cast<std::int32_t>(problem.llm.stages.size());
  return stages / encoder.plan.pipeline_parallel *
         (problem.tensor_parallel / encoder.plan.tensor_parallel);
}

PipelinePlace PlaceOf(const Problem& problem, const EncoderWork& encoder, std::int32_t pipeline,
                      std::int32_t encoder_stage) {
  const std::int32_t subgroups = problem.tensor_parallel / encoder.plan.tensor_parallel;
  const std::int32_t lanes_each = problem.lanes / subgroups;
  const std::int32_t block = pipeline / subgroups;
  return {block * encoder.plan.pipeline_parallel + encoder_stage, pipeline % subgroups * lanes_each,
          lanes_each};
}

}  // namespace optimus::bubble
