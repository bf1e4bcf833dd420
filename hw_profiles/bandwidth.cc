#include <cstdlib>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

// doc/PERFORMANCE.md of nccl-tests: bus bandwidth = algorithm bandwidth * factor.
double BusFactor(CollectiveKind kind, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return others;
    case CollectiveKind::kAllReduce:
      return 2 * others;
    case CollectiveKind::kBroadcast:
      return 1;
  }
  std::abort();
}

}  // namespace

BytesPerSecond AlgorithmBandwidth(const CollectiveWork& work, Picoseconds time) {
  return BytesPerSecond(static_cast<double>(work.bytes.value()) / ToSeconds(time));
}

BytesPerSecond BusBandwidth(const CollectiveWork& work, int ranks, Picoseconds time) {
  return AlgorithmBandwidth(work, time) * BusFactor(work.kind, ranks);
}

}  // namespace optimus::hw
