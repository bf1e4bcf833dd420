// Data-parallel communication of the encoders, and the sums of the result.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble::verify {
namespace {

struct OnCard {
  Interval time;
  std::string name;
};

// Everything that encoders put on the network cards of LLM stage s in one direction, and each
// encoder's own buckets in their order.
std::vector<OnCard> OnCardsOf(const Problem& problem, const Result& result, std::size_t s,
                              bool gathers) {
  std::vector<OnCard> all;
  for (std::size_t k = 0; k < problem.encoders.size(); ++k) {
    const auto stages = static_cast<std::size_t>(problem.encoders[k].plan.pipeline_parallel);
    const auto& by_stage = gathers ? result.encoders[k].gathers : result.encoders[k].reductions;
    if (by_stage.empty()) continue;
    for (std::size_t b = 0; b < by_stage[s % stages].size(); ++b) {
      all.push_back({by_stage[s % stages][b],
                     absl::StrCat("encoder ", k, gathers ? " gather " : " reduction ", b,
                                  " on LLM stage ", s)});
    }
  }
  return all;
}

absl::Status CheckSerial(std::vector<OnCard> all) {
  std::stable_sort(all.begin(), all.end(), [](const OnCard& a, const OnCard& b) {
    return std::pair(a.time.start, a.time.end) < std::pair(b.time.start, b.time.end);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(all[i - 1].time.end, all[i].time.start, [&] {
      return all[i].name + ": overlaps with " + all[i - 1].name;
    }));
  }
  return absl::OkStatus();
}

absl::Status CheckBucketOrder(const Problem& problem, const Result& result) {
  for (std::size_t k = 0; k < problem.encoders.size(); ++k) {
    for (const auto* by_stage : {&result.encoders[k].gathers, &result.encoders[k].reductions}) {
      for (std::size_t p = 0; p < by_stage->size(); ++p) {
        for (std::size_t b = 1; b < (*by_stage)[p].size(); ++b) {
          OPTIMUS_RETURN_IF_ERROR(
              MustNotBeAfter((*by_stage)[p][b - 1].end, (*by_stage)[p][b].start, [&] {
                return absl::StrCat("encoder ", k, " stage ", p, " data-parallel bucket ", b,
                                    ": starts before the one in front of it ends");
              }));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCards(const Problem& problem, const Result& result) {
  for (std::size_t s = 0; s < problem.llm.stages.size(); ++s) {
    const std::vector<OnCard> gathers = OnCardsOf(problem, result, s, /*gathers=*/true);
    for (const OnCard& gather : gathers) {
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(Picoseconds(0), gather.time.start, [&] {
        return gather.name + ": before the step begins";
      }));
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(gather.time.end, result.delta_f, [&] {
        return gather.name + ": ends after the LLM's own gather starts";
      }));
    }
    OPTIMUS_RETURN_IF_ERROR(CheckSerial(gathers));
    const std::vector<OnCard> reductions = OnCardsOf(problem, result, s, /*gathers=*/false);
    for (const OnCard& reduction : reductions) {
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(
          problem.llm.stages[s].gradients_reduced + result.delta_f, reduction.time.start,
          [&] { return reduction.name + ": starts before the LLM's own have ended"; }));
    }
    OPTIMUS_RETURN_IF_ERROR(CheckSerial(reductions));
  }
  return absl::OkStatus();
}

// A forward waits for the parameters of its layer.
absl::Status CheckGathered(const PlacedEncoder& placed, const PlacedWork& at) {
  const auto buckets = BucketsOf(at.encoder_work->sync.gathers, at.stage);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
      if (!Holds(buckets[b], at.work->ops[op].layer)) continue;
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(placed.gathers[at.stage][b].end, at.start(op), [&] {
        return absl::StrCat(Describe(at, op), ": starts before gather ", b, " of its layer ends");
      }));
    }
  }
  return absl::OkStatus();
}

