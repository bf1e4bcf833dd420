#include "executor/runtime/run.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "executor/runtime/times_codec.h"

namespace optimus::executor {
namespace {

using RankTimes = std::vector<std::vector<OperationTime>>;  // by rank, operation

struct Window {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  Picoseconds Until(std::int64_t time_ns) const {
    return Picoseconds(time_ns > begin_ns ? (time_ns - begin_ns) * 1000 : 0);
  }
};

Window WindowOf(const RankTimes& ranks) {
  Window window;
  for (const std::vector<OperationTime>& times : ranks) {
    for (const OperationTime& time : times) {
      window.begin_ns = std::min(window.begin_ns, time.begin_ns);
      window.end_ns = std::max(window.end_ns, time.end_ns);
    }
  }
  return window;
}

// What one rank tells rank 0 of a step.
struct RankStep {
  std::vector<OperationTime> times;
  NominalTimes nominal;
};

// Ranks run different programs, so each says how many operations its has.
std::string Encode(const RankStep& step) {
  const NominalTimes& nominal = step.nominal;
  return absl::StrCat(step.times.size(), " ", nominal.end_ns, " ", nominal.late_ns, " ",
                      nominal.compute_ns, "\n", EncodeTimes(step.times));
}

absl::StatusOr<RankStep> Decode(const std::string& bytes) {
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::vector<std::string> numbers = absl::StrSplit(bytes.substr(0, line), ' ');
  RankStep step;
  std::size_t count = 0;
  if (line == bytes.size() || numbers.size() != 4 || !absl::SimpleAtoi(numbers[0], &count) ||
      !absl::SimpleAtoi(numbers[1], &step.nominal.end_ns) ||
      !absl::SimpleAtoi(numbers[2], &step.nominal.late_ns) ||
      !absl::SimpleAtoi(numbers[3], &step.nominal.compute_ns)) {
    return absl::DataLossError("measured times without their count");
  }
  OPTIMUS_ASSIGN_OR_RETURN(step.times, DecodeTimes(bytes.substr(line + 1), count));
  return step;
}

// At rank 0 those of all ranks.
absl::StatusOr<std::vector<RankStep>> GatherStep(World& world, const RankStep& mine) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> parts, world.Gather(Encode(mine)));
  std::vector<RankStep> ranks;
  ranks.reserve(parts.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    absl::StatusOr<RankStep> step = Decode(parts[rank]);
    if (!step.ok()) {
      return absl::DataLossError(absl::StrCat("rank ", rank, ": ", step.status().message()));
    }
    ranks.push_back(*std::move(step));
  }
  return ranks;
}

void Append(std::vector<RankStep> ranks, RunResult& result) {
  Lateness lateness;
  std::int64_t compute_ns = 0, nominal_end_ns = 0;
  RankTimes times;
  times.reserve(ranks.size());
  for (RankStep& rank : ranks) {
    lateness.late = std::max(lateness.late, Picoseconds(1000 * rank.nominal.late_ns));
    compute_ns += rank.nominal.compute_ns;
    nominal_end_ns = std::max(nominal_end_ns, rank.nominal.end_ns);
    times.push_back(std::move(rank.times));
  }
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, times.size()));
  lateness.compute = Picoseconds(1000 * (compute_ns / count));
  const Window window = WindowOf(times);
  lateness.step = window.Until(nominal_end_ns);
  result.steps.push_back(window.Until(window.end_ns));
  result.times.push_back(std::move(times));
  result.lateness.push_back(lateness);
}

}  // namespace

absl::StatusOr<RunResult> Run(Runtime& runtime, World& world, const RunOptions& options,
                              absl::FunctionRef<absl::Status()> while_waiting) {
  std::vector<RankStep> steps;  // measured ones: this rank's
  steps.reserve(static_cast<std::size_t>(options.steps));
  for (int i = 0; i < options.warm_up + options.steps; ++i) {
    OPTIMUS_RETURN_IF_ERROR(world.Barrier());
    OPTIMUS_ASSIGN_OR_RETURN(std::vector<OperationTime> times,
                             runtime.Step(options.first_step + i, while_waiting));
    if (i >= options.warm_up) steps.push_back({std::move(times), runtime.Nominal()});
  }
  // Only now, so that gathering never disturbs a step.
  RunResult result;
  for (const RankStep& mine : steps) {
    OPTIMUS_ASSIGN_OR_RETURN(std::vector<RankStep> ranks, GatherStep(world, mine));
    if (world.rank() == 0) Append(std::move(ranks), result);
  }
  if (world.rank() == 0) {
    result.ranks.resize(static_cast<std::size_t>(world.size()));
    std::iota(result.ranks.begin(), result.ranks.end(), 0);
  }
  return result;
}

std::size_t MedianStep(const std::vector<Picoseconds>& steps) {
  if (steps.empty()) return 0;
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
  return order[(order.size() - 1) / 2];
}

}  // namespace optimus::executor
