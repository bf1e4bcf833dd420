// Sizes of work: what is refused as too large, and that nothing which is accepted overflows.

#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using testing::HandCosts;
using ::testing::HasSubstr;
using testing::ScheduleBuilder;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Kernel Gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = "qkv";
  kernel.gemm = {m, n, k};
  kernel.flops = Flops(1);
  kernel.bytes = Bytes(1);
  return kernel;
}

Kernel Attention(const AttentionShape& shape) {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.name = "core";
  kernel.attention = shape;
  kernel.flops = Flops(1);
  kernel.bytes = Bytes(1);
  return kernel;
}

Kernel Other(KernelKind kind) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.name = "norm";
  kernel.bytes = Bytes(1);
  kernel.fixed = Picoseconds(1);
  return kernel;
}

// Two stages that run a kernel; one message, and one collective over both.
Schedule With(const Kernel& kernel, Bytes message = Bytes(1), Bytes collective = Bytes(1),
              Picoseconds fixed = Picoseconds(0)) {
  ScheduleBuilder builder({1, 2, 1});
  const auto group = builder.AddGroup("model", false, true, false);
  const auto edge = builder.AddTransfer("edge", message.value(), fixed.value());
  const auto norm =
      builder.AddCollectiveWork(CollectiveKind::kAllReduce, collective.value(), group);
  builder.schedule().kernels = {kernel};
  Operation work;
  work.work = 0;
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  for (const int stage : {0, 1}) {
    builder.Add(stage, work, {});
    builder.AddCollective(stage, Stream::kDataParallel, testing::PhaseTag(Phase::kGradientSync),
                          norm);
  }
  return builder.Take();
}

void ExpectRefused(const Schedule& schedule, std::initializer_list<std::string> parts) {
  const absl::Status status = Validate(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("; hint: "));
}

TEST(ValidateWork, EveryDimensionHasALargestSize) {
  const std::string range = "hint: from 1 to 9007199254740992";
  ASSERT_TRUE(Validate(With(Gemm(1, 1, 1))).ok()) << Validate(With(Gemm(1, 1, 1)));
  ExpectRefused(With(Gemm(kHuge, 1, 1)),
                {"kernels[0] ('qkv').gemm.m: 9223372036854775807 is too large", range});
  ExpectRefused(With(Gemm(1, kHuge, 1)), {"('qkv').gemm.n: 9223372036854775807", range});
  ExpectRefused(With(Gemm(1, 1, kHuge)), {"('qkv').gemm.k: 9223372036854775807", range});
  ExpectRefused(With(Attention({kHuge, 1, 1, 1, 1})), {"('core').attention.sequences: ", range});
  ExpectRefused(With(Attention({1, kHuge, 1, 1, 1})), {"('core').attention.heads: ", range});
  ExpectRefused(With(Attention({1, 1, kHuge, 1, 1})), {"('core').attention.kv_heads: ", range});
  ExpectRefused(With(Attention({1, 1, 1, kHuge, 1})),
                {"('core').attention.sequence_length: ", range});
  ExpectRefused(With(Attention({1, 1, 1, 1, kHuge})), {"('core').attention.head_dim: ", range});
}

