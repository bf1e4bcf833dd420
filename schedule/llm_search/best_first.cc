#include "schedule/llm_search/best_first.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace optimus::llm_search {

BestFirst::BestFirst(std::vector<Bounded> candidates, std::optional<Picoseconds> known)
    : best_(known) {
  std::sort(candidates.begin(), candidates.end(), [](const Bounded& a, const Bounded& b) {
    return std::tie(a.bound, a.candidate) < std::tie(b.bound, b.candidate);
  });
  entries_.reserve(candidates.size());
  for (const Bounded& bounded : candidates) entries_.push_back({bounded, false, false, {}});
}

std::optional<std::int64_t> BestFirst::Next() {
  if (next_ == entries_.size()) return std::nullopt;
  Entry& entry = entries_[next_];
  if (best_ && entry.bounded.bound > *best_) return std::nullopt;
  ++next_;
  entry.begun = true;
  return entry.bounded.candidate;
}

void BestFirst::Done(std::int64_t candidate, std::optional<Picoseconds> step) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [candidate](const Entry& e) {
    return e.bounded.candidate == candidate;
  });
  if (entry == entries_.end()) return;
  entry->done = true;
  entry->step = step;
  if (step && (!best_ || *step < *best_)) best_ = step;
}

BestFirst::Outcome BestFirst::Finish() const {
  Outcome outcome;
  std::vector<std::pair<Picoseconds, std::int64_t>> counted;
  for (const Entry& entry : entries_) {
    if (best_ && entry.bounded.bound > *best_) {
      ++outcome.pruned;
    } else if (!entry.done) {
      outcome.open.push_back(entry.bounded);
    } else if (entry.step) {
      counted.emplace_back(*entry.step, entry.bounded.candidate);
    } else {
      outcome.without_step.push_back(entry.bounded.candidate);
    }
  }
  std::sort(counted.begin(), counted.end());
  outcome.evaluated.reserve(counted.size());
  for (const auto& [step, candidate] : counted) outcome.evaluated.push_back(candidate);
  return outcome;
}

}  // namespace optimus::llm_search
