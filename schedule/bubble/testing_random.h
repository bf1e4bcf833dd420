#pragma once
// Random problems for the tests of the bubble schedulers. Made from a seed and a few sizes: the
// same everywhere.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble::testing {

// What shapes a random problem; everything else comes from `seed`.
struct RandomShape {
  std::uint64_t seed = 1;
  std::int32_t stages = 1;           // 1 to 4
  std::int32_t tensor_parallel = 1;  // 1, 2 or 4
  std::int32_t encoders = 1;
  std::int32_t micro_batches = 4;
  std::int64_t encoder_scale = 9;  // durations of encoder ops are from 0 to this
  std::int64_t llm_scale = 30;     // LLM kernels and bubbles
  bool frozen = false;             // every encoder; otherwise by chance
  bool sync = true;                // encoders have data-parallel communication, by chance
  bool transfers = true;           // messages take time, by chance
  bool skipping = true;            // micro-batches without input, by chance
};

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Both ends included.
  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool Chance(int percent) { return Between(1, 100) <= percent; }
  Picoseconds Time(std::int64_t most) { return Picoseconds(Between(0, most)); }

 private:
  std::uint64_t state_;
};

Problem RandomProblem(const RandomShape& shape);

// All times by `factor`.
Problem Scaled(const Problem& problem, std::int64_t factor);
Result Scaled(const Result& result, std::int64_t factor);

}  // namespace optimus::bubble::testing
