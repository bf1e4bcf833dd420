// Where ops may be: nothing at the same time on one resource, nothing on top of the LLM.

#include <algorithm>
#include <deque>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/verify.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble {
namespace verify {
namespace {

struct Occupied {
  Picoseconds start, end;
  const PlacedWork* at = nullptr;
  std::size_t op = 0;
};

// `ops`: all of one resource of one lane. An op without length inside another one counts as well:
// streams would run it behind the other.
absl::Status CheckDisjoint(std::vector<Occupied>& ops, std::size_t lane) {
  std::stable_sort(ops.begin(), ops.end(), [](const Occupied& a, const Occupied& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  for (std::size_t i = 1; i < ops.size(); ++i) {
    const Occupied& before = ops[i - 1];
    OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(before.end, ops[i].start, [&] {
      return absl::StrCat(Describe(*ops[i].at, ops[i].op), ": overlaps on lane ", lane, " with ",
                          Describe(*before.at, before.op));
    }));
  }
  return absl::OkStatus();
}

// The times at which a resource of a stage is free of the LLM, in order: before its first start, in
// its idle slots, after its last end; what touches is one.
std::vector<Interval> FreeOfLlm(const LlmStage& stage, Resource resource, Picoseconds shift) {
  constexpr Picoseconds kEver(std::numeric_limits<std::int64_t>::max());
  std::vector<Interval> free = {{-kEver, stage.first_start + shift}};
  const auto append = [&free](Interval slot) {
    if (slot.start <= free.back().end) {
      free.back().end = std::max(free.back().end, slot.end);
    } else {
      free.push_back(slot);
    }
  };
  for (const Interval& slot :
       resource == Resource::kCompute ? stage.compute_idle : stage.link_idle) {
    append({slot.start + shift, slot.end + shift});
  }
  append({stage.last_end + shift, kEver});
  return free;
}

bool Contains(const std::vector<Interval>& free, Interval op) {
  const auto behind =
      std::upper_bound(free.begin(), free.end(), op.start,
                       [](Picoseconds time, const Interval& slot) { return time < slot.start; });
  return behind != free.begin() && op.end <= std::prev(behind)->end;
}

}  // namespace

absl::Status CheckLanes(const Problem& problem, const Result& result) {
  const std::size_t lanes = problem.llm.stages.size() * static_cast<std::size_t>(problem.lanes);
  std::vector<std::vector<Occupied>> kernels(lanes);
  std::vector<std::vector<Occupied>> collectives(lanes);
  std::deque<PlacedWork> works;  // deque: pointers stay valid
  OPTIMUS_RETURN_IF_ERROR(ForEach(problem, result, [&](const PlacedWork& at) {
    works.push_back(at);
    for (std::int32_t l = 0; l < at.place.lane_count; ++l) {
      const std::int32_t lane = at.place.stage * problem.lanes + at.place.first_lane + l;
      for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
        const bool kernel = at.work->ops[op].resource == Resource::kCompute;
        (kernel ? kernels : collectives)[lane].push_back(
            {at.start(op), at.end(op), &works.back(), op});
      }
    }
    return absl::OkStatus();
  }));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    OPTIMUS_RETURN_IF_ERROR(CheckDisjoint(kernels[lane], lane));
    OPTIMUS_RETURN_IF_ERROR(CheckDisjoint(collectives[lane], lane));
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const Problem& problem, const Result& result) {
  std::vector<std::vector<Interval>> kernels;
  std::vector<std::vector<Interval>> collectives;
  for (const LlmStage& stage : problem.llm.stages) {
    kernels.push_back(FreeOfLlm(stage, Resource::kCompute, result.delta_f));
    collectives.push_back(FreeOfLlm(stage, Resource::kLink, result.delta_f));
  }
  return ForEach(problem, result, [&](const PlacedWork& at) -> absl::Status {
    for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
      const bool kernel = at.work->ops[op].resource == Resource::kCompute;
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(Picoseconds(0), at.start(op), [&] {
        return Describe(at, op) + ": before the step begins";
      }));
      if (Contains((kernel ? kernels : collectives)[at.place.stage], {at.start(op), at.end(op)})) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(at, op), ": runs from ", at.start(op).value(), " to ", at.end(op).value(),
          " ps, where the LLM has a ", kernel ? "kernel" : "tensor-parallel collective"));
    }
    return absl::OkStatus();
  });
}

}  // namespace verify

namespace {

// On each resource in order of the list.
absl::Status CheckKernelsInOrder(const verify::PlacedWork& at) {
  Picoseconds compute;
  Picoseconds link;
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    Picoseconds& free = at.work->ops[op].resource == Resource::kCompute ? compute : link;
    OPTIMUS_RETURN_IF_ERROR(verify::MustNotBeAfter(free, at.start(op), [&] {
      return verify::Describe(at, op) + ": starts before an earlier op of its resource ends";
    }));
    free = at.end(op);
  }
  return absl::OkStatus();
}

// Interior: wholly between the LLM's first start and last end. Coarse: wholly outside, on the side
// of its direction.
absl::Status CheckInterior(const Problem& problem, const Result& result,
                           const verify::PlacedWork& at) {
  const LlmStage& stage = problem.llm.stages[at.place.stage];
  const Picoseconds first = stage.first_start + result.delta_f;
  const Picoseconds last = stage.last_end + result.delta_f;
  for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
    const bool between = at.start(op) >= first && at.end(op) <= last;
    const bool outside = at.forward ? at.end(op) <= first : at.start(op) >= last;
    if (at.placed->interior ? between : outside) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(verify::Describe(at, op), ": is marked as ",
                     at.placed->interior ? "interior, and is not" : "coarse, and is not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyPaperRules(const Problem& problem, const Result& result) {
  OPTIMUS_RETURN_IF_ERROR(
      verify::ForEach(problem, result, [&](const verify::PlacedWork& at) -> absl::Status {
        OPTIMUS_RETURN_IF_ERROR(CheckKernelsInOrder(at));
        return CheckInterior(problem, result, at);
      }));
  return verify::MustNotBeAfter(result.latency, result.coarse_latency,
                                [] { return std::string("latency, above the coarse one"); });
}

}  // namespace optimus::bubble