// A reduction waits for the last backward of its layers, of every micro-batch on every pipeline.
absl::Status CheckReduced(const PlacedEncoder& placed, const PlacedWork& at) {
  const auto buckets = BucketsOf(at.encoder_work->sync.reductions, at.stage);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t op = 0; op < at.work->ops.size(); ++op) {
      if (!Holds(buckets[b], at.work->ops[op].layer)) continue;
      OPTIMUS_RETURN_IF_ERROR(MustNotBeAfter(at.end(op), placed.reductions[at.stage][b].start, [&] {
        return absl::StrCat(Describe(at, op), ": ends after reduction ", b, " of its layer starts");
      }));
    }
  }
  return absl::OkStatus();
}

// The optimizer runs when the gradients of LLM and encoders are reduced everywhere, and nothing is
// left to do.
Picoseconds EndOfStep(const Problem& problem, const Result& result) {
  Picoseconds last;
  for (const LlmStage& stage : problem.llm.stages) {
    last = std::max(last, stage.gradients_reduced + result.delta_f);
  }
  for (const PlacedEncoder& encoder : result.encoders) {
    for (const std::vector<Interval>& stage : encoder.reductions) {
      for (const Interval& reduction : stage) last = std::max(last, reduction.end);
    }
  }
  ForEach(problem, result, [&](const PlacedWork& at) {
    for (std::size_t op = 0; op < at.work->ops.size(); ++op) last = std::max(last, at.end(op));
    return absl::OkStatus();
  }).IgnoreError();
  return last + problem.llm.after_reduction;
}

absl::Status CheckShare(absl::string_view name, double share, double least) {
  if (std::isfinite(share) && share >= least && share <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " efficiency: ", share, " is not a share of at most 1"));
}

absl::Status CheckEfficiencies(const Result& result) {
  OPTIMUS_RETURN_IF_ERROR(CheckShare("coarse work", result.coarse.work, 0));
  OPTIMUS_RETURN_IF_ERROR(CheckShare("fine work", result.fine.work, 0));
  constexpr double kAnyLoss = -1e300;
  OPTIMUS_RETURN_IF_ERROR(CheckShare("coarse time", result.coarse.time, kAnyLoss));
  return CheckShare("fine time", result.fine.time, kAnyLoss);
}

}  // namespace

absl::Status CheckSync(const Problem& problem, const Result& result) {
  OPTIMUS_RETURN_IF_ERROR(CheckBucketOrder(problem, result));
  OPTIMUS_RETURN_IF_ERROR(CheckCards(problem, result));
  return ForEach(problem, result, [&](const PlacedWork& at) {
    const PlacedEncoder& placed = result.encoders[at.encoder];
    return at.forward ? CheckGathered(placed, at) : CheckReduced(placed, at);
  });
}

absl::Status CheckTotals(const Problem& problem, const Result& result) {
  const Picoseconds alone = problem.llm.step;
  const auto named = [](const char* name) { return [name] { return std::string(name); }; };
  OPTIMUS_RETURN_IF_ERROR(
      MustNotBeAfter(Picoseconds(0), result.delta_f, named("delta_f, which is negative")));
  OPTIMUS_RETURN_IF_ERROR(
      MustNotBeAfter(Picoseconds(0), result.delta_b, named("delta_b, which is negative")));
  const Picoseconds end = EndOfStep(problem, result);
  if (result.latency != end || result.latency != alone + result.delta_f + result.delta_b) {
    return absl::InvalidArgumentError(
        absl::StrCat("latency: ", result.latency.value(), " ps; the step ends at ", end.value(),
                     " ps, the LLM alone takes ", alone.value(), " ps, delta_f ",
                     result.delta_f.value(), " ps, delta_b ", result.delta_b.value(), " ps"));
  }
  const Bounds bounds = LowerBounds(problem);
  OPTIMUS_RETURN_IF_ERROR(
      MustNotBeAfter(bounds.work, result.latency, named("work bound, above the latency")));
  OPTIMUS_RETURN_IF_ERROR(
      MustNotBeAfter(bounds.fluid, result.latency, named("fluid bound, above the latency")));
  OPTIMUS_RETURN_IF_ERROR(
      MustNotBeAfter(alone, result.latency, named("LLM alone, above the latency")));
  return CheckEfficiencies(result);
}

}  // namespace optimus::bubble::verify
