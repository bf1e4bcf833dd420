#pragma once
// The attention core as batched GEMMs with a softmax between them, in pieces whose scores fit into
// a workspace: [key/value heads of a sequence] x [query positions]. A causal mask is used to leave
// out keys that no query of a piece sees.
//
// Tensors lie by pairs (sequence, key/value head). Q, O and their gradients: [pair][position]
// [query head of the group][head_dim]; K, V and theirs: [pair][position][head_dim]. So queries that
// share keys (grouped-query attention) are just more rows of one GEMM.

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/kernel.h"
#include "executor/cuda/gemm_plan.h"

namespace optimus::executor::cuda {

enum class AttentionTensor : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kOutputGradient,  // backward
  kOutput,          // forward
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kScores,          // workspace: scores, then probabilities
  kScoreGradients,  // workspace: gradient of the probabilities, then of the scores
};

// A tensor from an element on.
struct AttentionOperand {
  AttentionTensor tensor = AttentionTensor::kQuery;
  std::int64_t offset = 0;
};

struct AttentionGemm {
  GemmProblem problem;
  AttentionOperand a, b, c;
};

// Row by row over kScores (forward: in place; backward: kScoreGradients becomes the gradient of the
// unscaled scores). Rows of one pair follow each other; row r is of position first_position +
// r / group.
struct SoftmaxStep {
  bool backward = false;
  std::int64_t rows = 0;  // of all pairs
  std::int64_t rows_per_pair = 0;
  std::int64_t keys = 0;  // columns; more than `position + 1` are masked where causal
  std::int64_t row_stride = 0;
  std::int64_t first_position = 0, group = 1;
  bool causal = false;
  float scale = 1;
};

struct AttentionPlan {
  AttentionShape shape;
  std::vector<std::variant<AttentionGemm, SoftmaxStep>> steps;
  std::int64_t score_elements = 0;  // of kScores, and of kScoreGradients in the backward
};

// `largest_scores`: elements that the workspace has for kScores. INVALID_ARGUMENT for shapes that
// cannot be (heads that are no multiple of kv_heads), RESOURCE_EXHAUSTED where the scores of one
// position do not fit.
absl::StatusOr<AttentionPlan> PlanAttention(const AttentionShape& shape,
                                            std::int64_t largest_scores);

// Elements of a tensor that is no workspace.
std::int64_t ElementsOf(const AttentionShape& shape, AttentionTensor tensor);

}  // namespace optimus::executor::cuda
