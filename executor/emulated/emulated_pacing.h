#pragma once
// How long emulated work takes: its cost model's time without contention, times a scale.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/cost_model.h"
#include "executor/mpi/pacing.h"

namespace optimus::executor {

// Prices are those of ir::CriticalPathRunner: a collective's by the shape of its group in the
// Schedule, a message's by whether its two ranks share a node. Transfers that share a link do not
// slow each other down, and neither do kernels and collectives (CostModel::interference).
class EmulatedPacing : public Pacing {
 public:
  // `costs` outlives it. `time_scale`: real time per priced time, above 0.
  EmulatedPacing(const CostModel& costs, double time_scale)
      : costs_(costs), time_scale_(time_scale) {}

  std::int64_t KernelEndNs(const Kernel& kernel, std::int64_t ready_ns) const;

  void Connect(const ir::Schedule& schedule) override;
  std::int64_t CollectiveEndNs(const CollectiveWork& work, absl::Span<const std::int32_t> ranks,
                               std::int64_t ready_ns) const override;
  std::int64_t MessageEndNs(std::int32_t message, Bytes bytes, std::int32_t source,
                            std::int32_t destination, std::int64_t ready_ns) const override;

 private:
  std::int64_t After(std::int64_t ready_ns, Picoseconds time) const;
  GroupShape ShapeOf(absl::Span<const std::int32_t> ranks) const;

  struct LessRanks {
    using is_transparent = void;
    bool operator()(absl::Span<const std::int32_t> a, absl::Span<const std::int32_t> b) const {
      return a < b;
    }
  };

  const CostModel& costs_;
  const double time_scale_;
  // Of the Schedule.
  std::int32_t gpus_per_node_ = 0;  // 0: none is connected; one node
  std::map<std::vector<std::int32_t>, GroupShape, LessRanks> shapes_;  // of its groups, by ranks
  absl::flat_hash_map<std::int32_t, Picoseconds> fixed_messages_;      // those that have no price
};

}  // namespace optimus::executor
