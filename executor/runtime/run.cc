#include "executor/runtime/run.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/runtime/times_codec.h"

namespace optimus::executor {
namespace {

using RankTimes = std::vector<std::vector<OperationTime>>;  // by rank, operation

Picoseconds LengthOf(const RankTimes& ranks) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const std::vector<OperationTime>& times : ranks) {
    for (const OperationTime& time : times) {
      begin = std::min(begin, time.begin_ns);
      end = std::max(end, time.end_ns);
    }
  }
  return Picoseconds(end > begin ? (end - begin) * 1000 : 0);
}

// At rank 0 the times of all ranks. Ranks run different programs, so each says how long its is.
absl::StatusOr<RankTimes> GatherTimes(World& world, const std::vector<OperationTime>& mine) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                           world.Gather(absl::StrCat(mine.size(), "\n", EncodeTimes(mine))));
  RankTimes ranks;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const std::size_t line = parts[rank].find('\n');
    std::size_t count = 0;
    if (line == std::string::npos || !absl::SimpleAtoi(parts[rank].substr(0, line), &count)) {
      return absl::DataLossError(absl::StrCat("measured times of rank ", rank, ": no count"));
    }
    absl::StatusOr<std::vector<OperationTime>> times =
        DecodeTimes(parts[rank].substr(line + 1), count);
    if (!times.ok()) {
      return absl::DataLossError(absl::StrCat("rank ", rank, ": ", times.status().message()));
    }
    ranks.push_back(*std::move(times));
  }
  return ranks;
}

}  // namespace

absl::StatusOr<RunResult> Run(Runtime& runtime, World& world, const RunOptions& options,
                              absl::FunctionRef<absl::Status()> while_waiting) {
  RankTimes steps;  // by measured step: this rank's
  for (int i = 0; i < options.warm_up + options.steps; ++i) {
    OPTIMUS_RETURN_IF_ERROR(world.Barrier());
    OPTIMUS_ASSIGN_OR_RETURN(std::vector<OperationTime> times,
                             runtime.Step(options.first_step + i, while_waiting));
    if (i >= options.warm_up) steps.push_back(std::move(times));
  }
  // Only now, so that gathering never disturbs a step.
  RunResult result;
  for (const std::vector<OperationTime>& mine : steps) {
    OPTIMUS_ASSIGN_OR_RETURN(RankTimes ranks, GatherTimes(world, mine));
    if (world.rank() != 0) continue;
    result.steps.push_back(LengthOf(ranks));
    result.times.push_back(std::move(ranks));
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
