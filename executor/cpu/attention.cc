#include "executor/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cpu/sizes.h"

namespace optimus::executor {
namespace {

// Under exp it is 0, and no infinity that could become a NaN.
constexpr float kMasked = -1e30F;

// A block's scores take at most this much, unless it has the fewest rows: half of a usual L2 cache,
// so that the backward pass's two such matrices fit.
constexpr std::int64_t kScoreBytes = 256 << 10;
constexpr std::int64_t kFewestRows = 64;
constexpr std::int64_t kMostRows = 256;

// Under a causal mask a block's part beyond the diagonal is work for nothing: at most about an
// eighth, where blocks of the fewest rows allow it.
std::int64_t ChooseRows(const AttentionShape& shape) {
  const std::int64_t tokens = shape.sequence_length;
  std::int64_t rows = kScoreBytes / 4 / tokens;
  if (shape.causal) rows = std::min(rows, tokens / 8);
  rows = std::clamp(rows / 16 * 16, kFewestRows, kMostRows);
  return std::min(rows, tokens);
}

// Under a causal mask the keys of a block are rounded up to a multiple of this: one block's rows up
// to 128 of these, from there on more, which is 1 / 128 more work.
std::int64_t KeyUnit(const AttentionShape& shape, std::int64_t rows) {
  constexpr std::int64_t kMostShapes = 128;
  return RoundUp(std::max(rows, shape.sequence_length / kMostShapes), rows);
}

absl::Status CheckShape(const AttentionShape& shape) {
  if (shape.sequences < 1 || shape.heads < 1 || shape.kv_heads < 1 || shape.sequence_length < 1 ||
      shape.head_dim < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention of ", shape.sequences, " sequences, ", shape.heads, " heads, ",
                     shape.kv_heads, " kv heads, ", shape.sequence_length, " tokens, head_dim ",
                     shape.head_dim, ": all must be at least 1"));
  }
  if (shape.heads % shape.kv_heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attention: ", shape.kv_heads,
                                                 " kv heads do not divide ", shape.heads,
                                                 " heads; hint: each serves as many"));
}

// The primitives of blocks of `rows` queries and `keys` keys.
struct BlockSteps {
  std::int64_t rows = 0, keys = 0;
  MatMul scores;  // Q K^T / sqrt(head_dim)
  Softmax softmax;
  // Forward.
  std::optional<MatMul> output;  // P V
  // Backward.
  std::optional<ToBf16> round_p;
  std::optional<MatMul> v_gradient;  // += P^T dO
  std::optional<MatMul> p_gradient;  // dO V^T
  std::optional<SoftmaxBackward> softmax_backward;
  std::optional<MatMul> q_gradient;  // dS K
  std::optional<MatMul> k_gradient;  // += dS^T Q
};

struct Block {
  std::int64_t first = 0;  // its first query row
  std::size_t steps = 0;
};

// Where things lie in the scratch memory, in bytes.
struct ScratchPlan {
  std::int64_t scores = 0, p_gradient = 0;      // f32
  std::int64_t p = 0, scores_gradient = 0;      // bf16, where that is the element
  std::int64_t k_gradient = 0, v_gradient = 0;  // f32 sums, where the element is bf16
  std::int64_t end = 0;
};

ScratchPlan PlanScratch(const AttentionShape& shape, Element element, std::int64_t rows) {
  const std::int64_t tokens = shape.sequence_length;
  rows = std::min(rows, tokens);
  const bool backward = shape.backward;
  const bool rounded = element == Element::kBf16;
  ScratchPlan plan;
  const auto take = [&plan](std::initializer_list<std::int64_t> factors) {
    const std::int64_t offset = plan.end;
    plan.end += RoundUp(SaturatedProduct(factors), 64);
    return offset;
  };
  const std::int64_t sums = rounded && backward ? 4 : 0;
  plan.scores = take({rows, tokens, 4});
  plan.p_gradient = take({rows, tokens, backward ? 4 : 0});
  plan.p = rounded ? take({rows, tokens, 2}) : plan.scores;
  plan.scores_gradient = rounded && backward ? take({rows, tokens, 2}) : plan.p_gradient;
  plan.k_gradient = take({tokens, shape.head_dim, sums});
  plan.v_gradient = take({tokens, shape.head_dim, sums});
  return plan;
}

class StepsMaker {
 public:
  StepsMaker(const AttentionShape& shape, Element element)
      : shape_(shape),
        element_(element),
        scale_(1 / std::sqrt(static_cast<float>(shape.head_dim))) {}

