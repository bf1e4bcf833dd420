#include "executor/cpu/cpu_device.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing_kernels.h"
#include "executor/cpu/primitives.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using testing::HasSubstr;

constexpr Bytes kSmallRegion(4 << 20);

Kernel Fixed(std::int64_t ps) {
  Kernel kernel;
  kernel.name = "optimizer";
  kernel.fixed = Picoseconds(ps);
  return kernel;
}

// One of every kind and pass.
std::vector<Kernel> LayerKernels() {
  return {GemmKernel("fc1", {48, 96, 32}),
          AttentionKernel({2, 4, 2, 48, 16, true, false}),
          MemoryBoundKernel(12345),
          GemmKernel("fc1_dgrad", {48, 32, 96}),
          GemmKernel("fc1_wgrad", {96, 32, 48}),
          AttentionKernel({2, 4, 2, 48, 16, true, true}),
          Fixed(1000)};
}

absl::Status RunStep(CpuDevice& device, const std::vector<Kernel>& kernels, int times) {
  if (absl::Status s = device.Begin(); !s.ok()) return s;
  for (int i = 0; i < times; ++i) {
    for (const Kernel& kernel : kernels) {
      if (absl::Status s = device.Launch(ir::Stream::kCompute, kernel); !s.ok()) return s;
    }
  }
  device.Record(ir::Stream::kCompute, 0);
  if (absl::Status s = device.Start(); !s.ok()) return s;
  for (;;) {
    const absl::StatusOr<bool> done = device.Synchronize(absl::Milliseconds(50));
    if (!done.ok() || *done) return done.status();
  }
}

int Threads() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  }
  return -1;
}

// The arena is small, so that every place is used hundreds of times.
TEST(CpuDevice, ThousandsOfKernelsStayFinite) {
  for (const bool bf16 : {false, true}) {
    if (bf16 && !HasBf16()) continue;
    CpuDevice device({}, bf16, kSmallRegion);
    const std::vector<Kernel> kernels = LayerKernels();
    ASSERT_TRUE(device.Prepare(1, 0, kernels).ok());
    const int threads = Threads();
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(RunStep(device, kernels, 300).ok());
    EXPECT_TRUE(device.OutputsAreFinite());
    EXPECT_EQ(Threads(), threads) << "oneDNN started threads of its own";
  }
}

TEST(CpuDevice, MoreBytesThanTheArenaHolds) {
  CpuDevice device({}, false, kSmallRegion);
  const std::vector<Kernel> kernels = {MemoryBoundKernel(50 << 20)};
  ASSERT_TRUE(device.Prepare(1, 0, kernels).ok());
  EXPECT_TRUE(RunStep(device, kernels, 2).ok());
}

TEST(CpuDevice, AFixedKernelTakesItsTime) {
  CpuDevice device({}, false, kSmallRegion);
  const std::vector<Kernel> kernels = {Fixed(5'000'000'000)};
  ASSERT_TRUE(device.Prepare(2, 0, kernels).ok());
  ASSERT_TRUE(device.Begin().ok());
  device.Record(ir::Stream::kCompute, 0);
  ASSERT_TRUE(device.Launch(ir::Stream::kCompute, kernels[0]).ok());
  device.Record(ir::Stream::kCompute, 1);
  ASSERT_TRUE(device.Start().ok());
  while (!*device.Synchronize(absl::Seconds(1))) {
  }
  EXPECT_GE(device.TimeNs(1) - device.TimeNs(0), 5'000'000);
}

TEST(CpuDevice, AnotherScheduleAddsItsKernels) {
  CpuDevice device({}, false, kSmallRegion);
  ASSERT_TRUE(device.Prepare(1, 0, {GemmKernel("fc1", {8, 8, 8})}).ok());
  const std::vector<Kernel> larger = {
      GemmKernel("fc1", {512, 1024, 1024})};  // beyond the first arena
  const absl::Status missing = RunStep(device, larger, 1);
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("'fc1' was not prepared"));

  CpuDevice other({}, false, kSmallRegion);
  ASSERT_TRUE(other.Prepare(1, 0, {GemmKernel("fc1", {8, 8, 8})}).ok());
  ASSERT_TRUE(other.Prepare(1, 0, larger).ok());
  EXPECT_TRUE(RunStep(other, larger, 3).ok());
  EXPECT_TRUE(RunStep(other, {GemmKernel("fc2", {8, 8, 8})}, 3).ok());  // same shape, another name
}

TEST(CpuDevice, ErrorsNameTheKernel) {
  CpuDevice device({}, false, kSmallRegion);
  const absl::Status empty = device.Prepare(1, 0, {GemmKernel("fc2", {8, 0, 8})});
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(empty.message()), HasSubstr("'fc2'"));
  const absl::Status huge = device.Prepare(1, 0, {GemmKernel("lm_head", {1 << 22, 1 << 22, 64})});
  EXPECT_EQ(huge.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(huge.message()), HasSubstr("gemm kernel 'lm_head': needs"));
}

