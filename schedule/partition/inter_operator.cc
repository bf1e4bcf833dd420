#include "schedule/partition/inter_operator.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::partition {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Latency and memory of every possible stage, priced once.
class Stages {
 public:
  explicit Stages(const InterOperatorProblem& problem)
      : layers_(problem.layers), latencies_(Index(layers_, 0), kNever) {
    fitting_stages_.resize(latencies_.size());
    for (int first = 0; first < layers_; ++first) {
      for (int last = first + 1; last <= layers_; ++last) Price(problem, first, last);
    }
  }

  // kNever: it does not fit there.
  std::int64_t Latency(int stage, int first, int last) const {
    const std::size_t i = Index(first, last);
    return fitting_stages_[i][stage] ? latencies_[i] : kNever;
  }

  // The bounds worth trying for the largest latency: every latency of a stage that fits somewhere.
  std::vector<std::int64_t> Bounds() const {
    std::vector<std::int64_t> bounds;
    for (std::size_t i = 0; i < latencies_.size(); ++i) {
      const std::vector<bool>& fits = fitting_stages_[i];
      if (std::find(fits.begin(), fits.end(), true) != fits.end()) bounds.push_back(latencies_[i]);
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    return bounds;
  }

 private:
  std::size_t Index(int first, int last) const {
    return static_cast<std::size_t>(first) * (layers_ + 1) + last;
  }
  void Price(const InterOperatorProblem& problem, int first, int last) {
    const std::size_t i = Index(first, last);
    latencies_[i] = problem.latency(first, last).value();
    fitting_stages_[i].resize(problem.stages);
    for (int s = 0; s < problem.stages; ++s) {
      // Every stage before and behind it has a layer, and none is left over.
      const int behind = problem.stages - 1 - s;
      const bool possible = (s == 0 ? first == 0 : first >= s) &&
                            (behind == 0 ? last == layers_ : last <= layers_ - behind);
      fitting_stages_[i][s] = possible && problem.fits(s, first, last);
    }
  }

  int layers_;
  std::vector<std::int64_t> latencies_;
  std::vector<std::vector<bool>> fitting_stages_;
};

// The smallest sum of latencies of stages that are none longer than `bound`.
struct Split {
  std::int64_t sum = kNever;  // kNever: there is none
  Boundaries boundaries;
};

// best[s][k]: the smallest sum for layers [k, end) on stages s and later; filled from the last
// stage back. Of equal sums the earliest boundary stays, so that the whole partition is the first
// one.
Split SmallestSum(const Stages& stages, int layers, int count, std::int64_t bound) {
  std::vector<std::vector<std::int64_t>> best(count + 1,
                                              std::vector<std::int64_t>(layers + 1, kNever));
  std::vector<std::vector<int>> end(count, std::vector<int>(layers + 1, 0));
  best[count][layers] = 0;
  for (int s = count - 1; s >= 0; --s) {
    for (int k = s; k <= layers - (count - s); ++k) {
      for (int j = k + 1; j <= layers - (count - s - 1); ++j) {
        const std::int64_t latency = stages.Latency(s, k, j);
        if (latency > bound || best[s + 1][j] == kNever) continue;
        if (latency + best[s + 1][j] >= best[s][k]) continue;
        best[s][k] = latency + best[s + 1][j];
        end[s][k] = j;
      }
    }
  }
  Split split{best[0][0], {0}};
  if (split.sum == kNever) return split;
  for (int s = 0; s < count; ++s) split.boundaries.push_back(end[s][split.boundaries.back()]);
  return split;
}

// Total time with a largest latency of `bound`. In long double: the product may not fit 63 bits,
// and where it does it is exact.
long double TotalTime(const Split& split, std::int64_t bound, std::int64_t micro_batches) {
  return static_cast<long double>(split.sum) +
         static_cast<long double>(micro_batches - 1) * static_cast<long double>(bound);
}

absl::Status Check(const InterOperatorProblem& problem) {
  if (problem.stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages: ", problem.stages, " is not a positive number"));
  }
  if (problem.layers < problem.stages) {
    return absl::InvalidArgumentError(absl::StrCat("layers: ", problem.layers,
                                                   " layers cannot fill ", problem.stages,
                                                   " stages, every stage needs one"));
  }
  if (problem.layers > kMaxInterOperatorLayers) {
    return absl::InvalidArgumentError(absl::StrCat("layers: ", problem.layers, " layers; at most ",
                                                   kMaxInterOperatorLayers, " are supported"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Boundaries> InterOperator(const InterOperatorProblem& problem) {
  OPTIMUS_RETURN_IF_ERROR(Check(problem));
  const Stages stages(problem);
  const Split unbounded = SmallestSum(stages, problem.layers, problem.stages, kNever - 1);
  if (unbounded.sum == kNever) {
    return absl::ResourceExhaustedError(absl::StrCat("no partition of ", problem.layers,
                                                     " layers over ", problem.stages,
                                                     " stages fits in memory"));
  }
  const std::vector<std::int64_t> bounds = stages.Bounds();
  // A larger bound never makes a partition impossible: the first that allows one is found by
  // halving, and with it most bounds are never tried.
  const auto first = std::partition_point(bounds.begin(), bounds.end(), [&](std::int64_t bound) {
    return SmallestSum(stages, problem.layers, problem.stages, bound).sum == kNever;
  });
  std::optional<Split> best;
  long double best_time = 0;
  for (auto bound = first; bound != bounds.end(); ++bound) {
    // No bound from here on can do better than this; on a tie the smaller bound stays.
    if (best && TotalTime(unbounded, *bound, problem.micro_batches) >= best_time) break;
    Split split = SmallestSum(stages, problem.layers, problem.stages, *bound);
    const long double time = TotalTime(split, *bound, problem.micro_batches);
    if (best && time >= best_time) continue;
    best = std::move(split);
    best_time = time;
  }
  return best->boundaries;
}

}  // namespace optimus::partition
