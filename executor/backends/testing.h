#pragma once
// For the tests of this folder: a cost model, and a step that uses all of a backend.

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cost_model.h"
#include "executor/backends/backend.h"

namespace optimus::executor {

// A millisecond for everything.
class FixedCosts : public CostModel {
 public:
  Picoseconds KernelTime(const Kernel& /*kernel*/) const override {
    return Picoseconds(1'000'000'000);
  }
  TransferCost CollectiveCost(const CollectiveWork& /*work*/, GroupShape /*group*/) const override {
    return {Picoseconds(1'000'000'000), Bytes(0), LinkScope::kNvlink};
  }
  TransferCost SendCost(Bytes /*bytes*/, bool /*same_node*/) const override {
    return {Picoseconds(1'000'000'000), Bytes(0), LinkScope::kNvlink};
  }
  BytesPerSecond LinkBandwidth(LinkScope /*scope*/) const override { return BytesPerSecond(1e9); }
  int gpus_per_node() const override { return 0; }
};

// A matrix product, then a collective of all ranks: of real data on real devices.
inline void RunKernelAndCollective(Backend& backend) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = "fc1";
  kernel.gemm = {64, 32, 16};
  kernel.flops = Flops(2.0 * 64 * 32 * 16);
  kernel.bytes = Bytes(std::int64_t{2} * (64 * 32 + 64 * 16 + 32 * 16));
  const std::vector<Kernel> kernels = {kernel};
  const CollectiveWork work{CollectiveKind::kAllReduce, "gradients", Bytes(1000)};
  Device& device = *backend.device;
  ASSERT_TRUE(device.Prepare(2, 1, kernels).ok());
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(device.Begin().ok());
    const absl::Status launched = device.Launch(ir::Stream::kCompute, kernels[0]);
    ASSERT_TRUE(launched.ok()) << launched;
    device.Record(ir::Stream::kCompute, 0);
    device.Wait(ir::Stream::kDataParallel, 0);
    CollectiveCall call;
    call.work = &work;
    ASSERT_TRUE(backend.ranks->Collective(ir::Stream::kDataParallel, call).ok());
    device.Record(ir::Stream::kDataParallel, 1);
    ASSERT_TRUE(device.Start().ok());
    absl::StatusOr<bool> done = false;
    for (int i = 0; i < 600 && done.ok() && !*done; ++i) {
      done = device.Synchronize(absl::Milliseconds(100));
    }
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_TRUE(*done);
    EXPECT_LE(device.TimeNs(0), device.TimeNs(1));
  }
}

}  // namespace optimus::executor
