#include "schedule/llm_search/encoder_floor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "schedule/llm_search/slot_path.h"

namespace optimus::llm_search {
namespace {

// Longest path over dependencies and the order of a resource within a chain, by operation.
std::vector<Picoseconds> PathEnds(const bubble::StageWork& work) {
  std::vector<Picoseconds> ends(work.ops.size());
  std::map<std::pair<std::int32_t, bubble::Resource>, Picoseconds> free;
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const bubble::WorkOp& op = work.ops[i];
    const std::int32_t chain = work.chain.empty() ? 0 : work.chain[i];
    Picoseconds& chain_free = free[{chain, op.resource}];
    Picoseconds start = chain_free;
    for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
      start = std::max(start, ends[work.dependencies[op.first_dependency + d]]);
    }
    ends[i] = chain_free = start + op.duration;
  }
  return ends;
}

// What a stage takes of a micro-batch.
struct StageFloor {
  Picoseconds part;   // until the first part of the output is there
  Picoseconds whole;  // until nothing is left to do
};

StageFloor FloorOfStage(const bubble::StageWork& work) {
  const std::vector<Picoseconds> ends = PathEnds(work);
  StageFloor floor;
  for (const Picoseconds end : ends) floor.whole = std::max(floor.whole, end);
  floor.whole = std::max({floor.whole, work.compute, work.link});
  if (work.outputs.empty()) return floor;
  floor.part = ends[work.outputs.front()];
  for (const std::uint32_t output : work.outputs) floor.part = std::min(floor.part, ends[output]);
  return floor;
}

std::vector<const bubble::StageWork*> Pointers(const std::vector<bubble::StageWork>& works) {
  std::vector<const bubble::StageWork*> pointers;
  pointers.reserve(works.size());
  for (const bubble::StageWork& work : works) pointers.push_back(&work);
  return pointers;
}

}  // namespace

Picoseconds LatencyFloor(absl::Span<const bubble::StageWork* const> stages) {
  std::vector<StageFloor> floors;
  floors.reserve(stages.size());
  for (const bubble::StageWork* stage : stages) floors.push_back(FloorOfStage(*stage));
  Picoseconds all_parts, latency;
  for (const StageFloor& floor : floors) all_parts += floor.part;
  for (const StageFloor& floor : floors) {
    latency = std::max(latency, all_parts - floor.part + floor.whole);
  }
  return latency;
}

absl::StatusOr<EncoderFloor> FloorOf(const colocate::EncoderContext& context, int encoder,
                                     const planner::EncoderPlan& plan, const ir::Schedule& tables,
                                     double kernel_factor) {
  ir::Schedule own;
  own.world = tables.world;
  own.gpus_per_node = tables.gpus_per_node;
  own.lanes = own.world.tp / plan.tensor_parallel;
  OPTIMUS_ASSIGN_OR_RETURN(const bubble::EncoderWork work,
                           colocate::MakeEncoderWork(context, encoder, plan, own));
  EncoderFloor floor;
  floor.forward = Scaled(LatencyFloor(Pointers(work.forward)), kernel_factor);
  std::vector<const bubble::StageWork*> backward = Pointers(work.backward);
  std::reverse(backward.begin(), backward.end());
  floor.backward = Scaled(LatencyFloor(backward), kernel_factor);
  Picoseconds compute;
  for (const auto* direction : {&work.forward, &work.backward}) {
    for (const bubble::StageWork& stage : *direction) compute += stage.compute;
  }
  floor.gpu_time = Scaled(Picoseconds::rep{plan.tensor_parallel} * compute, kernel_factor);
  return floor;
}

EncoderFloor Least(absl::Span<const EncoderFloor> floors) {
  if (floors.empty()) return {};
  EncoderFloor least = floors.front();
  for (const EncoderFloor& floor : floors) {
    least.forward = std::min(least.forward, floor.forward);
    least.backward = std::min(least.backward, floor.backward);
    least.gpu_time = std::min(least.gpu_time, floor.gpu_time);
  }
  return least;
}

}  // namespace optimus::llm_search
