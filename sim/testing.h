#pragma once
// For tests of this folder: a cost model with real wires, numbers small enough for the hand, and
// shorthands to run a Schedule.

#include <string>
#include <utility>

#include "base/cost_model.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/timeline.h"
#include "sim/simgrid_runner.h"

namespace optimus::sim::testing {

// NVLink moves a byte in 2 ps, a NIC in 10 ps, per GPU and direction. Every transfer moves its
// bytes as they are, after `latency`. Groups of one rank cost nothing.
class WireCosts : public CostModel {
 public:
  explicit WireCosts(std::int64_t latency_ps = 0) : latency_(latency_ps) {}
  Picoseconds KernelTime(const Kernel& kernel) const override { return kernel.fixed; }
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    if (group.ranks == 1) return {};
    return {latency_, work.bytes,
            group.ranks == group.ranks_per_node ? LinkScope::kNvlink : LinkScope::kNic};
  }
  TransferCost SendCost(Bytes bytes, bool same_node) const override {
    return {latency_, bytes, same_node ? LinkScope::kNvlink : LinkScope::kNic};
  }
  BytesPerSecond LinkBandwidth(LinkScope scope) const override {
    return BytesPerSecond(scope == LinkScope::kNvlink ? 0.5e12 : 1e11);
  }
  int gpus_per_node() const override { return 0; }  // any

 private:
  Picoseconds latency_;
};

inline Options With(Fidelity fidelity, bool record_spans = true) {
  Options options;
  options.fidelity = fidelity;
  options.record_spans = record_spans;
  return options;
}

inline absl::StatusOr<ir::Timeline> Simulate(const ir::Schedule& schedule, const CostModel& costs,
                                             Options options) {
  return SimGridRunner(costs, std::move(options)).Run(schedule);
}

// End of an operation of a stage, in picoseconds, from the recorded spans. -1: not there.
inline std::int64_t EndOf(const ir::Schedule& schedule, const ir::Timeline& timeline, int stage,
                          std::uint32_t operation) {
  for (const ir::Span& span : timeline.spans) {
    if (span.rank == ir::RankOf(schedule.world, stage, 0, 0) && span.operation == operation) {
      return span.end.value();
    }
  }
  return -1;
}

}  // namespace optimus::sim::testing
