#include "executor/cuda/device_check.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GpuFacts Good() {
  GpuFacts facts;
  facts.host = "node1";
  facts.local_rank = 2;
  facts.local_size = 8;
  facts.driver = true;
  facts.driver_version = 13020;
  facts.needed_version = 13000;
  facts.gpus = 8;
  facts.visible = "unset";
  facts.name = "NVIDIA H100 80GB HBM3";
  facts.generation = "sm_90";
  facts.bus = "0000:3b:00.0";
  facts.connections = 32;
  return facts;
}

std::string ErrorOf(const GpuFacts& facts) {
  const absl::Status status = CheckGpu(facts);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  return std::string(status.message());
}

TEST(CheckGpu, TakesAGoodOne) {
  EXPECT_TRUE(CheckGpu(Good()).ok());
  EXPECT_EQ(DeviceOf(Good()), 2);
}

TEST(CheckGpu, NoDriver) {
  GpuFacts facts = Good();
  facts.driver = false;
  facts.driver_version = 0;
  facts.gpus = 0;
  EXPECT_THAT(ErrorOf(facts), HasSubstr("cuda: no GPU found (no NVIDIA driver)"));
}

TEST(CheckGpu, NoGpu) {
  GpuFacts facts = Good();
  facts.gpus = 0;
  facts.visible = "''";
  facts.error = "no CUDA-capable device is detected";
  EXPECT_EQ(ErrorOf(facts),
            "cuda: no GPU found (driver for CUDA 13.2, CUDA_VISIBLE_DEVICES ''): no CUDA-capable "
            "device is detected; hint: run it where nvidia-smi lists a GPU, or use --backend=cpu");
}

TEST(CheckGpu, OldDriver) {
  GpuFacts facts = Good();
  facts.driver_version = 12040;
  facts.gpus = 0;
  EXPECT_THAT(ErrorOf(facts), HasSubstr("the driver is for CUDA 12.4, this build needs 13.0"));
}

TEST(CheckGpu, NoCodeForIt) {
  GpuFacts facts = Good();
  facts.code = false;
  facts.name = "Tesla T4";
  facts.generation = "sm_75";
  EXPECT_THAT(ErrorOf(facts), AllOf(HasSubstr("no code for Tesla T4 (sm_75)"),
                                    HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=75")));
}

TEST(CheckGpu, FewerGpusThanRanks) {
  GpuFacts facts = Good();
  facts.gpus = 2;
  EXPECT_EQ(DeviceOf(facts), -1);
  EXPECT_THAT(ErrorOf(facts), HasSubstr("8 ranks on node1 have 2 GPUs"));
}

TEST(CheckGpu, ALauncherMayShowEachRankItsOwn) {
  GpuFacts facts = Good();
  facts.gpus = 1;
  EXPECT_EQ(DeviceOf(facts), 0);
  EXPECT_TRUE(CheckGpu(facts).ok());
}

TEST(CheckGpu, OtherTroubleIsPassedOn) {
  GpuFacts facts = Good();
  facts.error = "out of memory";
  EXPECT_THAT(ErrorOf(facts), HasSubstr("cannot use GPU 2 of node1: out of memory"));
  facts = Good();
  facts.libraries = "libnccl.so.2 not found";
  EXPECT_THAT(ErrorOf(facts),
              AllOf(HasSubstr("libnccl.so.2 not found"), HasSubstr("LD_LIBRARY_PATH")));
  facts = Good();
  facts.connections = 1;
  EXPECT_THAT(ErrorOf(facts), HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS is 1"));
}

TEST(CheckCards, NoTwoRanksMayShareOne) {
  std::vector<GpuFacts> ranks(3, Good());
  ranks[1].bus = "0000:5e:00.0";
  ranks[2].host = "node2";  // the same address on another host is another card
  EXPECT_TRUE(CheckCards(ranks).ok());
  ranks[2].host = "node1";
  const absl::Status status = CheckCards(ranks);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ranks 0 and 2 have one GPU (NVIDIA H100 80GB HBM3 at 0000:3b:00.0 of "
                        "node1)"));
}

TEST(GpuFacts, TravelAsText) {
  const GpuFacts facts = FromText(ToText(Good()));
  EXPECT_EQ(facts.host, "node1");
  EXPECT_EQ(facts.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(facts.bus, "0000:3b:00.0");
  EXPECT_EQ(FromText("nonsense").bus, "");
}

}  // namespace
}  // namespace optimus::executor::cuda
