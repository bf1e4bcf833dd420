#pragma once
// The seam between a Schedule's work and time: hw_profiles implements it, the runners use it.

#include <cstdint>

#include "base/kernel.h"
#include "base/units.h"

namespace optimus {

// The one link of a GPU that can bound a transfer. Both are full duplex: bandwidth is per
// direction.
enum class LinkScope : std::uint8_t {
  kNone,    // no wire at all (a group of one rank): costs nothing
  kNvlink,  // all ranks in one node
  kNic,     // some rank in another node
};

// What one transfer does to each participating GPU's link: wait `latency` (alpha), then move
// `wire_bytes` in and/or out over the link of `scope`. `wire_bytes` is inflated by the protocol's
// inefficiency, so alone it lasts latency + wire_bytes / bandwidth, and two transfers on one link
// share the bandwidth.
struct TransferCost {
  Picoseconds latency;
  Bytes wire_bytes;
  LinkScope scope = LinkScope::kNone;
};

// A group of `ranks` of which `ranks_per_node` sit in each node it touches.
struct GroupShape {
  int ranks = 1;
  int ranks_per_node = 1;
};

// Kernels and collectives that run on one GPU at the same time slow each other down (streaming
// multiprocessors, HBM). Factors on durations, at least 1; 1: they do not.
struct Interference {
  double kernel_under_nvlink = 1;      // a kernel, while a collective over NVLink runs
  double kernel_under_nic = 1;         // a kernel, while a collective over the network card runs
  double collective_under_kernel = 1;  // a collective over NVLink that starts while a kernel runs
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Picoseconds KernelTime(const Kernel& kernel) const = 0;
  virtual TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const = 0;
  // Point-to-point between pipeline stages; `bytes` per GPU, 0 costs nothing.
  virtual TransferCost SendCost(Bytes bytes, bool same_node) const = 0;
  // Raw bandwidth per GPU and direction; `scope` is kNvlink or kNic.
  virtual BytesPerSecond LinkBandwidth(LinkScope scope) const = 0;
  // 0: its prices hold for nodes of any size.
  virtual int gpus_per_node() const = 0;
  virtual Interference interference() const { return {}; }
};

// Time of a transfer that shares its link with nobody.
inline Picoseconds UncontendedTime(const CostModel& model, const TransferCost& cost) {
  if (cost.scope == LinkScope::kNone) return cost.latency;
  return cost.latency + TransferTime(cost.wire_bytes, model.LinkBandwidth(cost.scope));
}

}  // namespace optimus