  absl::StatusOr<BlockSteps> Make(std::int64_t rows, std::int64_t keys) const {
    const std::int64_t d = shape_.head_dim;
    OPTIMUS_ASSIGN_OR_RETURN(
        MatMul scores, MatMul::Create({rows, keys, d, Transpose::kNo, Transpose::kYes, element_,
                                       Element::kF32, scale_, false}));
    OPTIMUS_ASSIGN_OR_RETURN(
        Softmax softmax, Softmax::Create(rows, keys, shape_.backward ? Element::kF32 : element_));
    BlockSteps steps{rows, keys, std::move(scores), std::move(softmax), {}, {}, {}, {}, {}, {}, {}};
    OPTIMUS_RETURN_IF_ERROR(shape_.backward ? AddBackward(steps) : AddForward(steps));
    return steps;
  }

 private:
  absl::Status AddForward(BlockSteps& steps) const {
    OPTIMUS_ASSIGN_OR_RETURN(
        steps.output, MatMul::Create({steps.rows, shape_.head_dim, steps.keys, Transpose::kNo,
                                      Transpose::kNo, element_, element_, 1, false}));
    return absl::OkStatus();
  }

  absl::Status AddBackward(BlockSteps& steps) const {
    const std::int64_t d = shape_.head_dim;
    if (element_ == Element::kBf16) {
      OPTIMUS_ASSIGN_OR_RETURN(steps.round_p, ToBf16::Create(steps.rows * steps.keys));
    }
    MatMulShape gradient{steps.keys,    d, steps.rows, Transpose::kYes, Transpose::kNo, element_,
                         Element::kF32, 1, true};
    OPTIMUS_ASSIGN_OR_RETURN(steps.v_gradient, MatMul::Create(gradient));
    gradient.scale = scale_;
    OPTIMUS_ASSIGN_OR_RETURN(steps.k_gradient, MatMul::Create(gradient));
    OPTIMUS_ASSIGN_OR_RETURN(steps.p_gradient,
                             MatMul::Create({steps.rows, steps.keys, d, Transpose::kNo,
                                             Transpose::kYes, element_, Element::kF32, 1, false}));
    OPTIMUS_ASSIGN_OR_RETURN(steps.softmax_backward,
                             SoftmaxBackward::Create(steps.rows, steps.keys, element_));
    OPTIMUS_ASSIGN_OR_RETURN(
        steps.q_gradient, MatMul::Create({steps.rows, d, steps.keys, Transpose::kNo, Transpose::kNo,
                                          element_, element_, scale_, false}));
    return absl::OkStatus();
  }

  AttentionShape shape_;
  Element element_;
  float scale_;
};

std::int64_t MostScratch(const BlockSteps& steps) {
  std::int64_t most = std::max(steps.scores.scratch().value(), steps.softmax.scratch().value());
  const auto count = [&most](const auto& primitive) {
    if (primitive) most = std::max(most, primitive->scratch().value());
  };
  count(steps.output);
  count(steps.round_p);
  count(steps.v_gradient);
  count(steps.p_gradient);
  count(steps.softmax_backward);
  count(steps.q_gradient);
  count(steps.k_gradient);
  return most;
}

// Row i of the block, the query `first` + i, sees no key after itself.
void Mask(float* scores, std::int64_t rows, std::int64_t keys, std::int64_t first) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * keys;
    std::fill(row + first + i + 1, row + keys, kMasked);
  }
}

}  // namespace

class AttentionCore::Impl {
 public:
  Impl(const AttentionShape& shape, Element element) : shape_(shape), element_(element) {}

  absl::Status MakeBlocks(std::int64_t row_block) {
    const StepsMaker maker(shape_, element_);
    const std::int64_t tokens = shape_.sequence_length;
    const std::int64_t unit = KeyUnit(shape_, row_block);
    for (std::int64_t first = 0; first < tokens; first += row_block) {
      const std::int64_t rows = std::min(row_block, tokens - first);
      const std::int64_t keys =
          shape_.causal ? std::min(tokens, RoundUp(first + rows, unit)) : tokens;
      // Keys never become less, so what is known is the last one.
      if (steps_.empty() || steps_.back().rows != rows || steps_.back().keys != keys) {
        OPTIMUS_ASSIGN_OR_RETURN(BlockSteps steps, maker.Make(rows, keys));
        steps_.push_back(std::move(steps));
      }
      blocks_.push_back({first, steps_.size() - 1});
    }
    plan_ = PlanScratch(shape_, element_, row_block);
    for (const BlockSteps& steps : steps_) primitives_ = std::max(primitives_, MostScratch(steps));
    return absl::OkStatus();
  }

