// What happens where there is no GPU, for real; with one, that a small step runs.
#include "executor/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

bool HaveGpu() {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
}

TEST(CudaBackend, SaysWhatItWasMadeWith) {
  EXPECT_THAT(DescribeCuda(), AllOf(HasSubstr("CUDA "), HasSubstr("NCCL 2.")));
}

TEST(CudaBackend, WithoutAGpuItFailsWithOneLine) {
  if (HaveGpu()) GTEST_SKIP() << "there is a GPU";
  const std::unique_ptr<World> world = MakeSelfWorld();
  const auto backend = MakeCuda(*world, CudaOptions());
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(backend.status().message()),
      AllOf(HasSubstr("cuda: no GPU found ("), HasSubstr("; hint: "), Not(HasSubstr("\n"))));
}

// Runs one step with stamps, one without, and one from a graph.
class OnGpu : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!HaveGpu()) GTEST_SKIP() << "there is no GPU";
    CudaOptions options;
    options.graph = GetParam();
    options.checked_steps = GetParam() ? 2 : 1;  // with a graph, one less is checked
    auto backend = MakeCuda(*world_, options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  absl::Status Step(int step, std::int32_t expected) {
    Device& device = *backend_.device;
    const ir::Stream stream = ir::Stream::kCompute;
    absl::Status status = device.Begin();
    for (std::uint32_t i = 0; i < kernels_.size() && status.ok(); ++i) {
      Stamp stamp;
      stamp.step = step;
      stamp.operation = static_cast<std::int32_t>(i);
      device.Record(stream, BeginEvent(i));
      if (i > 0) {
        Stamp before = stamp;
        before.operation = i == 1 ? expected : stamp.operation - 1;
        device.CheckStamp(stream, i - 1, before, nullptr);
      }
      status = device.Launch(stream, kernels_[i]);
      device.WriteStamp(stream, i, stamp);
      device.Record(stream, EndEvent(i));
    }
    if (status.ok()) status = device.Start();
    while (status.ok()) {
      const absl::StatusOr<bool> ended = device.Synchronize(absl::Milliseconds(50));
      status = ended.status();
      if (ended.ok() && *ended) break;
    }
    return status;
  }

  void Prepare() {
    Kernel gemm;
    gemm.kind = KernelKind::kGemm;
    gemm.name = "fc1_wgrad";
    gemm.gemm = {1024, 512, 2048};
    Kernel attention;
    attention.kind = KernelKind::kAttention;
    attention.name = "attention_dgrad";
    attention.attention = {2, 4, 2, 640, 128, true, true};
    Kernel norm;
    norm.kind = KernelKind::kMemoryBound;
    norm.name = "norm";
    norm.bytes = Bytes(100'000'001);
    Kernel fixed;
    fixed.kind = KernelKind::kFixed;
    fixed.name = "fixed";
    fixed.fixed = Picoseconds(2'000'000'000);
    kernels_ = {gemm, attention, norm, fixed};
    const auto count = static_cast<std::uint32_t>(kernels_.size());
    const absl::Status prepared = backend_.device->Prepare(2 * count, count, kernels_);
    ASSERT_TRUE(prepared.ok()) << prepared;
  }

  std::unique_ptr<World> world_ = MakeSelfWorld();
  CudaBackend backend_;
  std::vector<Kernel> kernels_;
};

TEST_P(OnGpu, StepsRunInOrderAndTakeTheirTime) {
  Prepare();
  for (int step = 0; step < 4; ++step) {
    const absl::Status status = Step(step, 0);
    ASSERT_TRUE(status.ok()) << status;
    std::int64_t before = 0;
    for (std::uint32_t i = 0; i < kernels_.size(); ++i) {
      EXPECT_TRUE(backend_.device->HasHappened(EndEvent(i)));
      const std::int64_t begin = backend_.device->TimeNs(BeginEvent(i));
      const std::int64_t end = backend_.device->TimeNs(EndEvent(i));
      EXPECT_GE(begin, before);
      EXPECT_GT(end, begin);
      before = end;
    }
    EXPECT_GE(backend_.device->TimeNs(EndEvent(3)) - backend_.device->TimeNs(BeginEvent(3)),
              1'990'000);
  }
}

TEST_P(OnGpu, AWrongStampStopsTheStep) {
  Prepare();
  const absl::Status status = Step(0, 7);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("operation 7"), HasSubstr("operation 0")));
}

TEST_P(OnGpu, WhatWasNotPreparedIsRefused) {
  Prepare();
  Kernel other = kernels_[0];
  other.name = "other";
  ASSERT_TRUE(backend_.device->Begin().ok());
  EXPECT_THAT(std::string(backend_.device->Launch(ir::Stream::kCompute, other).message()),
              HasSubstr("kernel 'other' was not given"));
  EXPECT_EQ(backend_.device->Launch(ir::Stream::kDataParallel, kernels_[0]).code(),
            absl::StatusCode::kUnimplemented);
}

INSTANTIATE_TEST_SUITE_P(EagerAndGraph, OnGpu, ::testing::Bool());

}  // namespace
}  // namespace optimus::executor
