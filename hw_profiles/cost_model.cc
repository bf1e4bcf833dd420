#include <algorithm>
#include <cstdlib>
#include <utility>

#include "hw_profiles/collective_cost.h"
#include "hw_profiles/gemm_tiles.h"
#include "hw_profiles/measured_tables.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

Picoseconds HbmTime(const Gpu& gpu, Bytes bytes) {
  return TransferTime(bytes, BytesPerSecond(gpu.hbm_bandwidth_tb_per_s().value() * 1e12 *
                                            gpu.hbm_efficiency().value()));
}

Picoseconds MathTime(const Gpu& gpu, Flops flops, double efficiency) {
  return ComputeTime(flops,
                     FlopsPerSecond(gpu.peak_dense_bf16_tflop_per_s().value() * 1e12 * efficiency));
}

Picoseconds GemmTime(const Gpu& gpu, const Kernel& kernel) {
  const double efficiency = gpu.gemm_efficiency().value();
  const GemmShape& shape = kernel.gemm;
  if (!gpu.has_tiles() || shape.m <= 0 || shape.n <= 0 || shape.k <= 0) {
    return std::max(MathTime(gpu, kernel.flops, efficiency), HbmTime(gpu, kernel.bytes));
  }
  return FromSeconds(TiledSeconds(
      gpu.tiles(), kernel, gpu.peak_dense_bf16_tflop_per_s().value() * 1e12 * efficiency,
      gpu.hbm_bandwidth_tb_per_s().value() * 1e12 * gpu.hbm_efficiency().value()));
}

}  // namespace

ProfileCostModel::ProfileCostModel(HardwareProfile profile) : profile_(std::move(profile)) {
  if (profile_.measured_kernels().empty() && profile_.measured_transfers().empty()) return;
  measured_ = std::make_shared<const MeasuredTables>(profile_);
}

Picoseconds ProfileCostModel::KernelTime(const Kernel& kernel) const {
  if (measured_ != nullptr) {
    if (const auto time = measured_->KernelTime(kernel)) return *time;
  }
  const Gpu& gpu = profile_.gpu();
  const Picoseconds launch = FromSeconds(gpu.kernel_launch_us().value() * 1e-6);
  switch (kernel.kind) {
    case KernelKind::kGemm:
      return launch + GemmTime(gpu, kernel);
    case KernelKind::kAttention:
      return launch + MathTime(gpu, kernel.flops, gpu.attention_efficiency().value());
    case KernelKind::kMemoryBound:
      return launch + HbmTime(gpu, kernel.bytes);
    case KernelKind::kFixed:
      return kernel.fixed;
  }
  std::abort();
}

TransferCost ProfileCostModel::CollectiveCost(const CollectiveWork& work, GroupShape group) const {
  if (measured_ != nullptr) {
    if (const auto cost = measured_->CollectiveCost(work, group)) return *cost;
  }
  return PriceCollective(profile_, work, group);
}

TransferCost ProfileCostModel::SendCost(Bytes bytes, bool same_node) const {
  if (bytes <= Bytes(0)) return {};  // no message: an invented pipeline without communication
  if (measured_ != nullptr) {
    if (const auto cost = measured_->SendCost(bytes, same_node)) return *cost;
  }
  return PriceSend(profile_, bytes, same_node);
}

BytesPerSecond ProfileCostModel::LinkBandwidth(LinkScope scope) const {
  const Link& link = scope == LinkScope::kNvlink ? profile_.nvlink() : profile_.nic();
  return BytesPerSecond(link.bandwidth_gb_per_s().value() * 1e9);
}

int ProfileCostModel::gpus_per_node() const {
  return static_cast<int>(profile_.gpus_per_node().value());
}

Interference ProfileCostModel::interference() const {
  const Overlap& overlap = profile_.interference();
  const auto factor = [](bool present, const Number& number) {
    return present ? number.value() : 1.0;
  };
  return {factor(overlap.has_kernel_under_nvlink_factor(), overlap.kernel_under_nvlink_factor()),
          factor(overlap.has_kernel_under_nic_factor(), overlap.kernel_under_nic_factor()),
          factor(overlap.has_collective_under_kernel_factor(),
                 overlap.collective_under_kernel_factor())};
}

FlopsPerSecond ProfileCostModel::peak_flops() const {
  return FlopsPerSecond(profile_.gpu().peak_dense_bf16_tflop_per_s().value() * 1e12);
}

Bytes ProfileCostModel::memory_capacity() const {
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  return RoundToBytes(profile_.gpu().memory_capacity_gib().value() * kBytesPerGib);
}

Picoseconds ProfileCostModel::optimizer_overhead() const {
  return FromSeconds(profile_.gpu().optimizer_step_ms().value() * 1e-3);
}

}  // namespace optimus::hw
