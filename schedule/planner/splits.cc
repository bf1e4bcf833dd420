#include "schedule/planner/splits.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::planner {
namespace {

// Parts are at least one where there is enough for all.
std::int32_t SmallestPart(std::int32_t micro_batches, std::int32_t pipelines) {
  return micro_batches >= pipelines ? 1 : 0;
}

Split FirstSplit(std::int32_t micro_batches, std::int32_t pipelines) {
  const std::int32_t smallest = SmallestPart(micro_batches, pipelines);
  Split split(pipelines, smallest);
  split.back() = micro_batches - smallest * (pipelines - 1);
  return split;
}

// The next one in lexicographic order: the last part but one that can take from what is behind it
// grows by one, everything behind it starts again. False behind the last one.
bool Advance(Split& split, std::int32_t smallest) {
  const auto last = static_cast<std::int32_t>(split.size()) - 1;
  std::int32_t behind = split[last];
  for (std::int32_t i = last - 1; i >= 0; --i) {
    const std::int32_t fewest = smallest * (last - i);
    if (behind > fewest) {
      ++split[i];
      std::fill(split.begin() + i + 1, split.end(), smallest);
      split[last] = behind - 1 - smallest * (last - i - 1);
      return true;
    }
    behind += split[i];
  }
  return false;
}

// Splits whose cost is known, so that none is evaluated twice.
class Evaluator {
 public:
  Evaluator(SplitCost cost, std::int64_t most) : cost_(cost), most_(most) {}
  bool exhausted() const { return evaluated_ >= most_; }
  // False for a split that has been seen: it did not win then and does not now, because the current
  // cost has only fallen.
  bool IsNew(const Split& split) { return seen_.insert(split).second; }
  std::int64_t Cost(const Split& split) {
    ++evaluated_;
    return cost_(split);
  }
  std::int64_t evaluated() const { return evaluated_; }

 private:
  SplitCost cost_;
  std::int64_t most_;
  absl::flat_hash_set<Split> seen_;
  std::int64_t evaluated_ = 0;
};

struct Move {
  std::size_t from = 0, to = 0;
  std::int64_t cost = 0;
  bool found = false;
};

// The cheapest move that costs less than `current`. `split` is changed and restored.
Move BestMove(Split& split, std::int32_t smallest, std::int64_t current, Evaluator& evaluator) {
  Move best;
  best.cost = current;
  for (std::size_t from = 0; from < split.size(); ++from) {
    if (split[from] <= smallest) continue;
    --split[from];
    for (std::size_t to = 0; to < split.size(); ++to) {
      if (to == from || evaluator.exhausted()) continue;
      ++split[to];
      if (evaluator.IsNew(split)) {
        const std::int64_t cost = evaluator.Cost(split);
        if (cost < best.cost) best = {from, to, cost, true};
      }
      --split[to];
    }
    ++split[from];
  }
  return best;
}

}  // namespace

Split BalancedSplit(std::int32_t micro_batches, std::int32_t pipelines) {
  Split split(pipelines, micro_batches / pipelines);
  for (std::int32_t i = 0; i < micro_batches % pipelines; ++i) ++split[i];
  return split;
}

absl::Status ValidateSplit(const Split& split, std::int32_t micro_batches, std::int32_t pipelines) {
  const auto parts = static_cast<std::int32_t>(split.size());
  const auto fault = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("split [", absl::StrJoin(split, ", "),
                                                   "]: ", what, "; it needs ", pipelines,
                                                   " parts that sum to ", micro_batches));
  };
  if (parts != pipelines) return fault(absl::StrCat("has ", parts, " parts"));
  if (std::any_of(split.begin(), split.end(), [](std::int32_t part) { return part < 0; })) {
    return fault("a part is negative");
  }
  const std::int64_t sum = std::accumulate(split.begin(), split.end(), std::int64_t{0});
  if (sum != micro_batches) return fault(absl::StrCat("sums to ", sum));
  return absl::OkStatus();
}

std::int64_t CountSplits(std::int32_t micro_batches, std::int32_t pipelines) {
  const std::int64_t n = micro_batches >= pipelines ? std::int64_t{micro_batches} - 1
                                                    : std::int64_t{micro_batches} + pipelines - 1;
  const std::int64_t k = std::min<std::int64_t>(pipelines - 1, n - pipelines + 1);
  // C(n, i) grows with i up to n / 2, so what is too large once stays it.
  std::int64_t count = 1;
  for (std::int64_t i = 1; i <= k; ++i) {
    const __int128 next = static_cast<__int128>(count) * (n - k + i) / i;
    if (next > std::numeric_limits<std::int64_t>::max()) {
      return std::numeric_limits<std::int64_t>::max();
    }
    count = static_cast<std::int64_t>(next);
  }
  return count;
}

void ForEachSplit(std::int32_t micro_batches, std::int32_t pipelines,
                  absl::FunctionRef<bool(const Split&)> visit) {
  const std::int32_t smallest = SmallestPart(micro_batches, pipelines);
  Split split = FirstSplit(micro_batches, pipelines);
  do {
    if (!visit(split)) return;
  } while (Advance(split, smallest));
}

SplitSearch LocalSearch(std::int32_t micro_batches, std::int32_t pipelines, SplitCost cost,
                        std::int64_t most) {
  const std::int32_t smallest = SmallestPart(micro_batches, pipelines);
  Evaluator evaluator(cost, most);
  SplitSearch best;
  best.split = BalancedSplit(micro_batches, pipelines);
  evaluator.IsNew(best.split);
  best.cost = evaluator.Cost(best.split);
  while (true) {
    const Move move = BestMove(best.split, smallest, best.cost, evaluator);
    if (!move.found) break;
    --best.split[move.from];
    ++best.split[move.to];
    best.cost = move.cost;
  }
  best.evaluated = evaluator.evaluated();
  return best;
}

SplitSearch ExhaustiveSearch(std::int32_t micro_batches, std::int32_t pipelines, SplitCost cost) {
  SplitSearch best;
  ForEachSplit(micro_batches, pipelines, [&](const Split& split) {
    const std::int64_t value = cost(split);
    if (best.evaluated == 0 || value < best.cost) {
      best.split = split;
      best.cost = value;
    }
    ++best.evaluated;
    return true;
  });
  return best;
}

}  // namespace optimus::planner
