// What holds for every block of every shape: well-formed, complete, and as exposed as the paper has
// it. A sweep over models, tensor parallelism and all options.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/accounting.h"
#include "models/layers.h"
#include "models/testing_models.h"

namespace optimus::models {
namespace {

struct Case {
  ModelConfig model;
  LayerShape shape;
};

std::vector<Case> Sweep() {
  std::vector<Case> cases;
  for (const ModelConfig& model : {SmallGpt(), SmallVit(), SmallLlama()}) {
    for (int bits = 0; bits < 8; ++bits) {
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        for (const int tp : {1, 2, 4, 8}) {
          LayerShape shape = Shape(1 + bits % 3, 512, tp);
          shape.sequence_parallel = (bits & 1) != 0;
          shape.fused_elementwise = (bits & 2) != 0;
          if ((bits & 4) != 0) shape.attention = AttentionImplementation::kUnfused;
          shape.recompute = recompute;
          cases.push_back({model, shape});
        }
      }
    }
  }
  return cases;
}

std::string Describe(const Case& c) {
  return absl::StrCat(c.model.name(), " tp ", c.shape.tensor_parallel, " sp ",
                      c.shape.sequence_parallel, " fused ", c.shape.fused_elementwise, " unfused ",
                      c.shape.attention == AttentionImplementation::kUnfused, " recompute ",
                      static_cast<int>(c.shape.recompute));
}

using BackwardFunction = std::function<Block(Gradients)>;

std::vector<BackwardFunction> Backwards(const Case& c) {
  return {
      [&](Gradients g) { return LayerBackward(c.model, c.shape, g); },
      [&](Gradients g) { return EmbeddingBackward(c.model, c.shape, g); },
      [&](Gradients g) { return HeadBackward(c.model, c.shape, g); },
      [&](Gradients g) { return ProjectorBackward(c.model, 2048, c.shape, g); },
  };
}

std::vector<Block> AllBlocks(const Case& c) {
  std::vector<Block> blocks = {LayerForward(c.model, c.shape), EmbeddingForward(c.model, c.shape),
                               HeadForward(c.model, c.shape),
                               ProjectorForward(c.model, 2048, c.shape)};
  for (const BackwardFunction& backward : Backwards(c)) {
    for (const Gradients g : {Gradients::kBoth, Gradients::kData, Gradients::kWeights}) {
      blocks.push_back(backward(g));
    }
  }
  return blocks;
}

int CountCollectives(const Block& block, Phase phase) {
  return static_cast<int>(
      std::count_if(block.ops.begin(), block.ops.end(),
                    [phase](const BlockOp& op) { return op.is_collective && op.phase == phase; }));
}

// The block alone, on two streams: every kernel lasts `kernel`, every collective `collective`.
std::int64_t Span(const Block& block, std::int64_t kernel, std::int64_t collective) {
  std::vector<std::int64_t> end(block.ops.size());
  std::int64_t free[2] = {0, 0};
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const BlockOp& op = block.ops[i];
    std::int64_t start = free[op.is_collective];
    for (const int dependency : op.after) start = std::max(start, end[dependency]);
    end[i] = free[op.is_collective] = start + (op.is_collective ? collective : kernel);
  }
  return end.empty() ? 0 : end[block.output];
}

void CheckWork(const BlockOp& op) {
  if (op.is_collective) {
    EXPECT_GT(op.collective.bytes.value(), 0);
    EXPECT_FALSE(op.collective.name.empty());
    return;
  }
  EXPECT_NE(op.kernel.kind, KernelKind::kFixed);
  EXPECT_FALSE(op.kernel.name.empty());
  EXPECT_GT(op.kernel.bytes.value(), 0);
  EXPECT_EQ(op.kernel.flops.value() > 0, op.kernel.kind != KernelKind::kMemoryBound);
}

TEST(Blocks, AreWellFormed) {
  for (const Case& c : Sweep()) {
    ASSERT_TRUE(ValidateShape(c.model, c.shape).ok());
    for (const Block& block : AllBlocks(c)) {
      SCOPED_TRACE(Describe(c));
      ASSERT_EQ(block.output, static_cast<int>(block.ops.size()) - 1);
      EXPECT_TRUE(block.ops.empty() || block.ops[0].needs_input);
      for (int i = 0; i <= block.output; ++i) {
        CheckWork(block.ops[i]);
        for (const int dependency : block.ops[i].after) {
          ASSERT_GE(dependency, 0);
          ASSERT_LT(dependency, i);
          EXPECT_NE(block.ops[dependency].is_collective, block.ops[i].is_collective);
        }
      }
    }
  }
}

