#include "executor/cpu/training_gemm.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/testing_kernels.h"
#include "executor/cpu/sizes.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

std::vector<float> Numbers(std::int64_t count, int seed) {
  std::vector<float> numbers(count);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>((i * 7 + seed) % 11) - 5;
  }
  return numbers;
}

// Runs the product on whole numbers, so that every sum is exact.
std::vector<float> Multiply(const Kernel& kernel, const std::vector<float>& a,
                            const std::vector<float>& b, std::vector<float> c) {
  auto product = MatMul::Create(TrainingGemm(kernel, Element::kF32));
  EXPECT_TRUE(product.ok()) << product.status();
  const auto size = static_cast<std::size_t>((product->scratch().value() + 63) / 64 * 64 + 64);
  std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(64, size), std::free);
  EXPECT_TRUE(
      product->Run(a.data(), b.data(), c.data(), static_cast<std::byte*>(scratch.get())).ok());
  return c;
}

// A linear layer of 17 tokens from 12 to 20 features, against its definition.
constexpr std::int64_t kTokens = 17, kIn = 12, kOut = 20;

TEST(TrainingGemm, Forward) {
  const auto x = Numbers(kTokens * kIn, 1);
  const auto w = Numbers(kIn * kOut, 2);
  const auto y =
      Multiply(GemmKernel("fc1", {kTokens, kOut, kIn}), x, w, Numbers(kTokens * kOut, 3));
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t o = 0; o < kOut; ++o) {
      float sum = 0;
      for (std::int64_t i = 0; i < kIn; ++i) sum += x[t * kIn + i] * w[i * kOut + o];
      ASSERT_EQ(y[t * kOut + o], sum) << t << " " << o;
    }
  }
}

TEST(TrainingGemm, DataGradientTakesTheForwardWeights) {
  const auto dy = Numbers(kTokens * kOut, 1);
  const auto w = Numbers(kIn * kOut, 2);
  const auto dx =
      Multiply(GemmKernel("fc1_dgrad", {kTokens, kIn, kOut}), dy, w, Numbers(kTokens * kIn, 3));
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t i = 0; i < kIn; ++i) {
      float sum = 0;
      for (std::int64_t o = 0; o < kOut; ++o) sum += dy[t * kOut + o] * w[i * kOut + o];
      ASSERT_EQ(dx[t * kIn + i], sum) << t << " " << i;
    }
  }
}

TEST(TrainingGemm, WeightGradientIsAdded) {
  const auto dy = Numbers(kTokens * kOut, 1);
  const auto x = Numbers(kTokens * kIn, 2);
  const auto before = Numbers(kOut * kIn, 3);
  const auto dw = Multiply(GemmKernel("fc1_wgrad", {kOut, kIn, kTokens}), dy, x, before);
  for (std::int64_t o = 0; o < kOut; ++o) {
    for (std::int64_t i = 0; i < kIn; ++i) {
      float sum = before[o * kIn + i];
      for (std::int64_t t = 0; t < kTokens; ++t) sum += dy[t * kOut + o] * x[t * kIn + i];
      ASSERT_EQ(dw[o * kIn + i], sum) << o << " " << i;
    }
  }
}

TEST(TrainingGemm, OnlyTheEndOfTheNameCounts) {
  EXPECT_EQ(TrainingGemm(GemmKernel("qk_dgrad_q", {2, 2, 2}), Element::kF32).b, Transpose::kNo);
  EXPECT_EQ(TrainingGemm(GemmKernel("lm_head_dgrad", {2, 2, 2}), Element::kF32).b, Transpose::kYes);
}

TEST(TrainingGemm, Bytes) {
  const MatMulShape forward = TrainingGemm(GemmKernel("fc1", {3, 5, 7}), Element::kBf16);
  EXPECT_EQ(BytesOfA(forward), Bytes(42));
  EXPECT_EQ(BytesOfB(forward), Bytes(70));
  EXPECT_EQ(BytesOfC(forward), Bytes(30));
  // Gradients of weights are summed in f32.
  const MatMulShape gradient = TrainingGemm(GemmKernel("fc1_wgrad", {3, 5, 7}), Element::kBf16);
  EXPECT_EQ(BytesOfA(gradient), Bytes(42));
  EXPECT_EQ(BytesOfC(gradient), Bytes(60));
}

TEST(TrainingGemm, BytesOfHugeShapesDoNotOverflow) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const MatMulShape shape = TrainingGemm(GemmKernel("fc1", {kHuge, 2, kHuge}), Element::kF32);
  EXPECT_EQ(BytesOfA(shape), Bytes(kEndless));
  EXPECT_EQ(BytesOfB(shape), Bytes(kEndless));
  EXPECT_EQ(BytesOfC(shape), Bytes(kEndless));
  EXPECT_EQ(SaturatedProduct({kHuge, 0, kHuge}), 0);
  EXPECT_EQ(SaturatedProduct({kHuge, kHuge, 0}), 0);
  EXPECT_EQ(SaturatedProduct({kEndless / 8, 2, 4}), kEndless);
  EXPECT_EQ(SaturatedProduct({kEndless / 8, 2, 3}), kEndless / 8 * 6);
}

// oneDNN 2.6 crashes at 2^33, and does too little before.
TEST(TrainingGemm, SizesBeyond32BitsAreRefused) {
  for (const std::int64_t size : {std::int64_t{1} << 31, std::int64_t{5'000'000'000},
                                  std::int64_t{1} << 33, std::int64_t{1} << 53}) {
    for (const GemmShape& shape :
         {GemmShape{size, 2, 2}, GemmShape{2, size, 2}, GemmShape{2, 2, size}}) {
      const absl::Status status =
          MatMul::Create(TrainingGemm(GemmKernel("fc1", shape), Element::kF32)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
      EXPECT_NE(status.message().find("too large for oneDNN; hint: at most 2147483647"),
                absl::string_view::npos);
    }
    EXPECT_EQ(Softmax::Create(2, size, Element::kF32).status().code(),
              absl::StatusCode::kUnimplemented);
    EXPECT_EQ(ToBf16::Create(size).status().code(), absl::StatusCode::kUnimplemented);
  }
}

TEST(TrainingGemm, EmptyShapesAreRefused) {
  EXPECT_EQ(
      MatMul::Create(TrainingGemm(GemmKernel("fc1", {3, 0, 7}), Element::kF32)).status().code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace optimus::executor