TEST(ValidateWork, SoHaveMatrices) {
  ExpectRefused(With(Gemm(4'000'000'000'000'000, 768, 256)),
                {"kernels[0] ('qkv').gemm: m * k = 4000000000000000 * 256 elements are too many",
                 "hint: at most 9007199254740992"});
  ExpectRefused(With(Gemm(1, kLargestSize, 2)), {"('qkv').gemm: k * n = "});
  ExpectRefused(With(Gemm(kLargestSize, 2, 1)), {"('qkv').gemm: m * n = "});
  ExpectRefused(With(Attention({1, 4'000'000'000'000'000, 1, 256, 64})),
                {"('core').attention: sequences * heads * sequence_length * head_dim = "
                 "1 * 4000000000000000 * 256 * 64 elements are too many"});
  ExpectRefused(With(Attention({1, 1, 1, 100'000'000, 1})),
                {"sequence_length * sequence_length = 100000000 * 100000000"});
}

TEST(ValidateWork, WhatIsLargeButRealIsAccepted) {
  // A million tokens at the width of GPT-175B, unfused too, and an lm_head of 2^18 words.
  constexpr std::int64_t kTokens = 1 << 20;
  for (Kernel kernel :
       {Gemm(kTokens, std::int64_t{4} * 12288, 12288), Gemm(96 * kTokens, kTokens, 128),
        Gemm(kTokens, 1 << 18, 12288), Attention({8, 96, 8, kTokens, 128, true, true}),
        Attention({1, 1, 1, kTokens * 64, 128, true, true}), Gemm(kLargestSize, 1, 1)}) {
    kernel.flops = Flops(9e24);
    kernel.bytes = Bytes(kLargestSize);
    const Schedule schedule = With(kernel, Bytes(kLargestSize), Bytes(kLargestSize));
    EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  }
}

TEST(ValidateWork, BytesAndDurationsAreBounded) {
  const Bytes above(kLargestSize + 1);
  Kernel kernel = Other(KernelKind::kMemoryBound);
  ExpectRefused(With(kernel, above), {"transfers[0] ('edge').bytes: 9007199254740993 is too large",
                                      "hint: from 0 to 9007199254740992"});
  ExpectRefused(
      With(kernel, Bytes(1), above),
      {"collectives[0] ('all_reduce').bytes: 9007199254740993 is too large", "from 1 to"});
  ExpectRefused(With(kernel, Bytes(0), Bytes(1), Picoseconds(kHuge)),
                {"transfers[0] ('edge').fixed_ps: 9223372036854775807 is too large",
                 "from 0 to 1000000000000000000"});
  kernel.bytes = above;
  ExpectRefused(With(kernel), {"('norm').hbm_bytes: 9007199254740993 is too large"});
  kernel = Other(KernelKind::kFixed);
  kernel.fixed = kLongestFixed;
  EXPECT_TRUE(Validate(With(kernel)).ok());
  kernel.fixed += Picoseconds(1);
  ExpectRefused(With(kernel), {"('norm').fixed_ps: 1000000000000000001 is too large"});
}

TEST(ValidateWork, FlopsAreAFiniteNumber) {
  for (const double flops : {-1.0, std::nan(""), HUGE_VAL, 1e300}) {
    for (Kernel kernel : {Gemm(1, 1, 1), Attention({1, 1, 1, 1, 1}),
                          Other(KernelKind::kMemoryBound), Other(KernelKind::kFixed)}) {
      kernel.flops = Flops(flops);
      ExpectRefused(With(kernel), {"').flops: ", "at most 1e+25"});
    }
  }
}

TEST(ValidateWork, KeyHeadsDivideHeads) {
  ExpectRefused(With(Attention({1, 3, 4, 16, 8})),
                {"kernels[0] ('core').attention.kv_heads: 4 do not divide the 3 heads"});
  ExpectRefused(With(Attention({1, 4, 3, 16, 8})), {"3 do not divide the 4 heads"});
  EXPECT_TRUE(Validate(With(Attention({1, 6, 2, 16, 8}))).ok());
}

// The twin: products in floating point, which cannot overflow.
bool Fits(std::initializer_list<std::int64_t> factors) {
  long double product = 1;
  for (const std::int64_t factor : factors) {
    if (factor < 1) return false;
    product *= static_cast<long double>(factor);
  }
  return product <= static_cast<long double>(kLargestSize);
}
bool FitsOrIsNone(Bytes bytes) { return bytes == Bytes(0) || Fits({bytes.value()}); }
bool Fits(const Kernel& kernel) {
  const GemmShape& g = kernel.gemm;
  const AttentionShape& a = kernel.attention;
  if (!FitsOrIsNone(kernel.bytes)) return false;
  if (kernel.kind == KernelKind::kGemm) {
    return Fits({g.m, g.k}) && Fits({g.k, g.n}) && Fits({g.m, g.n});
  }
  return a.kv_heads > 0 && a.heads % a.kv_heads == 0 &&
         Fits({a.sequences, a.heads, a.sequence_length, a.head_dim}) &&
         Fits({a.sequence_length, a.sequence_length});
}

// Of any magnitude, often at a power of two or next to it.
class Sizes {
 public:
  explicit Sizes(std::uint32_t seed) : random_(seed) {}
  std::int64_t Next() {
    const auto bits = static_cast<int>(random_() % 63);
    const std::int64_t power = std::int64_t{1} << bits;
    switch (random_() % 4) {
      case 0:
        return power;
      case 1:
        return power - 1;
      case 2:
        return -power;
      default:
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(power)) + 1;
    }
  }
  // Mostly small, so that some of the products fit.
  std::int64_t Small() {
    return random_() % 3 == 0 ? Next() : 1 + static_cast<std::int64_t>(random_() % 8);
  }

 private:
  std::mt19937_64 random_;
};

TEST(ValidateWork, AcceptsJustWhatFits) {
  int accepted = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    Sizes sizes(seed);
    Kernel kernel =
        seed % 2 == 0 ? Gemm(sizes.Small(), sizes.Small(), sizes.Small())
                      : Attention({sizes.Small(), sizes.Small(), 1, sizes.Small(), sizes.Small()});
    kernel.bytes = Bytes(sizes.Small());
    const Bytes message(sizes.Small()), collective(sizes.Small());
    const Schedule schedule = With(kernel, message, collective);
    const absl::Status status = Validate(schedule);
    const bool fits = Fits(kernel) && FitsOrIsNone(message) && Fits({collective.value()});
    EXPECT_EQ(status.ok(), fits) << "seed " << seed << ": " << status;
    ++(fits ? accepted : refused);
    if (!fits) continue;
    const absl::StatusOr<Timeline> timeline = CriticalPathRunner(HandCosts()).Run(schedule);
    ASSERT_TRUE(timeline.ok()) << "seed " << seed << ": " << timeline.status();
    EXPECT_GE(timeline->step, Picoseconds(std::max(message.value(), collective.value())));
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace optimus::ir
