#pragma once
// Look-up in the measured tables of a profile. Internal to hw_profiles; others use
// ProfileCostModel.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/cost_model.h"
#include "base/kernel.h"
#include "base/units.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// What a row of the table is about. Unknown kinds (ValidateProfile refuses them) abort.
Kernel KernelOf(const MeasuredKernel& row);
MeasuredTransfer::Kind MeasuredKind(CollectiveKind kind);

// Part of ValidateProfile: INVALID_ARGUMENT "measured_kernels[3].time.median_us: ...".
absl::Status ValidateMeasuredTables(const HardwareProfile& profile);

// Times of a larger size that are shorter than those of a smaller one are noise: the closest times
// (least squares) that never fall, in the same order.
std::vector<double> NeverFalling(const std::vector<double>& times);

class MeasuredTables {
 public:
  // Of a valid profile.
  explicit MeasuredTables(const HardwareProfile& profile);

  // The median; nullopt where the kernel is in no row.
  std::optional<Picoseconds> KernelTime(const Kernel& kernel) const;
  // nullopt where this kind and group are in no row, and where nothing moves (one rank).
  // Uncontended, latency + wire bytes / bandwidth is the interpolated time to the picosecond. The
  // latency is that of the link's row, but not more than the time; the rest is on the wire and
  // shares it with others.
  std::optional<TransferCost> CollectiveCost(const CollectiveWork& work, GroupShape group) const;
  std::optional<TransferCost> SendCost(Bytes bytes, bool same_node) const;

 private:
  struct KernelHash {
    std::size_t operator()(const Kernel& kernel) const;
  };
  // Kind, ranks, ranks in each node.
  using TransferKey = std::array<int, 3>;
  struct Transfer {
    std::vector<std::int64_t> bytes;  // ascending
    std::vector<double> times_ps;     // never falling
  };
  const Transfer* Find(MeasuredTransfer::Kind kind, GroupShape group) const;
  // `by_row` prices a size by the link's row.
  template <class ByRow>
  TransferCost Price(const Transfer& transfer, Bytes bytes, ByRow by_row) const;

  HardwareProfile links_;  // without the tables: goes on beyond the largest size
  absl::flat_hash_map<Kernel, Picoseconds, KernelHash> kernels_;
  absl::flat_hash_map<TransferKey, Transfer> transfers_;
};

}  // namespace optimus::hw