  std::int64_t query_bytes() const { return shape_.heads * shape_.sequences * head_bytes(); }
  std::int64_t key_bytes() const { return shape_.kv_heads * shape_.sequences * head_bytes(); }
  std::int64_t scratch() const { return plan_.end + primitives_; }
  int shapes() const { return static_cast<int>(steps_.size()); }
  double done() const {
    double products = 0;  // rows x keys
    for (const Block& block : blocks_) {
      const BlockSteps& steps = steps_[block.steps];
      products += static_cast<double>(steps.rows) * static_cast<double>(steps.keys);
    }
    const auto heads = static_cast<double>(shape_.sequences * shape_.heads);
    const auto width = static_cast<double>(shape_.head_dim);
    return (shape_.backward ? 10 : 4) * products * heads * width;
  }

  absl::Status Forward(const AttentionForwardOperands& all, std::byte* scratch) const {
    return ForEachHead([&](std::int64_t head, std::int64_t kv_head) {
      return ForwardHead({At(all.q, head), At(all.k, kv_head), At(all.v, kv_head), At(all.o, head)},
                         scratch);
    });
  }

  absl::Status Backward(const AttentionBackwardOperands& all, std::byte* scratch) const {
    const std::int64_t per_kv_head = shape_.heads / shape_.kv_heads;
    return ForEachHead([&](std::int64_t head, std::int64_t kv_head) {
      const AttentionBackwardOperands one{At(all.q, head),
                                          At(all.k, kv_head),
                                          At(all.v, kv_head),
                                          At(all.o_gradient, head),
                                          At(all.q_gradient, head),
                                          At(all.k_gradient, kv_head),
                                          At(all.v_gradient, kv_head)};
      return BackwardHead(one, head % per_kv_head == 0, head % per_kv_head == per_kv_head - 1,
                          scratch);
    });
  }

 private:
  // Of one head of one sequence.
  std::int64_t head_elements() const { return shape_.sequence_length * shape_.head_dim; }
  std::int64_t head_bytes() const { return head_elements() * SizeOf(element_); }
  template <class T>
  T* At(T* tensor, std::int64_t head) const {
    return Row(tensor, head * shape_.sequence_length);
  }
  const void* Row(const void* tensor, std::int64_t row) const {
    return static_cast<const std::byte*>(tensor) + row * shape_.head_dim * SizeOf(element_);
  }
  void* Row(void* tensor, std::int64_t row) const {
    return static_cast<std::byte*>(tensor) + row * shape_.head_dim * SizeOf(element_);
  }
  static float* Floats(std::byte* scratch, std::int64_t offset) {
    return reinterpret_cast<float*>(scratch + offset);
  }

  template <class Body>  // (head, kv_head) over all sequences
  absl::Status ForEachHead(Body body) const {
    const std::int64_t per_kv_head = shape_.heads / shape_.kv_heads;
    for (std::int64_t head = 0; head < shape_.sequences * shape_.heads; ++head) {
      OPTIMUS_RETURN_IF_ERROR(body(head, head / per_kv_head));
    }
    return absl::OkStatus();
  }

  // The masked and scaled scores of a block, and their softmax into `p`.
  absl::Status Probabilities(const Block& block, const void* q, const void* k, void* p,
                             std::byte* scratch) const {
    const BlockSteps& steps = steps_[block.steps];
    float* scores = Floats(scratch, plan_.scores);
    std::byte* primitives = scratch + plan_.end;
    OPTIMUS_RETURN_IF_ERROR(steps.scores.Run(Row(q, block.first), k, scores, primitives));
    if (shape_.causal) Mask(scores, steps.rows, steps.keys, block.first);
    return steps.softmax.Run(scores, p, primitives);
  }

  absl::Status ForwardHead(const AttentionForwardOperands& head, std::byte* scratch) const {
    void* p = scratch + plan_.p;
    for (const Block& block : blocks_) {
      OPTIMUS_RETURN_IF_ERROR(Probabilities(block, head.q, head.k, p, scratch));
      OPTIMUS_RETURN_IF_ERROR(steps_[block.steps].output->Run(p, head.v, Row(head.o, block.first),
                                                              scratch + plan_.end));
    }
    return absl::OkStatus();
  }

  // `first`, `last`: of the query heads that share the kv head. The gradients of K and V are summed
  // over these and over the blocks.
  absl::Status BackwardHead(const AttentionBackwardOperands& head, bool first, bool last,
                            std::byte* scratch) const {
    const bool rounded = element_ == Element::kBf16;
    auto* k_sum =
        rounded ? Floats(scratch, plan_.k_gradient) : static_cast<float*>(head.k_gradient);
    auto* v_sum =
        rounded ? Floats(scratch, plan_.v_gradient) : static_cast<float*>(head.v_gradient);
    if (first) {
      std::fill_n(k_sum, head_elements(), 0.0F);
      std::fill_n(v_sum, head_elements(), 0.0F);
    }
    for (const Block& block : blocks_) {
      OPTIMUS_RETURN_IF_ERROR(BackwardBlock(block, head, k_sum, v_sum, scratch));
    }
    if (!rounded || !last) return absl::OkStatus();
    std::byte* primitives = scratch + plan_.end;
    OPTIMUS_RETURN_IF_ERROR(round_gradient_->Run(k_sum, head.k_gradient, primitives));
    return round_gradient_->Run(v_sum, head.v_gradient, primitives);
  }

