#include "schedule/pipeline/zb_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
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

// Of kZbDelays, those that are tried for forwards: 0, a half and 1.
constexpr std::size_t kForwardDelayStride = 2;

// All policies but for the delays.
std::vector<ZbPolicy> Rules(const ZbProblem& problem) {
  // The last two rules mean nothing where there is one chunk.
  const int rules = problem.chunks > 1 ? 1 << 5 : 1 << 3;
  std::vector<ZbPolicy> all;
  all.reserve(rules);
  for (int bits = 0; bits < rules; ++bits) {
    const auto bit = [bits](int i) { return ((bits >> i) & 1) != 0; };
    all.push_back({0, 0, bit(0), bit(1), bit(2), !bit(3), bit(4)});
  }
  return all;
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

// The policies with the best scores, one of each score: those of one score mostly give one order.
class Ranking {
 public:
  Ranking(const ZbProblem& problem, const MicroBatchPath& path)
      : sample_(Sample(problem)), path_(path), rules_(Rules(problem)), seen_(rules_.size()) {}

  // From the last policy to the first: of one score the first stays, and among the last are more
  // of the good ones, next to which others are given up early.
  std::vector<ZbPolicy> Best() {
    for (std::size_t forward = kZbDelays.size(); forward-- > 0;) {
      if (forward % kForwardDelayStride != 0) continue;
      for (std::size_t weight = kZbDelays.size(); weight-- > 0;) {
        for (std::size_t rule = rules_.size(); rule-- > 0;) Try(rule, forward, weight);
      }
    }
    std::vector<ZbPolicy> best;
    best.reserve(kFinalists);
    for (const auto& [score, policy] : ranked_) best.push_back(policy);
    return best;
  }

 private:
  void Try(std::size_t rule, std::size_t forward, std::size_t weight) {
    ZbPolicy policy = rules_[rule];
    policy.forward_delay = kZbDelays[forward];
    policy.weight_delay = kZbDelays[weight];
    const auto has = [](std::uint32_t set, std::size_t i) { return ((set >> i) & 1U) != 0; };
    for (const ListScoreResult& seen : seen_[rule]) {
      if (has(seen.same.forward, forward) && has(seen.same.weight, weight)) {
        return Record(seen.score, policy);
      }
    }
    seen_[rule].push_back(ListScore(sample_, path_, policy, most_));
    Record(seen_[rule].back().score, policy);
  }

  void Record(const std::optional<ZbScore>& score, const ZbPolicy& policy) {
    if (!score.has_value()) return;
    ranked_.insert_or_assign(*score, policy);
    if (ranked_.size() > kFinalists) ranked_.erase(std::prev(ranked_.end()));
    if (ranked_.size() == kFinalists) most_ = ranked_.rbegin()->first.first;
  }

  const ZbProblem sample_;
  const MicroBatchPath& path_;
  const std::vector<ZbPolicy> rules_;
  std::vector<std::vector<ListScoreResult>> seen_;  // by rule: of what was tried
  std::map<ZbScore, ZbPolicy> ranked_;              // at most kFinalists
  Picoseconds most_{std::numeric_limits<std::int64_t>::max()};
};

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
    for (const double delay : kZbDelays) {
      consider(refilled, RefillWeights(problem, path, order, delay));
    }
  };
  for (const Order& order : known) consider_both(order);
  for (const ZbPolicy& policy : Ranking(problem, path).Best()) {
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
