#include "executor/cuda/attention_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::executor::cuda {
namespace {

// Rows of scores begin at multiples of 16 bytes, so that the softmax can read 8 elements at once.
constexpr std::int64_t kAlignment = 8;
// Query positions of a piece under a causal mask: of every piece's last keys, its first queries see
// a part only, which is computed in vain. Smaller pieces waste less but fill a GPU less.
constexpr std::int64_t kCausalPositions = 512;

std::int64_t RoundUp(std::int64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

struct Piece {
  std::int64_t first_pair = 0, pairs = 0;
  std::int64_t first_position = 0, positions = 0;
  std::int64_t keys = 0;
  bool first_of_pairs = false;  // its gradients of keys and values replace, later ones are added
};

class Planner {
 public:
  Planner(const AttentionShape& shape, std::int64_t largest_scores)
      : largest_(largest_scores),
        group_(shape.heads / shape.kv_heads),
        pairs_(shape.sequences * shape.kv_heads),
        length_(shape.sequence_length),
        dim_(shape.head_dim) {
    plan_.shape = shape;
  }

  absl::StatusOr<AttentionPlan> Run() {
    const std::int64_t row = RoundUp(length_);
    const std::int64_t fitting = largest_ / (group_ * row);
    if (fitting < 1) {
      return absl::ResourceExhaustedError(
          absl::StrCat("attention of ", length_, " tokens: one position's scores (", group_ * row,
                       " elements) do not fit into the workspace of ", largest_));
    }
    std::int64_t positions = std::min(length_, fitting);
    if (plan_.shape.causal) positions = std::min(positions, kCausalPositions);
    const std::int64_t pairs =
        std::clamp<std::int64_t>(largest_ / (positions * group_ * row), 1, pairs_);
    for (std::int64_t pair = 0; pair < pairs_; pair += pairs) {
      AddPairs(pair, std::min(pairs, pairs_ - pair), positions);
    }
    return std::move(plan_);
  }

 private:
  // The last positions first: under a causal mask they alone see all keys, so what they write of
  // the gradients of keys and values is whole, and the others add to it.
  void AddPairs(std::int64_t pair, std::int64_t pairs, std::int64_t positions) {
    const std::int64_t last = (length_ - 1) / positions * positions;
    for (std::int64_t first = last; first >= 0; first -= positions) {
      Piece piece = {pair,    pairs,        first, std::min(positions, length_ - first),
                     length_, first == last};
      if (plan_.shape.causal) piece.keys = first + piece.positions;
      AddPiece(piece);
    }
  }

  void AddPiece(const Piece& piece) {
    const std::int64_t scores = piece.pairs * piece.positions * group_ * RoundUp(piece.keys);
    plan_.score_elements = std::max(plan_.score_elements, scores);
    AddProduct(piece, AttentionTensor::kKey, AttentionTensor::kQuery, AttentionTensor::kScores);
    AddSoftmax(piece, /*backward=*/false);
    if (!plan_.shape.backward) {
      AddWeightedSum(piece, AttentionTensor::kValue, AttentionTensor::kScores,
                     AttentionTensor::kOutput);
      return;
    }
    AddGradientOfKeys(piece, AttentionTensor::kOutputGradient, AttentionTensor::kScores,
                      AttentionTensor::kValueGradient);
    AddProduct(piece, AttentionTensor::kValue, AttentionTensor::kOutputGradient,
               AttentionTensor::kScoreGradients);
    AddSoftmax(piece, /*backward=*/true);
    AddWeightedSum(piece, AttentionTensor::kKey, AttentionTensor::kScoreGradients,
                   AttentionTensor::kQueryGradient);
    AddGradientOfKeys(piece, AttentionTensor::kQuery, AttentionTensor::kScoreGradients,
                      AttentionTensor::kKeyGradient);
  }

  AttentionOperand Keys(const Piece& piece, AttentionTensor tensor) const {
    return {tensor, piece.first_pair * length_ * dim_};
  }
  AttentionOperand Queries(const Piece& piece, AttentionTensor tensor) const {
    return {tensor, (piece.first_pair * length_ + piece.first_position) * group_ * dim_};
  }
  std::int64_t Rows(const Piece& piece) const { return piece.positions * group_; }
  std::int64_t KeyStride() const { return length_ * dim_; }
  std::int64_t QueryStride() const { return length_ * group_ * dim_; }
  std::int64_t ScoreStride(const Piece& piece) const { return Rows(piece) * RoundUp(piece.keys); }

  // scores[row, key] = queries[row, :] . keys[key, :]
  void AddProduct(const Piece& piece, AttentionTensor keys, AttentionTensor queries,
                  AttentionTensor scores) {
    GemmProblem problem;
    problem.transpose_a = true;
    problem.m = piece.keys;
    problem.n = Rows(piece);
    problem.k = dim_;
    problem.lda = problem.ldb = dim_;
    problem.ldc = RoundUp(piece.keys);
    problem.batch = piece.pairs;
    problem.stride_a = KeyStride();
    problem.stride_b = QueryStride();
    problem.stride_c = ScoreStride(piece);
    plan_.steps.emplace_back(
        AttentionGemm{problem, Keys(piece, keys), Queries(piece, queries), {scores, 0}});
  }

  // out[row, :] = sum over keys of scores[row, key] values[key, :]
  void AddWeightedSum(const Piece& piece, AttentionTensor values, AttentionTensor scores,
                      AttentionTensor out) {
    GemmProblem problem;
    problem.m = dim_;
    problem.n = Rows(piece);
    problem.k = piece.keys;
    problem.lda = problem.ldc = dim_;
    problem.ldb = RoundUp(piece.keys);
    problem.batch = piece.pairs;
    problem.stride_a = KeyStride();
    problem.stride_b = ScoreStride(piece);
    problem.stride_c = QueryStride();
    plan_.steps.emplace_back(
        AttentionGemm{problem, Keys(piece, values), {scores, 0}, Queries(piece, out)});
  }

  // out[key, :] (+)= sum over rows of scores[row, key] queries[row, :]
  void AddGradientOfKeys(const Piece& piece, AttentionTensor queries, AttentionTensor scores,
                         AttentionTensor out) {
    GemmProblem problem;
    problem.transpose_b = true;
    problem.m = dim_;
    problem.n = piece.keys;
    problem.k = Rows(piece);
    problem.lda = problem.ldc = dim_;
    problem.ldb = RoundUp(piece.keys);
    problem.beta = piece.first_of_pairs ? 0.0F : 1.0F;
    problem.batch = piece.pairs;
    problem.stride_a = QueryStride();
    problem.stride_b = ScoreStride(piece);
    problem.stride_c = KeyStride();
    plan_.steps.emplace_back(
        AttentionGemm{problem, Queries(piece, queries), {scores, 0}, Keys(piece, out)});
  }

  void AddSoftmax(const Piece& piece, bool backward) {
    SoftmaxStep step;
    step.backward = backward;
    step.rows_per_pair = Rows(piece);
    step.rows = piece.pairs * step.rows_per_pair;
    step.keys = piece.keys;
    step.row_stride = RoundUp(piece.keys);
    step.first_position = piece.first_position;
    step.group = group_;
    step.causal = plan_.shape.causal;
    step.scale = 1.0F / std::sqrt(static_cast<float>(dim_));
    plan_.steps.emplace_back(step);
  }

  const std::int64_t largest_, group_, pairs_, length_, dim_;
  AttentionPlan plan_;
};

}  // namespace

absl::StatusOr<AttentionPlan> PlanAttention(const AttentionShape& shape,
                                            std::int64_t largest_scores) {
  if (shape.sequences < 1 || shape.kv_heads < 1 || shape.sequence_length < 1 ||
      shape.head_dim < 1 || shape.heads < shape.kv_heads || shape.heads % shape.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention of ", shape.sequences, " sequences of ", shape.sequence_length, " tokens, ",
        shape.heads, " query heads, ", shape.kv_heads, " key/value heads of ", shape.head_dim,
        " is no attention; hint: query heads must be a multiple of key/value heads"));
  }
  return Planner(shape, largest_scores).Run();
}

std::int64_t ElementsOf(const AttentionShape& shape, AttentionTensor tensor) {
  const std::int64_t tokens = shape.sequences * shape.sequence_length;
  switch (tensor) {
    case AttentionTensor::kQuery:
    case AttentionTensor::kOutput:
    case AttentionTensor::kOutputGradient:
    case AttentionTensor::kQueryGradient:
      return tokens * shape.heads * shape.head_dim;
    case AttentionTensor::kKey:
    case AttentionTensor::kValue:
    case AttentionTensor::kKeyGradient:
    case AttentionTensor::kValueGradient:
      return tokens * shape.kv_heads * shape.head_dim;
    case AttentionTensor::kScores:
    case AttentionTensor::kScoreGradients:
      break;
  }
  return 0;
}

}  // namespace optimus::executor::cuda
