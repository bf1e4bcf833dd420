#pragma once
// Hardware profiles: what one GPU and its links can do, every number with source and date, and the
// CostModel made from one.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "base/units.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// `name_or_path`: a zoo name ("h100-80gb") or a *.textproto path. NOT_FOUND lists the known names;
// INVALID_ARGUMENT names file and field.
absl::StatusOr<HardwareProfile> LoadProfile(const std::string& name_or_path);
std::vector<std::string> ZooProfiles();
absl::Status ValidateProfile(const HardwareProfile& profile);

class ProfileCostModel : public CostModel {
 public:
  explicit ProfileCostModel(HardwareProfile profile);
  Picoseconds KernelTime(const Kernel& kernel) const override;
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override;
  TransferCost SendCost(Bytes bytes, bool same_node) const override;
  BytesPerSecond LinkBandwidth(LinkScope scope) const override;
  int gpus_per_node() const override;

  const HardwareProfile& profile() const { return profile_; }
  FlopsPerSecond peak_flops() const;   // dense bf16
  Bytes memory_capacity() const;
  Picoseconds optimizer_overhead() const;

 private:
  HardwareProfile profile_;
};

// Algorithm and bus bandwidth as nccl-tests define them.
BytesPerSecond AlgorithmBandwidth(const CollectiveWork& work, Picoseconds time);
BytesPerSecond BusBandwidth(const CollectiveWork& work, int ranks, Picoseconds time);

}  // namespace optimus::hw
