// What must come before what: inside a stage, between stages, between encoder and LLM.

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble::verify {
namespace {

absl::Status CheckChains(const PlacedWork& at) {
  std::map<std::pair<Resource, std::int32_t>, Picoseconds> free;
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    Picoseconds& end = free[{at.work->ops[op].resource, at.work->chain[op]}];
    OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(end, at.start(op), [&] {
      return Describe(at, op) + ": starts before an earlier op of its chain and resource ends";
    }));
    end = at.end(op);
  }
  return absl::OkStatus();
}

absl::Status CheckDependencies(const PlacedWork& at) {
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    const WorkOp& work = at.work->ops[op];
    for (std::uint32_t d = 0; d < work.dependency_count; ++d) {
      const std::uint32_t other = at.work->dependencies[work.first_dependency + d];
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(at.end(other), at.start(op), [&] {
        return absl::StrCat(Describe(at, op), ": starts before op ", other,
                            " ends, which it needs");
      }));
    }
  }
  return absl::OkStatus();
}

// When each part of the input has arrived from the stage before (in the backward direction: the one
// behind). The LLM's gradient arrives whole. Nothing to wait for: the start of the step.
std::vector<Picoseconds> Arrivals(const Problem& problem, const Result& result,
                                  const PlacedWork& at) {
  const EncoderWork& encoder = *at.encoder_work;
  const std::int32_t stages = encoder.plan.pipeline_parallel;
  std::vector<Picoseconds> arrivals(std::max(at.work->input_parts, 1));
  if (at.forward ? at.stage == 0 : at.stage == stages - 1) {
    if (at.forward) return arrivals;
    const Picoseconds gradient = problem.llm.backward_made[at.micro_batch->micro_batch] +
                                 result.delta_f + encoder.from_llm[at.pipeline];
    std::fill(arrivals.begin(), arrivals.end(), gradient);
    return arrivals;
  }
  const std::int32_t from = at.forward ? at.stage - 1 : at.stage + 1;
  const StageWork& work = (at.forward ? encoder.forward : encoder.backward)[from];
  const PlacedStage& placed =
      (at.forward ? at.micro_batch->forward : at.micro_batch->backward)[from];
  const std::int32_t block = PlaceOf(problem, encoder, at.pipeline, 0).stage / stages;
  const std::int32_t hop_index = block * (stages - 1) + std::min(from, at.stage);
  const Picoseconds hop = (at.forward ? encoder.forward_hop : encoder.backward_hop)[hop_index];
  for (std::size_t part = 0; part < std::min(arrivals.size(), work.outputs.size()); ++part) {
    const std::uint32_t op = work.outputs[part];
    arrivals[part] = placed.starts[op] + work.ops[op].duration + hop;
  }
  return arrivals;
}

absl::Status CheckInputs(const Problem& problem, const Result& result, const PlacedWork& at) {
  const std::vector<Picoseconds> arrivals = Arrivals(problem, result, at);
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    const std::int16_t part = at.work->ops[op].input_part;
    if (part < 0) continue;
    OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(arrivals[part], at.start(op), [&] {
      return absl::StrCat(Describe(at, op), ": starts before part ", part,
                          " of its input is there");
    }));
  }
  return absl::OkStatus();
}

Picoseconds LastEnd(const StageWork& work, const PlacedStage& placed) {
  Picoseconds last;
  for (std::size_t op = 0; op < work.ops.size(); ++op) {
    last = std::max(last, placed.starts[op] + work.ops[op].duration);
  }
  return last;
}

absl::Status CheckForwardIsFirst(const PlacedWork& at) {
  if (at.forward) return absl::OkStatus();
  const Picoseconds forward_end =
      LastEnd(at.encoder_work->forward[at.stage], at.micro_batch->forward[at.stage]);
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(forward_end, at.start(op), [&] {
      return Describe(at, op) + ": starts before the stage's forward ends";
    }));
  }
  return absl::OkStatus();
}

absl::Status CheckForwardEnd(const Problem& problem, const Result& result, const PlacedWork& at) {
  Picoseconds end;
  for (const std::uint32_t op : at.work->outputs) end = std::max(end, at.end(op));
  if (end != at.micro_batch->forward_end) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(at), ": forward_end is ", at.micro_batch->forward_end.value(),
                     " ps, its output is complete at ", end.value(), " ps"));
  }
  const Picoseconds needed =
      problem.llm.forward_needed[at.micro_batch->micro_batch] + result.delta_f;
  return MustNotBeAfter(end + at.encoder_work->to_llm[at.pipeline], needed,
                        [&] { return Describe(at) + ": its output reaches the LLM too late"; });
}

absl::Status CheckBackwardStart(const Problem& problem, const Result& result,
                                const PlacedWork& at) {
  if (at.work->ops.empty()) return absl::OkStatus();
  const Picoseconds start = *std::min_element(at.placed->starts.begin(), at.placed->starts.end());
  if (start != at.micro_batch->backward_start) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(at), ": backward_start is ", at.micro_batch->backward_start.value(),
                     " ps, its first op starts at ", start.value(), " ps"));
  }
  const Picoseconds made = problem.llm.backward_made[at.micro_batch->micro_batch] + result.delta_f +
                           at.encoder_work->from_llm[at.pipeline];
  return MustNotBeAfter(
      made, start, [&] { return Describe(at) + ": starts before the LLM's gradient is there"; });
}

}  // namespace

absl::Status CheckOrder(const Problem& problem, const Result& result) {
  return ForEach(problem, result, [&](const PlacedWork& at) {
    OPTIMUS_RETURN_IF_ERROR(CheckChains(at));
    OPTIMUS_RETURN_IF_ERROR(CheckDependencies(at));
    OPTIMUS_RETURN_IF_ERROR(CheckInputs(problem, result, at));
    return CheckForwardIsFirst(at);
  });
}

absl::Status CheckLlmEdges(const Problem& problem, const Result& result) {
  return ForEach(problem, result, [&](const PlacedWork& at) {
    if (at.stage != at.encoder_work->plan.pipeline_parallel - 1) return absl::OkStatus();
    return at.forward ? CheckForwardEnd(problem, result, at)
                      : CheckBackwardStart(problem, result, at);
  });
}

}  // namespace optimus::bubble::verify
