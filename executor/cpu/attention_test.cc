#include "executor/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using Values = std::vector<double>;

// bf16 is the upper half of an f32, rounded to nearest even.
std::uint16_t RoundToBf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}
float FromBf16(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// A tensor as it lies in memory, in either type.
class Tensor {
 public:
  Tensor(Bytes bytes, Element element) : element_(element), bytes_(bytes.value()) {}
  std::size_t size() const { return bytes_.size() / SizeOf(element_); }
  void* data() { return bytes_.data(); }
  void Set(std::size_t i, float value) {
    if (element_ == Element::kF32) {
      std::memcpy(bytes_.data() + 4 * i, &value, 4);
    } else {
      const std::uint16_t rounded = RoundToBf16(value);
      std::memcpy(bytes_.data() + 2 * i, &rounded, 2);
    }
  }
  Values Get() const {
    Values values(size());
    for (std::size_t i = 0; i < size(); ++i) {
      float f32 = 0;
      std::uint16_t bf16 = 0;
      if (element_ == Element::kF32) {
        std::memcpy(&f32, bytes_.data() + 4 * i, 4);
      } else {
        std::memcpy(&bf16, bytes_.data() + 2 * i, 2);
        f32 = FromBf16(bf16);
      }
      values[i] = f32;
    }
    return values;
  }

 private:
  Element element_;
  std::vector<std::byte> bytes_;
};

struct Result {
  Values o, q_gradient, k_gradient, v_gradient;
};

// The twin: the definition in double, one query at a time.
class PlainAttention {
 public:
  PlainAttention(const AttentionShape& shape, Values q, Values k, Values v, Values o_gradient)
      : s_(shape),
        q_(std::move(q)),
        k_(std::move(k)),
        v_(std::move(v)),
        d_o_(std::move(o_gradient)) {
    result_.o.resize(q_.size());
    result_.q_gradient.resize(q_.size());
    result_.k_gradient.resize(k_.size());
    result_.v_gradient.resize(v_.size());
  }

  Result Run() {
    for (std::int64_t b = 0; b < s_.sequences; ++b) {
      for (std::int64_t h = 0; h < s_.heads; ++h) {
        const std::int64_t kv = b * s_.kv_heads + h / (s_.heads / s_.kv_heads);
        for (std::int64_t i = 0; i < s_.sequence_length; ++i) OneQuery(b * s_.heads + h, kv, i);
      }
    }
    return result_;
  }

 private:
  std::size_t At(std::int64_t head, std::int64_t token, std::int64_t x) const {
    return (head * s_.sequence_length + token) * s_.head_dim + x;
  }
  double Dot(const Values& a, std::size_t i, const Values& b, std::size_t j) const {
    double sum = 0;
    for (std::int64_t x = 0; x < s_.head_dim; ++x) sum += a[i + x] * b[j + x];
    return sum;
  }

  void OneQuery(std::int64_t head, std::int64_t kv, std::int64_t i) {
    const std::int64_t keys = s_.causal ? i + 1 : s_.sequence_length;
    const double scale = 1 / std::sqrt(static_cast<double>(s_.head_dim));
    Values p(keys);
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      p[j] = std::exp(scale * Dot(q_, At(head, i, 0), k_, At(kv, j, 0)));
      sum += p[j];
    }
    double mean = 0;  // sum of p dp
    Values dp(keys);
    for (std::int64_t j = 0; j < keys; ++j) {
      p[j] /= sum;
      dp[j] = Dot(d_o_, At(head, i, 0), v_, At(kv, j, 0));
      mean += p[j] * dp[j];
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      const double ds = scale * p[j] * (dp[j] - mean);
      for (std::int64_t x = 0; x < s_.head_dim; ++x) {
        result_.o[At(head, i, x)] += p[j] * v_[At(kv, j, x)];
        result_.v_gradient[At(kv, j, x)] += p[j] * d_o_[At(head, i, x)];
        result_.q_gradient[At(head, i, x)] += ds * k_[At(kv, j, x)];
        result_.k_gradient[At(kv, j, x)] += ds * q_[At(head, i, x)];
      }
    }
  }

  AttentionShape s_;
  Values q_, k_, v_, d_o_;
  Result result_;
};

