#include "executor/cpu/gemm.h"

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

struct Case {
  std::int64_t m, n, k;
  Transpose a, b;
  float alpha, beta;
};

std::vector<float> RandomValues(std::size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

float At(const ConstMatrix& x, std::int64_t i, std::int64_t j) {
  return x.transpose == Transpose::kYes ? x.data[j * x.stride + i] : x.data[i * x.stride + j];
}

// The twin: the definition, in double.
void PlainGemm(const Case& c, const ConstMatrix& a, const ConstMatrix& b, Matrix out) {
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < c.k; ++l) sum += double{At(a, i, l)} * At(b, l, j);
      float& target = out.data[i * out.stride + j];
      target = static_cast<float>(c.alpha * sum + (c.beta == 0 ? 0 : c.beta * target));
    }
  }
}

void ExpectLikePlain(const Case& c, std::mt19937& random) {
  constexpr std::int64_t kPad = 3;  // rows are longer than they need be
  const bool ta = c.a == Transpose::kYes;
  const bool tb = c.b == Transpose::kYes;
  const std::int64_t lda = (ta ? c.m : c.k) + kPad;
  const std::int64_t ldb = (tb ? c.k : c.n) + kPad;
  const std::int64_t ldc = c.n + kPad;
  const std::vector<float> a = RandomValues((ta ? c.k : c.m) * lda, random);
  const std::vector<float> b = RandomValues((tb ? c.n : c.k) * ldb, random);
  std::vector<float> out = RandomValues(c.m * ldc, random);
  std::vector<float> expected = out;
  const ConstMatrix ma{a.data(), lda, c.a};
  const ConstMatrix mb{b.data(), ldb, c.b};
  PlainGemm(c, ma, mb, {expected.data(), ldc});
  ASSERT_TRUE(Gemm(c.m, c.n, c.k, c.alpha, ma, mb, c.beta, {out.data(), ldc}).ok());
  for (std::size_t i = 0; i < out.size(); ++i) {  // what lies between rows is left alone
    ASSERT_NEAR(out[i], expected[i], 2e-6 * static_cast<double>(c.k + 1)) << i;
  }
}

TEST(Gemm, LikePlainLoopsInAllLayouts) {
  std::mt19937 random(7);
  for (const Transpose a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose b : {Transpose::kNo, Transpose::kYes}) {
      for (const auto& [alpha, beta] : std::vector<std::pair<float, float>>{{1, 0}, {0.5, 1}}) {
        ExpectLikePlain({1, 1, 1, a, b, alpha, beta}, random);
        ExpectLikePlain({5, 7, 3, a, b, alpha, beta}, random);
        ExpectLikePlain({33, 65, 129, a, b, alpha, beta}, random);
        ExpectLikePlain({64, 48, 96, a, b, alpha, beta}, random);
      }
    }
  }
}

TEST(Gemm, NothingToAddOnlyScales) {
  std::vector<float> c = {1, 2, 3, 4};
  ASSERT_TRUE(Gemm(2, 2, 0, 1, {nullptr, 0}, {nullptr, 2}, 0.5, {c.data(), 2}).ok());
  EXPECT_THAT(c, testing::ElementsAre(0.5, 1, 1.5, 2));
  ASSERT_TRUE(Gemm(2, 1, 0, 1, {nullptr, 0}, {nullptr, 1}, 0, {c.data(), 2}).ok());
  EXPECT_THAT(c, testing::ElementsAre(0, 1, 0, 2));
}

TEST(Gemm, RefusesStridesThatAreTooShort) {
  std::vector<float> x(16);
  const absl::Status status = Gemm(2, 2, 4, 1, {x.data(), 3}, {x.data(), 2}, 0, {x.data(), 2});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("stride of A is 3, but its rows have 4 elements"));
  EXPECT_FALSE(Gemm(-1, 2, 4, 1, {x.data(), 4}, {x.data(), 2}, 0, {x.data(), 2}).ok());
}

}  // namespace
}  // namespace optimus::executor