// Whatever the sizes: an error and no product that overflows, before oneDNN makes anything.
TEST(CpuDevice, HugeShapesAreRefusedAtOnce) {
  CpuDevice device({}, false, kSmallRegion);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t size : {std::int64_t{1} << 31, std::int64_t{1} << 53, kHuge}) {
    for (const Kernel& kernel :
         {GemmKernel("fc1", {size, size, size}), GemmKernel("fc1_wgrad", {size, 1024, 1}),
          GemmKernel("fc1_dgrad", {1, size, 1024}), AttentionKernel({1, size, 1, 256, 64}),
          AttentionKernel({size, 1, 1, size, size}),
          AttentionKernel({1, 1, 1, size, 64, true, true})}) {
      const absl::Status status = device.Prepare(1, 0, {kernel});
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(" for its operands, but kernels may"));
    }
  }
}

TEST(CpuDevice, ARankTakesItsPartOfTheMemory) {
  const Bytes machine = CpuDevice({}, false, kSmallRegion).memory();
  const std::int64_t side = std::int64_t{1} << 10;
  HostOptions options;
  options.ranks_of_machine = static_cast<int>(machine.value() / (16 * side * side));
  CpuDevice shared(options, false, kSmallRegion);
  const Kernel kernel = GemmKernel("fc1", {side, side, side});
  const absl::Status status = shared.Prepare(1, 0, {kernel});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("of ", GibText(machine), " for ", options.ranks_of_machine,
                                     " ranks); hint: ")));
  EXPECT_TRUE(CpuDevice({}, false, kSmallRegion).Prepare(1, 0, {kernel}).ok());
}

// Each alone would fit, but an arena has to hold the inputs of one and the outputs of the other.
TEST(CpuDevice, CountsWhatAllKernelsNeed) {
  HostOptions options;
  const std::int64_t machine = CpuDevice({}, false, kSmallRegion).memory().value();
  options.ranks_of_machine = static_cast<int>(machine / (std::int64_t{20} << 20));
  const Kernel wide = GemmKernel("out", {1024, 1024 + 512, 16});
  const Kernel deep = GemmKernel("in", {1024, 16, 1024});
  for (const Kernel& kernel : {wide, deep}) {
    CpuDevice device(options, false, kSmallRegion);
    EXPECT_TRUE(device.Prepare(1, 0, {kernel}).ok());
  }
  CpuDevice device(options, false, kSmallRegion);
  const absl::Status both = device.Prepare(1, 0, {wide, deep});
  EXPECT_EQ(both.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(both.message()), HasSubstr("'in': needs"));
  EXPECT_THAT(std::string(both.message()), HasSubstr(" with others'"));
}

TEST(CpuDevice, DescriptionSaysWhatComputes) {
  const CpuDevice device({}, false, kSmallRegion);
  EXPECT_THAT(device.Description(), HasSubstr("oneDNN " + OneDnnVersion()));
  EXPECT_THAT(device.Description(), HasSubstr(InstructionSet()));
  EXPECT_THAT(device.Description(), HasSubstr(", f32,"));
  EXPECT_THAT(CpuDevice({}, true, kSmallRegion).Description(), HasSubstr(", bf16,"));
}

// Run a second time with oneDNN held to AVX2 (see CMakeLists.txt), where bf16 must be refused.
TEST(CpuDevice, Bf16OnlyWhereTheCpuHasIt) {
  const bool held_back = std::getenv("OPTIMUS_TEST_WITHOUT_BF16") != nullptr;
  ASSERT_FALSE(held_back && HasBf16());
  CpuDevice device({}, true, kSmallRegion);
  const absl::Status status = device.Prepare(1, 0, {GemmKernel("fc1", {8, 8, 8})});
  if (HasBf16()) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("bf16 was asked for"));
  }
}

}  // namespace
}  // namespace optimus::executor