// Of Euclidean norms; absolute where the expected one is small (one key: its score has no
// gradient).
double RelativeError(const Values& actual, const Values& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(norm, 1.0));
}

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
std::unique_ptr<std::byte, FreeDeleter> Scratch(Bytes bytes) {
  return std::unique_ptr<std::byte, FreeDeleter>(static_cast<std::byte*>(
      std::aligned_alloc(64, static_cast<std::size_t>((bytes.value() + 63) / 64 * 64))));
}

// Forward and backward of one shape against the twin; `tolerance` of relative norms.
class AttentionCheck {
 public:
  AttentionCheck(AttentionShape shape, Element element, std::int64_t row_block)
      : shape_(shape), element_(element), row_block_(row_block), random_(11) {}

  void Run(double tolerance) {
    SCOPED_TRACE(testing::Message()
                 << shape_.sequences << " x " << shape_.heads << "/" << shape_.kv_heads
                 << " heads, " << shape_.sequence_length << " tokens, " << shape_.head_dim
                 << " wide, block " << row_block_ << (shape_.causal ? ", causal" : ""));
    auto forward = Core(false);
    auto backward = Core(true);
    const std::int64_t queries = forward.query_bytes().value();
    ASSERT_EQ(queries, shape_.sequences * shape_.heads * shape_.sequence_length * shape_.head_dim *
                           SizeOf(element_));
    Tensor q = Random(forward.query_bytes()), k = Random(forward.key_bytes());
    Tensor v = Random(forward.key_bytes()), d_o = Random(forward.query_bytes());
    // What they hold before must not matter.
    Tensor o = Random(forward.query_bytes()), dq = Random(forward.query_bytes());
    Tensor dk = Random(forward.key_bytes()), dv = Random(forward.key_bytes());
    const auto scratch = Scratch(std::max(forward.scratch(), backward.scratch()));
    ASSERT_TRUE(forward.Forward({q.data(), k.data(), v.data(), o.data()}, scratch.get()).ok());
    ASSERT_TRUE(
        backward
            .Backward({q.data(), k.data(), v.data(), d_o.data(), dq.data(), dk.data(), dv.data()},
                      scratch.get())
            .ok());
    const Result expected = PlainAttention(shape_, q.Get(), k.Get(), v.Get(), d_o.Get()).Run();
    EXPECT_LT(RelativeError(o.Get(), expected.o), tolerance);
    EXPECT_LT(RelativeError(dq.Get(), expected.q_gradient), tolerance);
    EXPECT_LT(RelativeError(dk.Get(), expected.k_gradient), tolerance);
    EXPECT_LT(RelativeError(dv.Get(), expected.v_gradient), tolerance);
  }

 private:
  AttentionCore Core(bool backward) {
    AttentionShape shape = shape_;
    shape.backward = backward;
    auto core = AttentionCore::Create(shape, element_, row_block_);
    EXPECT_TRUE(core.ok()) << core.status();
    return *std::move(core);
  }
  Tensor Random(Bytes bytes) {
    std::uniform_real_distribution<float> value(-2, 2);
    Tensor tensor(bytes, element_);
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor.Set(i, value(random_));
    return tensor;
  }

  AttentionShape shape_;
  Element element_;
  std::int64_t row_block_;
  std::mt19937 random_;
};

std::vector<AttentionShape> Shapes() {
  std::vector<AttentionShape> shapes;
  for (const bool causal : {false, true}) {
    shapes.push_back({1, 1, 1, 1, 8, causal, false});
    shapes.push_back({1, 1, 1, 33, 16, causal, false});
    shapes.push_back({2, 4, 4, 48, 16, causal, false});
    shapes.push_back({2, 6, 2, 40, 24, causal, false});
    shapes.push_back({1, 4, 1, 128, 64, causal, false});
  }
  return shapes;
}

TEST(Attention, ForwardAndBackwardLikePlainLoops) {
  for (const AttentionShape& shape : Shapes()) {
    for (const std::int64_t row_block : {0, 16, 20}) {
      AttentionCheck(shape, Element::kF32, row_block).Run(2e-5);
    }
  }
}

