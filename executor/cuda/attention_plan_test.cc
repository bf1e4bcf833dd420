// Plans are carried out on the CPU, GEMM by GEMM, and compared with attention as its definition
// says it, and with differences of it.
#include "executor/cuda/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "executor/cuda/testing_gemm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

using Tensors = std::map<AttentionTensor, std::vector<double>>;

std::vector<double> Random(std::int64_t elements) {
  static std::mt19937 random(11);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(distribution(random));
  return values;
}

Tensors Inputs(const AttentionShape& shape) {
  Tensors tensors;
  for (const AttentionTensor tensor : {AttentionTensor::kQuery, AttentionTensor::kKey,
                                       AttentionTensor::kValue, AttentionTensor::kOutputGradient}) {
    tensors[tensor] = Random(ElementsOf(shape, tensor));
  }
  return tensors;
}

// What the GPU's softmax kernels do, row by row.
void Softmax(const SoftmaxStep& step, Tensors& tensors) {
  for (std::int64_t row = 0; row < step.rows; ++row) {
    const std::int64_t position = step.first_position + row % step.rows_per_pair / step.group;
    const std::int64_t seen = step.causal ? std::min(step.keys, position + 1) : step.keys;
    double* scores = tensors[AttentionTensor::kScores].data() + row * step.row_stride;
    if (step.backward) {
      double* gradients = tensors[AttentionTensor::kScoreGradients].data() + row * step.row_stride;
      double sum = 0;
      for (std::int64_t i = 0; i < seen; ++i) sum += scores[i] * gradients[i];
      for (std::int64_t i = 0; i < step.keys; ++i) {
        gradients[i] = i < seen ? step.scale * scores[i] * (gradients[i] - sum) : 0;
      }
      continue;
    }
    double largest = scores[0];
    for (std::int64_t i = 0; i < seen; ++i) largest = std::max(largest, scores[i]);
    double sum = 0;
    for (std::int64_t i = 0; i < seen; ++i) sum += std::exp(step.scale * (scores[i] - largest));
    for (std::int64_t i = 0; i < step.keys; ++i) {
      scores[i] = i < seen ? std::exp(step.scale * (scores[i] - largest)) / sum : 0;
    }
  }
}

// All that a plan writes starts as a number that would be seen.
void CarryOut(const AttentionPlan& plan, Tensors& tensors) {
  for (const AttentionTensor tensor :
       {AttentionTensor::kOutput, AttentionTensor::kQueryGradient, AttentionTensor::kKeyGradient,
        AttentionTensor::kValueGradient}) {
    tensors[tensor].assign(static_cast<std::size_t>(ElementsOf(plan.shape, tensor)), 1e9);
  }
  for (const AttentionTensor tensor :
       {AttentionTensor::kScores, AttentionTensor::kScoreGradients}) {
    tensors[tensor].assign(static_cast<std::size_t>(plan.score_elements), 1e9);
  }
  for (const auto& step : plan.steps) {
    if (const auto* gemm = std::get_if<AttentionGemm>(&step)) {
      ReferenceGemm(gemm->problem, tensors[gemm->a.tensor], gemm->a.offset, tensors[gemm->b.tensor],
                    gemm->b.offset, tensors[gemm->c.tensor], gemm->c.offset);
    } else {
      Softmax(std::get<SoftmaxStep>(step), tensors);
    }
  }
}

// softmax(Q K^T / sqrt(d)) V of every sequence and query head, one query after another.
std::vector<double> Attention(const AttentionShape& shape, const Tensors& tensors) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t length = shape.sequence_length;
  const std::int64_t dim = shape.head_dim;
  const auto& q = tensors.at(AttentionTensor::kQuery);
  const auto& k = tensors.at(AttentionTensor::kKey);
  const auto& v = tensors.at(AttentionTensor::kValue);
  std::vector<double> out(q.size());
  for (std::int64_t query = 0; query < shape.sequences * shape.kv_heads * length * group; ++query) {
    const std::int64_t pair = query / (length * group);
    const std::int64_t position = query / group % length;
    const std::int64_t seen = shape.causal ? position + 1 : length;
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t key = 0; key < seen; ++key) {
      double score = 0;
      for (std::int64_t i = 0; i < dim; ++i) {
        score += q[static_cast<std::size_t>(query * dim + i)] *
                 k[static_cast<std::size_t>((pair * length + key) * dim + i)];
      }
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
      sum += weights.back();
    }
    for (std::int64_t key = 0; key < seen; ++key) {
      for (std::int64_t i = 0; i < dim; ++i) {
        out[static_cast<std::size_t>(query * dim + i)] +=
            weights[static_cast<std::size_t>(key)] / sum *
            v[static_cast<std::size_t>((pair * length + key) * dim + i)];
      }
    }
  }
  return out;
}

