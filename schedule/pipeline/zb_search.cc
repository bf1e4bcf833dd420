#include "schedule/pipeline/zb_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "schedule/pipeline/zb_improve.h"
#include "schedule/pipeline/zb_list.h"
#include "schedule/pipeline/zb_refill.h"
#include "schedule/pipeline/zb_replay.h"

namespace optimus::pipeline {
namespace {

// Policies are compared on steps of at most this many micro-batches per stage: one chunk, more
// chunks. What they do between warm-up and cool-down repeats. The best few are tried on the whole
// step.
constexpr int kSampleLaps = 3;
constexpr int kSampleLapsOfChunks = 2;
constexpr std::size_t kFinalists = 6;
constexpr std::size_t kImproved = 3;
// Slots replayed by the local search of one order.
constexpr std::int64_t kImproveBudget = 1'000'000;

// How much a weight gradient may delay what comes next, of its own time.
constexpr double kDelays[] = {0.0, 0.25, 0.5, 0.75, 1.0};

std::vector<ZbPolicy> Policies(const ZbProblem& problem) {
  std::vector<ZbPolicy> policies;
  // The last two rules mean nothing where there is one chunk.
  const int rules = problem.chunks > 1 ? 1 << 5 : 1 << 3;
  for (const double forward_delay : {0.0, 0.5, 1.0}) {
    for (const double weight_delay : kDelays) {
      for (int bits = 0; bits < rules; ++bits) {
        const auto bit = [bits](int i) { return ((bits >> i) & 1) != 0; };
        policies.push_back({forward_delay, weight_delay, bit(0), bit(1), bit(2), !bit(3), bit(4)});
      }
    }
  }
  return policies;
}

struct Candidate {
  ZbScore score;
  Order order;
};

// Keeps the best few; of equals, the first that came.
void Keep(std::vector<Candidate>& best, Candidate candidate) {
  const auto place =
      std::upper_bound(best.begin(), best.end(), candidate,
                       [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  best.insert(place, std::move(candidate));
  if (best.size() > kImproved) best.pop_back();
}

ZbProblem Sample(const ZbProblem& problem) {
  ZbProblem sample = problem;
  const std::int64_t laps = problem.chunks > 1 ? kSampleLapsOfChunks : kSampleLaps;
  sample.micro_batches =
      static_cast<int>(std::min<std::int64_t>(problem.micro_batches, laps * problem.stages));
  return sample;
}

std::vector<ZbPolicy> BestPolicies(const ZbProblem& problem, const MicroBatchPath& path) {
  const ZbProblem sample = Sample(problem);
  ZbReplay replay(sample, path);
  std::vector<std::pair<ZbScore, ZbPolicy>> ranked;
  for (const ZbPolicy& policy : Policies(problem)) {
    if (replay.Run(ListSchedule(sample, path, policy))) {
      ranked.emplace_back(replay.score(), policy);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ZbPolicy> best;
  best.reserve(kFinalists);
  // Policies of one score mostly give one order: others are worth more.
  for (std::size_t i = 0; i < ranked.size() && best.size() < kFinalists; ++i) {
    if (i == 0 || ranked[i].first != ranked[i - 1].first) best.push_back(ranked[i].second);
  }
  return best;
}

}  // namespace

absl::StatusOr<Order> SearchZbOrder(const ZbProblem& problem, const std::vector<Order>& known) {
  OPTIMUS_RETURN_IF_ERROR(CheckZbProblem(problem));
  const MicroBatchPath path(problem);
  ZbReplay replay(problem, path);
  // Apart, as the local search gets further from some orders than from better ones.
  std::vector<Candidate> as_made, refilled, best;
  const auto consider = [&](std::vector<Candidate>& among, Order order) {
    if (replay.Run(order)) Keep(among, {replay.score(), std::move(order)});
  };
  const auto consider_both = [&](const Order& order) {
    if (!FitsMemory(problem, order)) return;
    consider(as_made, order);
    for (const double delay : kDelays) {
      consider(refilled, RefillWeights(problem, path, order, delay));
    }
  };
  for (const Order& order : known) consider_both(order);
  for (const ZbPolicy& policy : BestPolicies(problem, path)) {
    consider_both(ListSchedule(problem, path, policy));
  }
  for (const auto* among : {&as_made, &refilled}) {
    for (const Candidate& candidate : *among) {
      consider(best, Improve(problem, path, candidate.order, kImproveBudget));
    }
  }
  if (best.empty()) return absl::InternalError("no policy gave an order that runs");
  return std::move(best.front().order);
}

}  // namespace optimus::pipeline