TEST(Attention, Bf16LikePlainLoops) {
  if (!HasBf16()) GTEST_SKIP() << InstructionSet() << " has no bf16";
  for (const AttentionShape& shape : Shapes()) {
    // 8 bits of mantissa in operands, probabilities and results.
    for (const std::int64_t row_block : {0, 16}) {
      AttentionCheck(shape, Element::kBf16, row_block).Run(1e-2);
    }
  }
}

// A Schedule counts half of all products under a causal mask, and 4 d forward or 10 d backward for
// each.
TEST(Attention, DoesAboutTheWorkThatIsCounted) {
  for (const bool backward : {false, true}) {
    AttentionShape shape{2, 4, 4, 1024, 64, false, backward};
    const double all = (backward ? 10.0 : 4.0) * 64 * 1024 * 1024 * 2 * 4;
    EXPECT_EQ(AttentionCore::Create(shape, Element::kF32)->done().value(), all);
    shape.causal = true;
    const double causal = AttentionCore::Create(shape, Element::kF32)->done().value();
    EXPECT_GE(causal, all / 2);
    EXPECT_LT(causal, all / 2 * 1.13);
    // By rows: 1 + 2 + ... + 16 products of a query and a key.
    shape.sequence_length = 16;
    EXPECT_EQ(AttentionCore::Create(shape, Element::kF32, 1)->done().value(),
              (backward ? 10.0 : 4.0) * 64 * 136 * 2 * 4);
  }
}

// More blocks than shapes: keys are rounded up, and what is beyond the diagonal must not count.
TEST(Attention, ManyBlocksShareShapes) {
  const AttentionShape shape{1, 2, 1, 300, 8, true, false};
  AttentionCheck(shape, Element::kF32, 1).Run(2e-5);
  EXPECT_EQ(AttentionCore::Create(shape, Element::kF32, 1)->shapes(), 150);
  if (HasBf16()) AttentionCheck(shape, Element::kBf16, 1).Run(1e-2);
}

TEST(Attention, ALongSequenceHasFewShapes) {
  for (const bool backward : {false, true}) {
    const AttentionShape shape{1, 4, 4, 1'000'000, 64, true, backward};
    const auto core = AttentionCore::Create(shape, Element::kF32);
    ASSERT_TRUE(core.ok()) << core.status();
    EXPECT_LE(core->shapes(), 130);
    const double half = (backward ? 10.0 : 4.0) * 64 * 4 * 1e12 / 2;
    EXPECT_GE(core->done().value(), half);
    EXPECT_LT(core->done().value(), half * 1.01);
  }
}

TEST(Attention, MemoryIsKnownBeforeAnythingIsMade) {
  for (AttentionShape shape : Shapes()) {
    for (const Element element : {Element::kF32, Element::kBf16}) {
      if (element == Element::kBf16 && !HasBf16()) continue;
      for (shape.backward = false;; shape.backward = true) {
        const auto core = AttentionCore::Create(shape, element);
        const auto memory = AttentionCore::MemoryOf(shape, element);
        ASSERT_TRUE(core.ok() && memory.ok());
        EXPECT_EQ(memory->queries, core->query_bytes());
        EXPECT_EQ(memory->keys, core->key_bytes());
        EXPECT_LE(memory->scratch, core->scratch());
        if (shape.backward) break;
      }
    }
  }
}

TEST(Attention, ScoresStaySmall) {
  for (const std::int64_t tokens : {512, 2048, 8192}) {
    const AttentionShape shape{4, 16, 16, tokens, 64, true, true};
    // Two matrices of 64 rows or 256 KiB, and what a product packs.
    const std::int64_t scores = std::max<std::int64_t>(256 << 10, 256 * tokens);
    EXPECT_LT(AttentionCore::Create(shape, Element::kF32)->scratch().value(), 8 * scores) << tokens;
  }
}

TEST(Attention, RefusesImpossibleShapes) {
  const auto heads = AttentionCore::Create({1, 4, 3, 16, 8, false, false}, Element::kF32);
  EXPECT_EQ(heads.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(heads.status().message()),
              testing::HasSubstr("3 kv heads do not divide 4 heads"));
  EXPECT_EQ(AttentionCore::Create({1, 4, 4, 0, 8, false, false}, Element::kF32).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AttentionCore::MemoryOf({1, 4, 0, 16, 8, false, false}, Element::kF32).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace optimus::executor
