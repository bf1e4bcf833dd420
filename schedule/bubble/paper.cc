// The paper's Algorithm 2 for all encoders of a problem.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/efficiency.h"
#include "schedule/bubble/paper_encoder.h"
#include "schedule/bubble/scheduler.h"

namespace optimus::bubble {
namespace {

// How many splits a local search tries at most. The cost of one grows with the square of the number
// of micro-batches (each is placed into slots of all others), and so does what a single move can
// gain shrink. 32 micro-batches: 3,906, and some 60 are needed; 512: 15.
std::int64_t MostEvaluations(std::int32_t micro_batches) {
  constexpr std::int64_t kBudget = 4'000'000;
  const std::int64_t n = std::max(micro_batches, 1);
  return std::max<std::int64_t>(kBudget / (n * n), 1);
}

constexpr auto kNotAllowed = std::numeric_limits<std::int64_t>::max();

std::int32_t MicroBatches(const EncoderWork& encoder) {
  return static_cast<std::int32_t>(encoder.micro_batches.size());
}

absl::Status CheckOptions(const Problem& problem, const SearchOptions& options) {
  const std::size_t encoders = problem.encoders.size();
  if (!options.splits.empty() && options.splits.size() != encoders) {
    return absl::InvalidArgumentError(
        absl::StrCat("splits: ", options.splits.size(), " for ", encoders, " encoders"));
  }
  if (!options.most_micro_batches.empty() && options.most_micro_batches.size() != encoders) {
    return absl::InvalidArgumentError(absl::StrCat(
        "most_micro_batches: ", options.most_micro_batches.size(), " for ", encoders, " encoders"));
  }
  for (std::size_t e = 0; e < options.splits.size(); ++e) {
    OPTIMUS_RETURN_IF_ERROR(planner::ValidateSplit(options.splits[e],
                                                   MicroBatches(problem.encoders[e]),
                                                   PipelineCount(problem, problem.encoders[e])));
  }
  return absl::OkStatus();
}

// How many micro-batches one pipeline of this encoder may take. INVALID_ARGUMENT where no split
// fits.
absl::StatusOr<std::int32_t> MostOf(const Problem& problem, const SearchOptions& options,
                                    std::size_t e) {
  if (options.most_micro_batches.empty()) return std::numeric_limits<std::int32_t>::max();
  const std::int32_t most = options.most_micro_batches[e];
  const EncoderWork& encoder = problem.encoders[e];
  const std::int64_t pipelines = PipelineCount(problem, encoder);
  if (most * pipelines >= MicroBatches(encoder)) return most;
  return absl::InvalidArgumentError(
      absl::StrCat("encoders[", e, "]: ", pipelines, " pipelines of at most ", most,
                   " micro-batches cannot take ", MicroBatches(encoder),
                   "; use more pipelines or fewer micro-batches"));
}

absl::StatusOr<planner::Split> ChooseSplit(const Problem& problem, const SearchOptions& options,
                                           std::size_t e, paper::EncoderScheduler& scheduler,
                                           std::int64_t& evaluated) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int32_t most, MostOf(problem, options, e));
  if (!options.splits.empty()) {
    ++evaluated;
    return options.splits[e];
  }
  const auto cost = [&](const planner::Split& split) {
    const bool allowed = *std::max_element(split.begin(), split.end()) <= most;
    return allowed ? scheduler.Cost(split) : kNotAllowed;
  };
  const EncoderWork& encoder = problem.encoders[e];
  const std::int32_t micro_batches = MicroBatches(encoder);
  const std::int32_t pipelines = PipelineCount(problem, encoder);
  const planner::SplitSearch search =
      options.exhaustive
          ? planner::ExhaustiveSearch(micro_batches, pipelines, cost)
          : planner::LocalSearch(micro_batches, pipelines, cost, MostEvaluations(micro_batches));
  evaluated += search.evaluated;
  return search.split;
}

// kNever, then the ends, by encoder stage.
paper::GatherEnds EndsOf(const std::vector<std::vector<Interval>>& gathers) {
  paper::GatherEnds ends;
  for (const std::vector<Interval>& stage : gathers) {
    auto& of_stage = ends.emplace_back(1, paper::kNever);
    for (const Interval& gather : stage) of_stage.push_back(gather.end.value());
  }
  return ends;
}

absl::StatusOr<Result> Schedule(const Problem& problem, const SearchOptions& options, bool moves) {
  Result result;
  paper::Occupation occupation = paper::NothingPlaced(problem, moves);
  const auto gathers = PlaceGathers(problem);
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    paper::EncoderScheduler scheduler(problem, problem.encoders[e], EndsOf(gathers[e]), occupation,
                                      moves);
    OPTIMUS_ASSIGN_OR_RETURN(const planner::Split split,
                             ChooseSplit(problem, options, e, scheduler, result.splits_evaluated));
    result.encoders.push_back(scheduler.Place(split));
  }
  result.delta_f = occupation.shift;
  for (PlacedEncoder& placed : result.encoders) {
    paper::EncoderScheduler::Shift(result.delta_f, placed);
  }
  CompleteStep(problem, result);
  result.fine = EfficiencyOf(problem, result);
  return result;
}

}  // namespace

absl::StatusOr<Result> SchedulePaper(const Problem& problem, const SearchOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckProblem(problem));
  OPTIMUS_RETURN_IF_ERROR(CheckOptions(problem, options));
  OPTIMUS_ASSIGN_OR_RETURN(Result fine, Schedule(problem, options, true));
  SearchOptions same = options;
  same.splits.clear();
  for (const PlacedEncoder& placed : fine.encoders) same.splits.push_back(placed.split);
  OPTIMUS_ASSIGN_OR_RETURN(Result coarse, Schedule(problem, same, false));
  // A forward that moves changes who works on which gradient, so that the backwards can get longer
  // by more than the LLM starts earlier. Then nothing moves.
  Result& better = coarse.latency < fine.latency ? coarse : fine;
  const std::int64_t evaluated = fine.splits_evaluated;
  const Efficiency efficiency = coarse.fine;
  const Picoseconds latency = coarse.latency;
  Result result = std::move(better);
  result.splits_evaluated = evaluated;
  result.coarse = efficiency;
  result.coarse_latency = latency;
  return result;
}

}  // namespace optimus::bubble
