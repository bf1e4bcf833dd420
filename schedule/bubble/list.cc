// ScheduleList: see list_engine.h for how ops are placed, list_assign.h for where micro-batches go.
//
//   1. every micro-batch gets an encoder pipeline (the same in both directions);
//   2. forward, in mirrored time from the deadlines: as late as possible, which gives the shift of
//      the LLM; then moved early in the same order, which leaves late slots to the backward pass;
//   3. backward from the releases, into what is left.
// Encoders go one after the other through each of these.

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/efficiency.h"
#include "schedule/bubble/list_encoder.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/sync.h"

namespace optimus::bubble {
namespace {

class Lister {
 public:
  Lister(const Problem& problem, const SearchOptions& options)
      : problem_(problem), options_(options), shift_(LeastShift(problem).value()) {
    for (const LlmStage& stage : problem.llm.stages) {
      lanes_.insert(lanes_.end(), static_cast<std::size_t>(problem.lanes), AllSlots(stage));
    }
    const auto gathers = PlaceGathers(problem);
    encoders_.reserve(problem.encoders.size());
    for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
      encoders_.emplace_back(problem, problem.encoders[e], gathers[e]);
    }
  }

  Result Run() {
    PlaceForward();
    PlaceBackward();
    Result result;
    result.delta_f = Picoseconds(shift_);
    for (const ListEncoder& encoder : encoders_) {
      encoder.Fill(shift_, result.encoders.emplace_back());
      result.splits_evaluated += encoder.evaluated();
    }
    CompleteStep(problem_, result);
    result.fine = EfficiencyOf(problem_, result);
    result.coarse = result.fine;
    result.coarse_latency = result.latency;
    return result;
  }

 private:
  void PlaceForward() {
    const std::vector<Picoseconds> card_free = LlmReductionEnds(problem_);
    Lanes free = lanes_;
    for (std::size_t e = 0; e < encoders_.size(); ++e) {
      const planner::Split split =
          e < options_.splits.size() ? options_.splits[e] : planner::Split();
      const std::int32_t most =
          e < options_.most_micro_batches.size() ? options_.most_micro_batches[e] : 0;
      shift_ = std::max(shift_, encoders_[e].PlaceForward(free, split, most, shift_, card_free));
      if (e + 1 < encoders_.size()) encoders_[e].Occupy(Direction::kForward, free);
    }
    for (std::size_t e = 0; e < encoders_.size(); ++e) {
      encoders_[e].MoveForwardEarly(WithoutForward(e), shift_);
    }
    lanes_ = WithoutForward(encoders_.size());
  }

  // What the forward passes of all encoders but `e` leave.
  Lanes WithoutForward(std::size_t e) const {
    Lanes free = lanes_;
    for (std::size_t other = 0; other < encoders_.size(); ++other) {
      if (other != e) encoders_[other].Occupy(Direction::kForward, free);
    }
    return free;
  }

  void PlaceBackward() {
    std::vector<Picoseconds> card_free = LlmReductionEnds(problem_);
    for (std::size_t e = 0; e < encoders_.size(); ++e) {
      encoders_[e].PlaceBackward(lanes_, card_free);
      if (e + 1 < encoders_.size()) encoders_[e].Occupy(Direction::kBackward, lanes_);
    }
  }

  const Problem& problem_;
  const SearchOptions& options_;
  Lanes lanes_;
  std::vector<ListEncoder> encoders_;
  Ps shift_ = 0;
};

absl::Status CheckSplit(std::size_t e, const planner::Split& split, std::size_t pipelines,
                        std::size_t micro_batches) {
  std::int64_t sum = 0;
  for (const std::int32_t part : split) {
    if (part < 0) return absl::InvalidArgumentError(absl::StrCat("splits[", e, "]: negative part"));
    sum += part;
  }
  if (split.size() == pipelines && sum == static_cast<std::int64_t>(micro_batches)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("splits[", e, "]: ", split.size(), " parts with ",
                                                 sum, " micro-batches in all; the encoder has ",
                                                 pipelines, " pipelines and ", micro_batches,
                                                 " micro-batches with input"));
}

absl::Status CheckOptions(const Problem& problem, const SearchOptions& options) {
  if (!options.splits.empty() && options.splits.size() != problem.encoders.size()) {
    return absl::InvalidArgumentError(absl::StrCat("splits: for ", options.splits.size(),
                                                   " encoders of ", problem.encoders.size()));
  }
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    const EncoderWork& encoder = problem.encoders[e];
    const auto pipelines = static_cast<std::size_t>(PipelineCount(problem, encoder));
    const std::size_t count = encoder.micro_batches.size();
    if (!options.splits.empty()) {
      OPTIMUS_RETURN_IF_ERROR(CheckSplit(e, options.splits[e], pipelines, count));
    }
    if (options.most_micro_batches.empty()) continue;
    const std::int32_t most = options.most_micro_batches[e];
    if (most < 0 || pipelines * static_cast<std::size_t>(most) < count) {
      return absl::InvalidArgumentError(absl::StrCat("most_micro_batches[", e, "]: ", pipelines,
                                                     " pipelines with ", most, " each do not hold ",
                                                     count, " micro-batches"));
    }
  }
  return absl::OkStatus();
}

bool Fits(const planner::Split& split, const SearchOptions& options, std::size_t e) {
  if (options.most_micro_batches.empty()) return true;
  return *std::max_element(split.begin(), split.end()) <= options.most_micro_batches[e];
}

// From the result of the local search: all splits of one encoder after the other.
Result BestOfAllSplits(const Problem& problem, const SearchOptions& options, Result best) {
  SearchOptions given = options;
  for (const PlacedEncoder& encoder : best.encoders) given.splits.push_back(encoder.split);
  std::int64_t evaluated = best.splits_evaluated;
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    const EncoderWork& encoder = problem.encoders[e];
    planner::ForEachSplit(static_cast<std::int32_t>(encoder.micro_batches.size()),
                          PipelineCount(problem, encoder), [&](const planner::Split& split) {
                            if (!Fits(split, options, e)) return true;
                            given.splits[e] = split;
                            Result result = Lister(problem, given).Run();
                            evaluated += result.splits_evaluated;
                            if (result.latency < best.latency) best = std::move(result);
                            return true;
                          });
    given.splits[e] = best.encoders[e].split;
  }
  best.splits_evaluated = evaluated;
  return best;
}

}  // namespace

absl::StatusOr<Result> ScheduleList(const Problem& problem, const SearchOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckProblem(problem));
  OPTIMUS_RETURN_IF_ERROR(CheckOptions(problem, options));
  Result list = Lister(problem, options).Run();
  if (options.exhaustive && options.splits.empty()) {
    list = BestOfAllSplits(problem, options, std::move(list));
  }
  if (!options.paper_fallback) return list;
  // A greedy list can lose where slots are few and long. What the paper does is feasible here as
  // well, so the list is never slower than it.
  OPTIMUS_ASSIGN_OR_RETURN(Result paper, SchedulePaper(problem, options));
  paper.splits_evaluated += list.splits_evaluated;
  if (paper.latency < list.latency) return paper;
  list.coarse = paper.coarse;
  list.coarse_latency = paper.coarse_latency;
  list.splits_evaluated = paper.splits_evaluated;
  return list;
}

}  // namespace optimus::bubble