// When the output has ended, all work of both streams has, whichever stream is the slower one.
TEST(Blocks, NothingOutlivesTheOutput) {
  for (const Case& c : Sweep()) {
    for (const Block& block : AllBlocks(c)) {
      SCOPED_TRACE(Describe(c));
      for (const auto& [kernel, collective] : {std::pair{7, 3}, {3, 7}, {1, 1000}}) {
        const std::int64_t span = Span(block, kernel, collective);
        std::int64_t serial_compute = 0, serial_collective = 0;
        for (const BlockOp& op : block.ops) {
          (op.is_collective ? serial_collective : serial_compute) +=
              op.is_collective ? collective : kernel;
        }
        EXPECT_GE(span, std::max(serial_compute, serial_collective));
        EXPECT_LE(span, serial_compute + serial_collective);
      }
    }
  }
}

TEST(Blocks, CollectiveCounts) {
  for (const Case& c : Sweep()) {
    SCOPED_TRACE(Describe(c));
    const bool split = c.shape.tensor_parallel > 1;
    const int expected = !split ? 0 : c.shape.sequence_parallel ? 4 : 2;
    EXPECT_EQ(CountCollectives(LayerForward(c.model, c.shape), Phase::kForward), expected);
    const Block backward = LayerBackward(c.model, c.shape, Gradients::kBoth);
    EXPECT_EQ(CountCollectives(backward, Phase::kBackward), expected);
    EXPECT_EQ(CountCollectives(backward, Phase::kRecompute),
              c.shape.recompute == Recompute::kFull ? expected : 0);
  }
}

// Kernels much longer than collectives: what a collective adds to the span is what is exposed. All
// of the forward's, and of the backward's all but the two that run under weight gradients.
TEST(Blocks, ExposedCollectives) {
  for (const Case& c : Sweep()) {
    if (c.shape.tensor_parallel == 1) continue;
    SCOPED_TRACE(Describe(c));
    const int forward = c.shape.sequence_parallel ? 4 : 2;
    const int recomputed = c.shape.recompute == Recompute::kFull ? forward : 0;
    const auto exposed = [](const Block& block) { return Span(block, 100, 1) % 100; };
    EXPECT_EQ(exposed(LayerForward(c.model, c.shape)), forward);
    EXPECT_EQ(exposed(LayerBackward(c.model, c.shape, Gradients::kBoth)), recomputed + forward - 2);
    // Without weight gradients there is nothing to hide under.
    EXPECT_EQ(exposed(LayerBackward(c.model, c.shape, Gradients::kData)), recomputed + forward);
    EXPECT_EQ(exposed(LayerBackward(c.model, c.shape, Gradients::kWeights)), 0);
  }
}

TEST(Blocks, DataAndWeightGradientsTogetherAreBoth) {
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  for (const Case& c : Sweep()) {
    for (const BackwardFunction& backward : Backwards(c)) {
      SCOPED_TRACE(Describe(c));
      const Block both = backward(Gradients::kBoth), data = backward(Gradients::kData),
                  weights = backward(Gradients::kWeights);
      std::vector<std::string> apart = Names(data);
      for (const std::string& name : Names(weights)) apart.push_back(name);
      EXPECT_EQ(sorted(apart), sorted(Names(both)));
      EXPECT_DOUBLE_EQ(TotalFlops(data) + TotalFlops(weights), TotalFlops(both));
      for (const BlockOp& op : weights.ops) {
        EXPECT_FALSE(op.is_collective);
        EXPECT_EQ(op.phase, Phase::kWeightGradient);
      }
      for (const BlockOp& op : data.ops) EXPECT_NE(op.phase, Phase::kWeightGradient);
    }
  }
}

TEST(Blocks, Phases) {
  for (const Case& c : Sweep()) {
    SCOPED_TRACE(Describe(c));
    for (const BlockOp& op : LayerForward(c.model, c.shape).ops) {
      EXPECT_EQ(op.phase, Phase::kForward);
    }
    int recomputed = 0;
    for (const BlockOp& op : LayerBackward(c.model, c.shape, Gradients::kBoth).ops) {
      const bool weight = NameOf(op).find("_wgrad") != std::string::npos;
      EXPECT_EQ(op.phase == Phase::kWeightGradient, weight) << NameOf(op);
      EXPECT_NE(op.phase, Phase::kForward);
      recomputed += op.phase == Phase::kRecompute;
    }
    EXPECT_EQ(recomputed > 0, c.shape.recompute != Recompute::kNone);
  }
}

// The tensor-parallel GPUs together do the work of one GPU alone, whatever the degree (here the
// key/value heads split evenly).
TEST(Blocks, TensorParallelismDividesGemmWork) {
  for (const ModelConfig& model : {SmallGpt(), SmallVit(), SmallLlama()}) {
    const double whole = TotalFlops(LayerForward(model, Shape(2, 512, 1)));
    for (const int tp : {2, 4}) {
      EXPECT_DOUBLE_EQ(TotalFlops(LayerForward(model, Shape(2, 512, tp))) * tp, whole);
    }
  }
}

}  // namespace
}  // namespace optimus::models