  absl::Status BackwardBlock(const Block& block, const AttentionBackwardOperands& head,
                             float* k_sum, float* v_sum, std::byte* scratch) const {
    const BlockSteps& steps = steps_[block.steps];
    std::byte* primitives = scratch + plan_.end;
    float* p = Floats(scratch, plan_.scores);
    float* p_gradient = Floats(scratch, plan_.p_gradient);
    void* p_operand = scratch + plan_.p;
    void* scores_gradient = scratch + plan_.scores_gradient;
    const void* o_gradient = Row(head.o_gradient, block.first);
    OPTIMUS_RETURN_IF_ERROR(Probabilities(block, head.q, head.k, p, scratch));
    if (steps.round_p) OPTIMUS_RETURN_IF_ERROR(steps.round_p->Run(p, p_operand, primitives));
    OPTIMUS_RETURN_IF_ERROR(steps.v_gradient->Run(p_operand, o_gradient, v_sum, primitives));
    OPTIMUS_RETURN_IF_ERROR(steps.p_gradient->Run(o_gradient, head.v, p_gradient, primitives));
    OPTIMUS_RETURN_IF_ERROR(
        steps.softmax_backward->Run(p, p_gradient, scores_gradient, primitives));
    OPTIMUS_RETURN_IF_ERROR(steps.q_gradient->Run(scores_gradient, head.k,
                                                  Row(head.q_gradient, block.first), primitives));
    return steps.k_gradient->Run(scores_gradient, Row(head.q, block.first), k_sum, primitives);
  }

  AttentionShape shape_;
  Element element_;
  std::vector<Block> blocks_;
  std::vector<BlockSteps> steps_;
  ScratchPlan plan_;
  std::int64_t primitives_ = 0;           // bytes behind it
  std::optional<ToBf16> round_gradient_;  // of K or V, of one head
  friend class AttentionCore;
};

AttentionCore::AttentionCore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttentionCore::AttentionCore(AttentionCore&&) noexcept = default;
AttentionCore& AttentionCore::operator=(AttentionCore&&) noexcept = default;
AttentionCore::~AttentionCore() = default;

absl::StatusOr<AttentionCore> AttentionCore::Create(const AttentionShape& shape, Element element,
                                                    std::int64_t row_block) {
  OPTIMUS_RETURN_IF_ERROR(CheckShape(shape));
  auto impl = std::make_unique<Impl>(shape, element);
  if (shape.backward && element == Element::kBf16) {
    OPTIMUS_ASSIGN_OR_RETURN(impl->round_gradient_, ToBf16::Create(impl->head_elements()));
  }
  OPTIMUS_RETURN_IF_ERROR(impl->MakeBlocks(row_block > 0 ? row_block : ChooseRows(shape)));
  return AttentionCore(std::move(impl));
}

absl::StatusOr<AttentionMemory> AttentionCore::MemoryOf(const AttentionShape& shape,
                                                        Element element) {
  OPTIMUS_RETURN_IF_ERROR(CheckShape(shape));
  const auto bytes = [&](std::int64_t heads) {
    return Bytes(SaturatedProduct(
        {shape.sequences, heads, shape.sequence_length, shape.head_dim, SizeOf(element)}));
  };
  return AttentionMemory{bytes(shape.heads), bytes(shape.kv_heads),
                         Bytes(PlanScratch(shape, element, ChooseRows(shape)).end)};
}

Bytes AttentionCore::query_bytes() const { return Bytes(impl_->query_bytes()); }
Bytes AttentionCore::key_bytes() const { return Bytes(impl_->key_bytes()); }
Bytes AttentionCore::scratch() const { return Bytes(impl_->scratch()); }
Flops AttentionCore::done() const { return Flops(impl_->done()); }
int AttentionCore::shapes() const { return impl_->shapes(); }

absl::Status AttentionCore::Forward(const AttentionForwardOperands& operands,
                                    std::byte* scratch) const {
  return impl_->Forward(operands, scratch);
}
absl::Status AttentionCore::Backward(const AttentionBackwardOperands& operands,
                                     std::byte* scratch) const {
  return impl_->Backward(operands, scratch);
}

}  // namespace optimus::executor
