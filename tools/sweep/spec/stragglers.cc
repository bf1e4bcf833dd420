#include <algorithm>
#include <cmath>
#include <set>

#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014). The standard library's distributions differ between
// implementations; this and what is made of it does not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<step::Hardware::SlowGpu> DrawStragglers(const Stragglers& stragglers, std::int64_t gpus,
                                                    std::int64_t seed) {
  Random random(static_cast<std::uint64_t>(seed));
  const std::int64_t wanted =
      std::max<std::int64_t>(1, std::llround(stragglers.share() * static_cast<double>(gpus)));
  // Floyd's sampling: each set of ranks is equally likely.
  std::set<std::int64_t> ranks;
  for (std::int64_t last = gpus - std::min(wanted, gpus); last < gpus; ++last) {
    const auto rank =
        static_cast<std::int64_t>(random.Next() % static_cast<std::uint64_t>(last + 1));
    if (!ranks.insert(rank).second) ranks.insert(last);
  }
  std::vector<step::Hardware::SlowGpu> slow;
  slow.reserve(ranks.size());
  for (const std::int64_t rank : ranks) {
    step::Hardware::SlowGpu& gpu = slow.emplace_back();
    gpu.set_rank(static_cast<std::int32_t>(rank));
    gpu.set_factor(stragglers.factor_from() +
                   (stragglers.factor_to() - stragglers.factor_from()) * random.Unit());
  }
  return slow;
}

}  // namespace optimus::sweep
