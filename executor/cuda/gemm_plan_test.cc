#include "executor/cuda/gemm_plan.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "executor/cuda/testing_gemm.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

Kernel Gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = name;
  kernel.gemm = {m, n, k};
  return kernel;
}

// A matrix by rows, as PyTorch stores it.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

Matrix Random(std::int64_t rows, std::int64_t columns) {
  static std::mt19937 random(7);
  std::uniform_real_distribution<double> distribution(-1, 1);
  Matrix matrix = {rows, columns, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i) matrix.values.push_back(distribution(random));
  return matrix;
}

TEST(GemmPlan, RolesComeFromNames) {
  EXPECT_EQ(RoleOf("fc1"), GemmRole::kForward);
  EXPECT_EQ(RoleOf("fc1_dgrad"), GemmRole::kDataGradient);
  EXPECT_EQ(RoleOf("lm_head_wgrad"), GemmRole::kWeightGradient);
}

constexpr std::int64_t kTokens = 5, kIn = 3, kOut = 4;

TEST(GemmPlan, ForwardIsXTimesWTransposed) {
  const Matrix x = Random(kTokens, kIn);
  const Matrix w = Random(kOut, kIn);
  const GemmProblem problem = PlanGemm(Gemm("fc1", kTokens, kOut, kIn));
  std::vector<double> y(kTokens * kOut);
  ReferenceGemm(problem, w.values, 0, x.values, 0, y, 0);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t out = 0; out < kOut; ++out) {
      double expected = 0;
      for (std::int64_t in = 0; in < kIn; ++in) expected += x.at(token, in) * w.at(out, in);
      EXPECT_NEAR(y[static_cast<std::size_t>(token * kOut + out)], expected * problem.alpha, 1e-12);
    }
  }
  EXPECT_EQ(BytesOfA(problem), kOut * kIn * 2);
  EXPECT_EQ(BytesOfB(problem), kTokens * kIn * 2);
  EXPECT_EQ(BytesOfC(problem), kTokens * kOut * 2);
}

TEST(GemmPlan, DataGradientIsDyTimesW) {
  const Matrix dy = Random(kTokens, kOut);
  const Matrix w = Random(kOut, kIn);
  const GemmProblem problem = PlanGemm(Gemm("fc1_dgrad", kTokens, kIn, kOut));
  std::vector<double> dx(kTokens * kIn);
  ReferenceGemm(problem, w.values, 0, dy.values, 0, dx, 0);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t in = 0; in < kIn; ++in) {
      double expected = 0;
      for (std::int64_t out = 0; out < kOut; ++out) expected += dy.at(token, out) * w.at(out, in);
      EXPECT_NEAR(dx[static_cast<std::size_t>(token * kIn + in)], expected * problem.alpha, 1e-12);
    }
  }
  EXPECT_FALSE(problem.float_output);
  EXPECT_EQ(BytesOfA(problem), kOut * kIn * 2);
  EXPECT_EQ(BytesOfB(problem), kTokens * kOut * 2);
  EXPECT_EQ(BytesOfC(problem), kTokens * kIn * 2);
}

TEST(GemmPlan, WeightGradientIsAddedInFp32) {
  const Matrix dy = Random(kTokens, kOut);
  const Matrix x = Random(kTokens, kIn);
  const GemmProblem problem = PlanGemm(Gemm("fc1_wgrad", kOut, kIn, kTokens));
  std::vector<double> dw(kOut * kIn, 10.0);
  ReferenceGemm(problem, x.values, 0, dy.values, 0, dw, 0);
  for (std::int64_t out = 0; out < kOut; ++out) {
    for (std::int64_t in = 0; in < kIn; ++in) {
      double expected = 0;
      for (std::int64_t token = 0; token < kTokens; ++token) {
        expected += dy.at(token, out) * x.at(token, in);
      }
      EXPECT_NEAR(dw[static_cast<std::size_t>(out * kIn + in)], 10 + expected * problem.alpha,
                  1e-12);
    }
  }
  EXPECT_TRUE(problem.float_output);
  EXPECT_EQ(BytesOfA(problem), kTokens * kIn * 2);
  EXPECT_EQ(BytesOfB(problem), kTokens * kOut * 2);
  EXPECT_EQ(BytesOfC(problem), kOut * kIn * 4);
}

TEST(GemmPlan, AlignmentIsThatOfTheAddress) {
  EXPECT_EQ(AlignmentOf(0), 256);
  EXPECT_EQ(AlignmentOf(128), 256);
  EXPECT_EQ(AlignmentOf(192), 128);
  EXPECT_EQ(AlignmentOf(8), 16);
  EXPECT_EQ(AlignmentOf(7), 2);
}

// Inputs of variance 1 give outputs of variance 1, whatever k is.
TEST(GemmPlan, OutputsAreAsLargeAsInputs) {
  for (const std::int64_t k : {16, 256}) {
    const GemmProblem problem = PlanGemm(Gemm("fc1", 32, 32, k));
    Matrix x = Random(32, k);
    Matrix w = Random(32, k);
    for (double& value : x.values) value *= std::sqrt(3.0);  // uniform in [-1, 1]: variance 1/3
    for (double& value : w.values) value *= std::sqrt(3.0);
    std::vector<double> y(std::size_t{32} * 32);
    ReferenceGemm(problem, w.values, 0, x.values, 0, y, 0);
    double squares = 0;
    for (const double value : y) squares += value * value;
    EXPECT_NEAR(squares / static_cast<double>(y.size()), 1, 0.25) << k;
  }
}

}  // namespace
}  // namespace optimus::executor::cuda