// Gradients by differences of sum(dO * O).
std::vector<double> Difference(const AttentionShape& shape, Tensors tensors, AttentionTensor of) {
  constexpr double kStep = 1e-5;
  const auto value = [&] {
    const std::vector<double> out = Attention(shape, tensors);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += out[i] * tensors[AttentionTensor::kOutputGradient][i];
    }
    return sum;
  };
  std::vector<double> gradient;
  for (double& element : tensors[of]) {
    const double before = element;
    element = before + kStep;
    const double up = value();
    element = before - kStep;
    const double down = value();
    element = before;
    gradient.push_back((up - down) / (2 * kStep));
  }
  return gradient;
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& expected,
                const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-6) << what << " element " << i;
  }
}

struct Case {
  std::string name;
  AttentionShape shape;
  std::int64_t largest_scores;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const bool causal : {false, true}) {
    const std::string mask = causal ? " causal" : " full";
    cases.push_back({"all at once" + mask, {2, 3, 3, 5, 4, causal, false}, 1 << 20});
    cases.push_back({"pair by pair" + mask, {2, 2, 2, 6, 3, causal, false}, 48});
    cases.push_back({"position by position" + mask, {1, 2, 2, 5, 3, causal, false}, 8});
    cases.push_back({"two positions at once" + mask, {2, 1, 1, 7, 2, causal, false}, 17});
    cases.push_back({"grouped queries" + mask, {2, 6, 2, 5, 3, causal, false}, 1 << 20});
    cases.push_back({"grouped queries in pieces" + mask, {1, 4, 2, 9, 2, causal, false}, 80});
    cases.push_back({"one token" + mask, {1, 1, 1, 1, 1, causal, false}, 8});
  }
  return cases;
}

TEST(AttentionPlan, ForwardIsAttention) {
  for (const Case& c : Cases()) {
    const auto plan = PlanAttention(c.shape, c.largest_scores);
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.status();
    EXPECT_LE(plan->score_elements, c.largest_scores) << c.name;
    Tensors tensors = Inputs(c.shape);
    CarryOut(*plan, tensors);
    ExpectNear(tensors[AttentionTensor::kOutput], Attention(c.shape, tensors), c.name);
  }
}

TEST(AttentionPlan, BackwardIsItsGradient) {
  for (Case c : Cases()) {
    c.shape.backward = true;
    const auto plan = PlanAttention(c.shape, c.largest_scores);
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.status();
    Tensors tensors = Inputs(c.shape);
    CarryOut(*plan, tensors);
    ExpectNear(tensors[AttentionTensor::kQueryGradient],
               Difference(c.shape, tensors, AttentionTensor::kQuery), c.name + " dQ");
    ExpectNear(tensors[AttentionTensor::kKeyGradient],
               Difference(c.shape, tensors, AttentionTensor::kKey), c.name + " dK");
    ExpectNear(tensors[AttentionTensor::kValueGradient],
               Difference(c.shape, tensors, AttentionTensor::kValue), c.name + " dV");
  }
}

double FlopsOf(const AttentionPlan& plan) {
  double flops = 0;
  for (const auto& step : plan.steps) {
    if (const auto* gemm = std::get_if<AttentionGemm>(&step)) {
      flops += 2.0 * static_cast<double>(gemm->problem.m) * static_cast<double>(gemm->problem.n) *
               static_cast<double>(gemm->problem.k) * static_cast<double>(gemm->problem.batch);
    }
  }
  return flops;
}

// GPT-175B's layer on one of 8 GPUs: the mask saves a good part of the work, and the workspace is
// kept to.
TEST(AttentionPlan, CausalPiecesLeaveOutWhatNobodySees) {
  AttentionShape shape = {2, 12, 12, 2048, 128, false, false};
  const std::int64_t workspace = std::int64_t{64} << 20;
  const double full = FlopsOf(PlanAttention(shape, workspace).value());
  EXPECT_DOUBLE_EQ(full, 4.0 * 2 * 12 * 2048 * 2048 * 128);
  shape.causal = true;
  const AttentionPlan causal = PlanAttention(shape, workspace).value();
  EXPECT_DOUBLE_EQ(FlopsOf(causal), full * 0.625);  // 4 pieces: (1 + 2 + 3 + 4) / 16
  EXPECT_LE(causal.score_elements, workspace);
  shape.backward = true;
  EXPECT_DOUBLE_EQ(FlopsOf(PlanAttention(shape, workspace).value()), 2.5 * full * 0.625);
}

TEST(AttentionPlan, RefusesWhatIsNone) {
  EXPECT_EQ(PlanAttention({1, 3, 2, 4, 4, false, false}, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanAttention({0, 2, 2, 4, 4, false, false}, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto large = PlanAttention({1, 8, 1, 1 << 20, 128, true, false}, 1 << 20);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.status().message()), ::testing::HasSubstr("1048576 tokens"));
}

}  // namespace
}  // namespace optimus::executor::cuda
