#pragma once
// Hardware profiles: what one GPU and its links can do, every number with source and date, and the
// CostModel made from one.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "base/units.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

class MeasuredTables;

// `name_or_path`: a zoo name ("h100-80gb") or a *.textproto path. NOT_FOUND lists the known names;
// INVALID_ARGUMENT names file and field.
absl::StatusOr<HardwareProfile> LoadProfile(const std::string& name_or_path);
std::vector<std::string> ZooProfiles();  // sorted
// Every number is there, in the range that its unit allows, with origin, source and date.
// INVALID_ARGUMENT names the field ("gpu.gemm_efficiency.value: is 1.2; must be from 0.001 to 1").
absl::Status ValidateProfile(const HardwareProfile& profile);

// The profile as a text file that LoadProfile reads again, every number to the last bit.
std::string ToTextProto(const HardwareProfile& profile);

// Prices from a valid profile (ValidateProfile; LoadProfile has done it). What was measured comes
// first: a kernel in measured_kernels takes its median, a transfer of a kind and group in
// measured_transfers what lies between its points (hw_profiles/measured_tables.h). For the rest:
//   GEMM: max(FLOPs / (peak * GEMM efficiency), bytes / (HBM * HBM efficiency)) + launch; with
//   gpu.tiles the efficiency also has the share of the GPU that the GEMM's tiles keep busy
//   (hw_profiles/gemm_tiles.h).
//   Fused attention: FLOPs / (peak * attention efficiency) + launch.
//   Memory-bound: bytes / (HBM * HBM efficiency) + launch. Fixed: as it is, no launch.
//   Collectives: latency + ring bytes / (link * efficiency), or with protocols the fastest of
//   NCCL's algorithms and protocols (hw_profiles/protocols.h); NVLink SHARP inside a node where the
//   profile allows it and it is faster; one rank: nothing. Across nodes, k members in each node
//   use k NICs and each NIC carries 1/k of the ring (an all-to-all: what leaves the node); NVLink
//   bounds it if it is slower than k NICs. Nodes are taken to hold k members each.
class ProfileCostModel : public CostModel {
 public:
  explicit ProfileCostModel(HardwareProfile profile);
  Picoseconds KernelTime(const Kernel& kernel) const override;
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override;
  TransferCost SendCost(Bytes bytes, bool same_node) const override;
  BytesPerSecond LinkBandwidth(LinkScope scope) const override;
  int gpus_per_node() const override;
  // What the profile says about overlap; a factor that it leaves out is 1.
  Interference interference() const override;

  const HardwareProfile& profile() const { return profile_; }
  FlopsPerSecond peak_flops() const;  // dense bf16
  Bytes memory_capacity() const;
  Picoseconds optimizer_overhead() const;

 private:
  HardwareProfile profile_;
  std::shared_ptr<const MeasuredTables> measured_;  // null: nothing was measured
};

// Algorithm and bus bandwidth as nccl-tests define them.
BytesPerSecond AlgorithmBandwidth(const CollectiveWork& work, Picoseconds time);
BytesPerSecond BusBandwidth(const CollectiveWork& work, int ranks, Picoseconds time);

}  // namespace optimus::hw
