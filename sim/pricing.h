#pragma once
// Every piece of work of a Schedule priced once, and the static question whether NVLink can be
// shared.

#include <cstdint>
#include <vector>

#include "base/cost_model.h"
#include "schedule/ir/schedule.h"
#include "sim/overlap.h"

namespace optimus::sim {

struct TransferPrice {
  std::int64_t latency = 0;  // picoseconds
  std::int64_t alone = 0;    // picoseconds in all if it shares its link with nobody
  std::int64_t wire_bytes = 0;
  LinkScope scope = LinkScope::kNone;
};

struct Pricing {
  // `interference`: the factors that apply; by default nothing slows anything.
  Pricing(const ir::Schedule& schedule, const CostModel& costs,
          const Interference& interference = {});
  std::vector<std::int64_t> kernels;       // picoseconds, by index into Schedule::kernels
  std::vector<TransferPrice> collectives;  // by index into Schedule::collectives
  std::vector<TransferPrice> sends_in_node, sends_between_nodes;  // by index into ::transfers
  // False if no direction of any GPU's NVLink can carry two transfers at once, whatever the
  // durations: each direction is used by one stream only, and a stream runs one operation at a
  // time. Then NVLink transfers have a fixed duration and no flow is made for them.
  bool nvlink_contends = false;
  Interference interference;
  bool overlap_counts = false;  // some factor is not 1
  std::vector<bool> priced;     // kernels priced from work, by index into Schedule::kernels

  OverlapRole RoleOf(const ir::Operation& op) const;
  // Whether what runs when a collective starts decides how long it lasts.
  bool DependsOnKernels(const ir::Operation& op) const {
    return interference.collective_under_kernel != 1 && RoleOf(op) == OverlapRole::kNvlink;
  }

  bool UsesFlow(const TransferPrice& price) const {
    return price.wire_bytes > 0 && (price.scope == LinkScope::kNic ||
                                    (price.scope == LinkScope::kNvlink && nvlink_contends));
  }
};

// A kernel's duration on a GPU that is slower by `factor`.
std::int64_t Slowed(std::int64_t picoseconds, double factor);
// A transfer all of whose parts take `factor` times as long.
TransferPrice SlowedTransfer(const TransferPrice& price, double factor);

}  // namespace optimus::sim
