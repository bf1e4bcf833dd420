#pragma once
// The order in which candidates are evaluated, and when it is enough. Whatever the number of
// workers and whoever ends first, the same candidates count.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace optimus::llm_search {

struct Bounded {
  std::int64_t candidate = 0;  // its number: ties go to the smaller one
  Picoseconds bound;
};

// Candidates come by bound, then number. One is pruned if its bound is above the best step. While
// several are evaluated at once, one may be begun that later turns out to be pruned: its result
// does not count, so that exactly the candidates whose bound is not above the final best step do.
class BestFirst {
 public:
  // `known`: a step that is there already (of the experiment's own plan). Candidates that only
  // equal it are still evaluated.
  BestFirst(std::vector<Bounded> candidates, std::optional<Picoseconds> known);

  // The next one to evaluate, if any is left that may be better.
  std::optional<std::int64_t> Next();
  // Of a candidate that Next gave out; absent: it has no step (it turned out not to fit).
  void Done(std::int64_t candidate, std::optional<Picoseconds> step);

  struct Outcome {
    std::vector<std::int64_t> evaluated;     // that count, by step, then number; without those that
                                             // have no step
    std::vector<std::int64_t> without_step;  // evaluated, and have none; by bound
    std::int64_t pruned = 0;
    // Not evaluated, and not pruned, by bound: the best step is not proven to be the best.
    std::vector<Bounded> open;
  };
  Outcome Finish() const;

 private:
  struct Entry {
    Bounded bounded;
    bool begun = false, done = false;
    std::optional<Picoseconds> step;
  };
  std::vector<Entry> entries_;  // by bound
  std::size_t next_ = 0;
  std::optional<Picoseconds> best_;
};

}  // namespace optimus::llm_search
