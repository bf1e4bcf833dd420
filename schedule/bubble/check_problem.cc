#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/ir/schedule.h"

namespace optimus::bubble {
namespace {

// Sums of all durations stay below this, so that no time overflows.
constexpr double kLargestTime = 2e18;  // 23 days

template <class... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool AnyNegative(const std::vector<Picoseconds>& times) {
  return std::any_of(times.begin(), times.end(), [](Picoseconds t) { return t < Picoseconds(0); });
}

absl::Status CheckSlots(absl::string_view what, const std::vector<Interval>& slots,
                        const LlmStage& stage) {
  Picoseconds end = stage.first_start;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool touches = i > 0 && slots[i].start == end;
    if (slots[i].start < end || touches || slots[i].end <= slots[i].start ||
        slots[i].end > stage.last_end) {
      return Invalid(what, "[", i, "]: idle slots must be sorted, apart, not empty and between ",
                     "first_start and last_end");
    }
    end = slots[i].end;
  }
  return absl::OkStatus();
}

absl::Status CheckStage(std::size_t index, const LlmStage& stage) {
  const std::string name = absl::StrCat("llm.stages[", index, "]");
  if (stage.first_start < Picoseconds(0) || stage.last_end < stage.first_start ||
      stage.gradients_reduced < stage.last_end || stage.compute < Picoseconds(0)) {
    return Invalid(name, ": 0 <= first_start <= last_end <= gradients_reduced does not hold");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckSlots(name + ".compute_idle", stage.compute_idle, stage));
  return CheckSlots(name + ".link_idle", stage.link_idle, stage);
}

absl::Status CheckLlm(const LlmTimeline& llm) {
  if (llm.stages.empty()) return Invalid("llm.stages: there is no pipeline stage");
  Picoseconds reduced;
  for (std::size_t d = 0; d < llm.stages.size(); ++d) {
    OPTIMUS_RETURN_IF_ERROR(CheckStage(d, llm.stages[d]));
    reduced = std::max(reduced, llm.stages[d].gradients_reduced);
  }
  if (llm.forward_needed.size() != llm.backward_made.size()) {
    return Invalid("llm: ", llm.forward_needed.size(), " micro-batches in forward_needed, ",
                   llm.backward_made.size(), " in backward_made");
  }
  if (!std::is_sorted(llm.forward_needed.begin(), llm.forward_needed.end()) ||
      AnyNegative(llm.forward_needed)) {
    return Invalid("llm.forward_needed: times must not be negative and never fall");
  }
  for (std::size_t i = 0; i < llm.backward_made.size(); ++i) {
    if (llm.backward_made[i] < llm.forward_needed[i]) {
      return Invalid("llm.backward_made[", i, "]: before forward_needed");
    }
  }
  if (llm.after_reduction < Picoseconds(0) || llm.step != reduced + llm.after_reduction) {
    return Invalid("llm.step: is not the last gradients_reduced plus after_reduction");
  }
  return absl::OkStatus();
}

absl::Status CheckOp(const std::string& name, const StageWork& work, std::size_t index) {
  const WorkOp& op = work.ops[index];
  if (op.duration < Picoseconds(0)) return Invalid(name, ".ops[", index, "]: negative duration");
  if (op.input_part < -1 || op.input_part >= work.input_parts) {
    return Invalid(name, ".ops[", index, "]: input part ", op.input_part, " of ", work.input_parts);
  }
  const std::size_t end = std::size_t{op.first_dependency} + op.dependency_count;
  if (end > work.dependencies.size()) {
    return Invalid(name, ".ops[", index, "]: dependencies end at ", end, " of ",
                   work.dependencies.size());
  }
  for (std::size_t d = op.first_dependency; d < end; ++d) {
    if (work.dependencies[d] >= index) {
      return Invalid(name, ".ops[", index, "]: depends on op ", work.dependencies[d],
                     ", which is not before it");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWork(const std::string& name, const StageWork& work) {
  if (work.chain.size() != work.ops.size()) {
    return Invalid(name, ".chain: ", work.chain.size(), " entries for ", work.ops.size(), " ops");
  }
  Picoseconds compute;
  Picoseconds link;
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(CheckOp(name, work, i));
    (work.ops[i].resource == Resource::kCompute ? compute : link) += work.ops[i].duration;
  }
  if (compute != work.compute || link != work.link) {
    return Invalid(name, ": compute and link are not the sums over its ops");
  }
  for (const std::uint32_t op : work.outputs) {
    if (op >= work.ops.size()) return Invalid(name, ".outputs: op ", op, " does not exist");
  }
  return absl::OkStatus();
}

// Neighbours agree on the parts of what passes between them; a stage without ops passes all on.
absl::Status CheckParts(const std::string& name, const StageWork& from, const StageWork& to) {
  if (from.ops.empty() || to.ops.empty()) return absl::OkStatus();
  if (static_cast<std::size_t>(to.input_parts) == from.outputs.size()) return absl::OkStatus();
  return Invalid(name, ": ", from.outputs.size(), " parts go out, the next stage takes ",
                 to.input_parts);
}

absl::Status CheckWorks(const std::string& name, const EncoderWork& encoder) {
  const auto stages = static_cast<std::size_t>(encoder.plan.pipeline_parallel);
  if (encoder.forward.size() != stages || encoder.backward.size() != stages) {
    return Invalid(name, ": forward and backward must have an entry for each of its ", stages,
                   " stages");
  }
  for (std::size_t p = 0; p < stages; ++p) {
    const std::string at = absl::StrCat("[", p, "]");
    OPTIMUS_RETURN_IF_ERROR(CheckWork(absl::StrCat(name, ".forward", at), encoder.forward[p]));
    OPTIMUS_RETURN_IF_ERROR(CheckWork(absl::StrCat(name, ".backward", at), encoder.backward[p]));
  }
  for (std::size_t p = 0; p + 1 < stages; ++p) {
    const std::string at = absl::StrCat("[", p, "]");
    OPTIMUS_RETURN_IF_ERROR(
        CheckParts(absl::StrCat(name, ".forward", at), encoder.forward[p], encoder.forward[p + 1]));
    OPTIMUS_RETURN_IF_ERROR(CheckParts(absl::StrCat(name, ".backward[", p + 1, "]"),
                                       encoder.backward[p + 1], encoder.backward[p]));
  }
  return absl::OkStatus();
}

absl::Status CheckSync(const std::string& name,
                       const std::vector<std::vector<EncoderSync::Bucket>>& by_stage,
                       std::size_t stages) {
  if (!by_stage.empty() && by_stage.size() != stages) {
    return Invalid(name, ": ", by_stage.size(), " entries for ", stages, " encoder stages");
  }
  for (const auto& buckets : by_stage) {
    for (const EncoderSync::Bucket& bucket : buckets) {
      if (bucket.duration < Picoseconds(0)) return Invalid(name, ": negative duration");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMicroBatches(const std::string& name, const EncoderWork& encoder,
                               std::size_t count) {
  std::int64_t last = -1;
  for (const std::int32_t i : encoder.micro_batches) {
    if (i <= last || static_cast<std::size_t>(i) >= count) {
      return Invalid(name, ".micro_batches: must ascend and be below ", count);
    }
    last = i;
  }
  return absl::OkStatus();
}

absl::Status CheckHops(const std::string& name, const EncoderWork& encoder, std::size_t hops,
                       std::size_t pipelines) {
  if (encoder.forward_hop.size() != hops || encoder.backward_hop.size() != hops) {
    return Invalid(name, ": forward_hop and backward_hop must have ", hops, " entries");
  }
  if (encoder.to_llm.size() != pipelines || encoder.from_llm.size() != pipelines) {
    return Invalid(name, ": to_llm and from_llm must have an entry for each of its ", pipelines,
                   " pipelines");
  }
  for (const auto* times :
       {&encoder.forward_hop, &encoder.backward_hop, &encoder.to_llm, &encoder.from_llm}) {
    if (AnyNegative(*times)) return Invalid(name, ": a transfer takes negative time");
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const std::string& name, const Problem& problem,
                       const planner::EncoderPlan& plan) {
  const auto stages = static_cast<std::int32_t>(problem.llm.stages.size());
  if (plan.pipeline_parallel < 1 || stages % plan.pipeline_parallel != 0) {
    return Invalid(name, ".plan: pipeline parallelism ", plan.pipeline_parallel,
                   " does not divide the LLM's ", stages);
  }
  if (plan.tensor_parallel < 1 || problem.tensor_parallel % plan.tensor_parallel != 0) {
    return Invalid(name, ".plan: tensor parallelism ", plan.tensor_parallel,
                   " does not divide the LLM's ", problem.tensor_parallel);
  }
  const std::int32_t subgroups = problem.tensor_parallel / plan.tensor_parallel;
  if (problem.lanes % subgroups != 0) {
    return Invalid(name, ".plan: ", subgroups, " pipelines on a stage do not fit on ",
                   problem.lanes, " lanes");
  }
  return absl::OkStatus();
}

// Picoseconds if everything ran one after the other.
double TotalOf(const EncoderWork& encoder) {
  double total = 0;
  for (const auto* works : {&encoder.forward, &encoder.backward}) {
    for (const StageWork& work : *works) {
      total += static_cast<double>(work.compute.value()) + static_cast<double>(work.link.value());
    }
  }
  for (const auto* hops :
       {&encoder.forward_hop, &encoder.backward_hop, &encoder.to_llm, &encoder.from_llm}) {
    for (const Picoseconds hop : *hops) total += static_cast<double>(hop.value());
  }
  total *= static_cast<double>(encoder.micro_batches.size());
  for (const auto* sync : {&encoder.sync.gathers, &encoder.sync.reductions}) {
    for (const auto& buckets : *sync) {
      for (const auto& bucket : buckets) total += static_cast<double>(bucket.duration.value());
    }
  }
  return total;
}

absl::Status CheckEncoder(const std::string& name, const Problem& problem,
                          const EncoderWork& encoder) {
  OPTIMUS_RETURN_IF_ERROR(CheckPlan(name, problem, encoder.plan));
  OPTIMUS_RETURN_IF_ERROR(CheckMicroBatches(name, encoder, problem.llm.forward_needed.size()));
  const auto stages = static_cast<std::size_t>(encoder.plan.pipeline_parallel);
  const std::size_t blocks = problem.llm.stages.size() / stages;
  OPTIMUS_RETURN_IF_ERROR(CheckHops(name, encoder, blocks * (stages - 1),
                                    static_cast<std::size_t>(PipelineCount(problem, encoder))));
  OPTIMUS_RETURN_IF_ERROR(CheckWorks(name, encoder));
  OPTIMUS_RETURN_IF_ERROR(CheckSync(name + ".sync.gathers", encoder.sync.gathers, stages));
  return CheckSync(name + ".sync.reductions", encoder.sync.reductions, stages);
}

}  // namespace

absl::Status CheckProblem(const Problem& problem) {
  if (problem.lanes < 1 || problem.tensor_parallel < 1 ||
      problem.tensor_parallel % problem.lanes != 0) {
    return Invalid("lanes: ", problem.lanes, " do not divide tensor parallelism ",
                   problem.tensor_parallel);
  }
  OPTIMUS_RETURN_IF_ERROR(CheckLlm(problem.llm));
  double total = static_cast<double>(problem.llm.step.value());
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    OPTIMUS_RETURN_IF_ERROR(
        CheckEncoder(absl::StrCat("encoders[", e, "]"), problem, problem.encoders[e]));
    total += TotalOf(problem.encoders[e]);
  }
  if (total > kLargestTime) {
    return Invalid("durations: together ", total / kPicosecondsPerSecond,
                   " s of work, more than times can hold; is a unit wrong?");
  }
  return absl::OkStatus();
}

}  // namespace optimus::bubble
