// The kernel inventory: which kernels and collectives, with which shapes, FLOPs and bytes.

#include "models/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/testing_models.h"

namespace optimus::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMiB = 1 << 20;

TEST(LayerForward, FusedSequenceParallelInventory) {
  const Block block = LayerForward(SmallVit(), Shape(2, 512, 4));
  EXPECT_THAT(Names(block), ElementsAre("norm1", "qkv_all_gather", "qkv", "attention", "proj",
                                        "proj_reduce_scatter", "norm2", "fc1_all_gather", "fc1",
                                        "fc2", "fc2_reduce_scatter"));
  const auto ops = ByName(block);
  // S = 1024 tokens x 1024 x 2 bytes = 2 MiB; u = S / 4.
  EXPECT_EQ(ops.at("norm1").kernel.bytes, Bytes(2 * kMiB));
  EXPECT_EQ(ops.at("norm2").kernel.bytes, Bytes(2 * kMiB));
  EXPECT_EQ(ops.at("qkv_all_gather").collective,
            (CollectiveWork{CollectiveKind::kAllGather, "qkv_all_gather", Bytes(2 * kMiB)}));
  EXPECT_EQ(
      ops.at("fc2_reduce_scatter").collective,
      (CollectiveWork{CollectiveKind::kReduceScatter, "fc2_reduce_scatter", Bytes(2 * kMiB)}));
  EXPECT_EQ(ops.at("qkv").kernel.gemm, (GemmShape{1024, 768, 1024}));
  EXPECT_EQ(ops.at("proj").kernel.gemm, (GemmShape{1024, 1024, 256}));
  EXPECT_EQ(ops.at("fc1").kernel.gemm, (GemmShape{1024, 1024, 1024}));
  EXPECT_EQ(ops.at("fc2").kernel.gemm, (GemmShape{1024, 1024, 1024}));
  EXPECT_EQ(ops.at("attention").kernel.attention,
            (AttentionShape{2, 4, 4, 512, 64, /*causal=*/false, /*backward=*/false}));
}

TEST(LayerBackward, FusedSequenceParallelInventory) {
  const Block block = LayerBackward(SmallVit(), Shape(2, 512, 4), Gradients::kBoth);
  EXPECT_THAT(Names(block),
              ElementsAre("fc2_dgrad_all_gather", "fc2_dgrad", "fc2_wgrad", "fc1_dgrad",
                          "fc1_dgrad_reduce_scatter", "fc1_wgrad", "norm2_dgrad",
                          "proj_dgrad_all_gather", "proj_dgrad", "proj_wgrad", "attention_dgrad",
                          "qkv_dgrad", "qkv_dgrad_reduce_scatter", "qkv_wgrad", "norm1_dgrad"));
  EXPECT_THAT(block.ops[1].after, ElementsAre(0));
  EXPECT_THAT(block.ops[4].after, ElementsAre(3));
  EXPECT_THAT(block.ops[5].after, IsEmpty());  // runs under the reduce-scatter
  EXPECT_THAT(block.ops[6].after, ElementsAre(4));
  EXPECT_THAT(block.ops[14].after, ElementsAre(12));
  EXPECT_EQ(block.ops[6].kernel.bytes, Bytes(2 * kMiB));
  EXPECT_EQ(block.output, 14);
}

// Without overlap the collective behind an input gradient waits for the weight gradient.
TEST(LayerBackward, CollectivesMayWaitForWeightGradients) {
  LayerShape shape = Shape(2, 512, 4);
  shape.backward_overlap = false;
  const Block block = LayerBackward(SmallVit(), shape, Gradients::kBoth);
  EXPECT_THAT(Names(block),
              ElementsAre("fc2_dgrad_all_gather", "fc2_dgrad", "fc2_wgrad", "fc1_dgrad",
                          "fc1_wgrad", "fc1_dgrad_reduce_scatter", "norm2_dgrad",
                          "proj_dgrad_all_gather", "proj_dgrad", "proj_wgrad", "attention_dgrad",
                          "qkv_dgrad", "qkv_wgrad", "qkv_dgrad_reduce_scatter", "norm1_dgrad"));
  EXPECT_EQ(block.ops[4].phase, Phase::kWeightGradient);
  EXPECT_THAT(block.ops[5].after, ElementsAre(4));
  EXPECT_THAT(block.ops[13].after, ElementsAre(12));
  EXPECT_THAT(block.ops[14].after, ElementsAre(13));
  // Data and weight gradients apart are what they were.
  const LayerShape overlapped = Shape(2, 512, 4);
  for (const Gradients gradients : {Gradients::kData, Gradients::kWeights}) {
    EXPECT_EQ(Names(LayerBackward(SmallVit(), shape, gradients)),
              Names(LayerBackward(SmallVit(), overlapped, gradients)));
  }
}

TEST(LayerBackward, WithoutSequenceParallelismAllReducesAndWorksOnAllTokens) {
  LayerShape shape = Shape(2, 512, 4);
  shape.sequence_parallel = false;
  EXPECT_THAT(Names(LayerForward(SmallVit(), shape)),
              ElementsAre("norm1", "qkv", "attention", "proj", "proj_all_reduce", "norm2", "fc1",
                          "fc2", "fc2_all_reduce"));
  const Block backward = LayerBackward(SmallVit(), shape, Gradients::kBoth);
  EXPECT_THAT(Names(backward),
              ElementsAre("fc2_dgrad", "fc2_wgrad", "fc1_dgrad", "fc1_dgrad_all_reduce",
                          "fc1_wgrad", "norm2_dgrad", "proj_dgrad", "proj_wgrad", "attention_dgrad",
                          "qkv_dgrad", "qkv_dgrad_all_reduce", "qkv_wgrad", "norm1_dgrad"));
  EXPECT_EQ(ByName(backward).at("norm1_dgrad").kernel.bytes, Bytes(8 * kMiB));
}

TEST(LayerForward, UnfusedElementwiseKernels) {
  LayerShape shape = Shape(2, 512, 1);
  shape.fused_elementwise = false;
  shape.attention = AttentionImplementation::kUnfused;
  const Block block = LayerForward(SmallVit(), shape);
  EXPECT_THAT(Names(block),
              ElementsAre("norm1", "qkv", "qk", "softmax", "attention_dropout", "av", "proj",
                          "attention_residual", "norm2", "fc1", "gelu", "fc2", "mlp_residual"));
  const auto ops = ByName(block);
  EXPECT_EQ(ops.at("norm1").kernel.bytes, Bytes(4 * kMiB));               // 2 u
  EXPECT_EQ(ops.at("gelu").kernel.bytes, Bytes(16 * kMiB));               // 2 x 1024 x 4096 x 2
  EXPECT_EQ(ops.at("mlp_residual").kernel.bytes, Bytes(7 * kMiB));        // 3 u + mask
  EXPECT_EQ(ops.at("softmax").kernel.bytes, Bytes(32 * kMiB));            // 4 B of 2 x 16 x 512^2
  EXPECT_EQ(ops.at("attention_dropout").kernel.bytes, Bytes(40 * kMiB));  // 5 B of it
  EXPECT_EQ(ops.at("qk").kernel.gemm, (GemmShape{2LL * 16 * 512, 512, 64}));
  EXPECT_EQ(ops.at("av").kernel.gemm, (GemmShape{2LL * 16 * 512, 64, 512}));
  EXPECT_EQ(ops.at("av").kernel.bytes, Bytes((16 + 2 + 2) * kMiB));  // scores, V, output
}

TEST(LayerBackward, UnfusedElementwiseKernels) {
  LayerShape shape = Shape(2, 512, 1);
  shape.fused_elementwise = false;
  const auto gelu = ByName(LayerBackward(SmallVit(), shape, Gradients::kBoth));
  EXPECT_EQ(gelu.at("mlp_dropout_dgrad").kernel.bytes, Bytes(5 * kMiB));  // 2 u + mask
  EXPECT_EQ(gelu.at("gelu_dgrad").kernel.bytes, Bytes(24 * kMiB));        // 3 accesses
  EXPECT_EQ(gelu.at("norm1_dgrad").kernel.bytes, Bytes(6 * kMiB));        // 3 u
  EXPECT_EQ(gelu.at("residual_grad_add").kernel.bytes, Bytes(6 * kMiB));
  // SwiGLU, width 2816: 3 accesses forward (gate, up; product), 5 backward.
  const std::int64_t access = 1024LL * 2816 * 2;
  EXPECT_EQ(ByName(LayerForward(SmallLlama(), shape)).at("swiglu").kernel.bytes, Bytes(3 * access));
  EXPECT_EQ(
      ByName(LayerBackward(SmallLlama(), shape, Gradients::kBoth)).at("swiglu_dgrad").kernel.bytes,
      Bytes(5 * access));
}

TEST(Layer, GroupedQueriesAndSwiglu) {
  const auto ops = ByName(LayerForward(SmallLlama(), Shape(1, 256, 2)));
  EXPECT_EQ(ops.at("qkv").kernel.gemm, (GemmShape{256, (8 + 2 * 2) * 48LL, 1024}));
  EXPECT_EQ(ops.at("proj").kernel.gemm, (GemmShape{256, 1024, 8LL * 48}));
  EXPECT_EQ(ops.at("fc1").kernel.gemm, (GemmShape{256, 2816, 1024}));
  EXPECT_EQ(ops.at("fc2").kernel.gemm, (GemmShape{256, 1024, 2816 / 2}));
  EXPECT_EQ(ops.at("attention").kernel.attention, (AttentionShape{1, 8, 2, 256, 48, true, false}));
  // Fewer key/value heads than GPUs: every GPU holds a copy of one.
  const auto wide = ByName(LayerForward(SmallLlama(), Shape(1, 256, 8)));
  EXPECT_EQ(wide.at("attention").kernel.attention.kv_heads, 1);
  EXPECT_EQ(wide.at("qkv").kernel.gemm.n, 4LL * 48);
}

// Closed form of a GELU layer with ffn = 4 h: 24 b s h^2 (1 + s / 6h) for full attention (Narayanan
// et al., SC 2021, section 5.1); the causal flash kernel does half of the second term.
TEST(LayerForward, FlopsMatchTheClosedForm) {
  for (const int tp : {1, 2, 8}) {
    for (const double s : {256, 2048}) {
      const double b = 3, h = 1024;
      const double linear = 24 * b * s * h * h, core = 4 * b * s * s * h;
      LayerShape shape = Shape(3, static_cast<std::int64_t>(s), tp);
      EXPECT_DOUBLE_EQ(TotalFlops(LayerForward(SmallVit(), shape)) * tp, linear + core);
      EXPECT_DOUBLE_EQ(TotalFlops(LayerForward(SmallGpt(), shape)) * tp, linear + core / 2);
      // Unfused attention computes the masked half too.
      shape.attention = AttentionImplementation::kUnfused;
      EXPECT_DOUBLE_EQ(TotalFlops(LayerForward(SmallGpt(), shape)) * tp, linear + core);
      EXPECT_DOUBLE_EQ(TotalFlops(LayerBackward(SmallGpt(), shape, Gradients::kBoth)) * tp,
                       2 * (linear + core));
    }
  }
}

TEST(LayerBackward, GemmsDoTwiceTheForwardAndFlashTwoAndAHalf) {
  for (const ModelConfig& model : {SmallVit(), SmallGpt(), SmallLlama()}) {
    const LayerShape shape = Shape(2, 512, 2);
    const Block forward = LayerForward(model, shape);
    const Block backward = LayerBackward(model, shape, Gradients::kBoth);
    EXPECT_DOUBLE_EQ(GemmFlops(backward), 2 * GemmFlops(forward));
    EXPECT_DOUBLE_EQ(TotalFlops(backward) - GemmFlops(backward),
                     2.5 * (TotalFlops(forward) - GemmFlops(forward)));
  }
}

TEST(LayerBackward, GradientGemmsAreTheForwardsTransposed) {
  const auto forward = ByName(LayerForward(SmallLlama(), Shape(2, 512, 2)));
  const auto backward = ByName(LayerBackward(SmallLlama(), Shape(2, 512, 2), Gradients::kBoth));
  for (const char* name : {"qkv", "proj", "fc1", "fc2"}) {
    const GemmShape f = forward.at(name).kernel.gemm;
    EXPECT_EQ(backward.at(std::string(name) + "_dgrad").kernel.gemm, (GemmShape{f.m, f.k, f.n}));
    EXPECT_EQ(backward.at(std::string(name) + "_wgrad").kernel.gemm, (GemmShape{f.n, f.k, f.m}));
    EXPECT_EQ(forward.at(name).kernel.bytes.value(), 2 * (f.m * f.k + f.k * f.n + f.m * f.n));
    // bf16 operands, fp32 main gradient read and written.
    EXPECT_EQ(backward.at(std::string(name) + "_wgrad").kernel.bytes.value(),
              2 * (f.m * f.k + f.m * f.n) + 8 * f.n * f.k);
  }
}

TEST(LayerBackward, FullRecomputeRunsTheForwardFirst) {
  LayerShape shape = Shape(2, 512, 4);
  const Block forward = LayerForward(SmallGpt(), shape);
  const Block plain = LayerBackward(SmallGpt(), shape, Gradients::kBoth);
  shape.recompute = Recompute::kFull;
  const Block block = LayerBackward(SmallGpt(), shape, Gradients::kBoth);
  std::vector<std::string> expected = Names(forward);
  for (const std::string& name : Names(plain)) expected.push_back(name);
  EXPECT_EQ(Names(block), expected);
  EXPECT_TRUE(block.ops[0].needs_input);
  EXPECT_TRUE(block.ops[forward.ops.size()].needs_input);
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    EXPECT_EQ(block.ops[i].phase == Phase::kRecompute, i < forward.ops.size()) << i;
  }
}

TEST(LayerBackward, SelectiveRecomputeRunsTheCoreOnly) {
  LayerShape shape = Shape(2, 512, 4);
  shape.recompute = Recompute::kSelective;
  for (const auto attention :
       {AttentionImplementation::kFlash, AttentionImplementation::kUnfused}) {
    shape.attention = attention;
    const Block block = LayerBackward(SmallGpt(), shape, Gradients::kData);
    std::vector<std::string> recomputed;
    for (const BlockOp& op : block.ops) {
      if (op.phase == Phase::kRecompute) recomputed.push_back(NameOf(op));
    }
    if (attention == AttentionImplementation::kFlash) {
      EXPECT_THAT(recomputed, ElementsAre("attention"));
    } else {
      EXPECT_THAT(recomputed, ElementsAre("qk", "softmax", "attention_dropout", "av"));
    }
    // Right before the attention's backward.
    const auto names = Names(block);
    const auto proj = std::find(names.begin(), names.end(), "proj_dgrad");
    ASSERT_NE(proj, names.end());
    EXPECT_EQ(*(proj + 1), recomputed.front());
  }
}

TEST(Embedding, MovesBytesAndScatters) {
  const Block forward = EmbeddingForward(SmallGpt(), Shape(2, 512, 4));
  EXPECT_THAT(Names(forward), ElementsAre("embedding", "embedding_reduce_scatter"));
  EXPECT_EQ(forward.ops[0].kernel.bytes, Bytes(4 * kMiB));
  const Block backward = EmbeddingBackward(SmallGpt(), Shape(2, 512, 4), Gradients::kBoth);
  EXPECT_THAT(Names(backward), ElementsAre("embedding_dgrad_all_gather", "embedding_dgrad"));
  EXPECT_EQ(backward.ops[1].kernel.bytes, Bytes(10 * kMiB));
  LayerShape all_reduce = Shape(2, 512, 4);
  all_reduce.sequence_parallel = false;
  EXPECT_THAT(Names(EmbeddingForward(SmallGpt(), all_reduce)),
              ElementsAre("embedding", "embedding_all_reduce"));
  EXPECT_THAT(Names(EmbeddingBackward(SmallGpt(), all_reduce, Gradients::kBoth)),
              ElementsAre("embedding_dgrad"));
}

TEST(Head, ProjectsToTheVocabularyAndIsNotRecomputed) {
  LayerShape shape = Shape(2, 512, 4);
  shape.recompute = Recompute::kFull;
  const Block forward = HeadForward(SmallGpt(), shape);
  EXPECT_THAT(Names(forward),
              ElementsAre("final_norm", "lm_head_all_gather", "lm_head", "cross_entropy"));
  const auto ops = ByName(forward);
  EXPECT_EQ(ops.at("final_norm").kernel.bytes, Bytes(1 * kMiB));
  EXPECT_EQ(ops.at("lm_head").kernel.gemm, (GemmShape{1024, 2048, 1024}));
  EXPECT_EQ(ops.at("cross_entropy").kernel.bytes, Bytes(2LL * 1024 * 2048 * 2));
  const Block backward = HeadBackward(SmallGpt(), shape, Gradients::kBoth);
  EXPECT_THAT(Names(backward),
              ElementsAre("cross_entropy_dgrad", "lm_head_dgrad", "lm_head_dgrad_reduce_scatter",
                          "lm_head_wgrad", "final_norm_dgrad"));
  EXPECT_THAT(backward.ops[4].after, ElementsAre(2));
  EXPECT_DOUBLE_EQ(TotalFlops(backward), 2 * TotalFlops(forward));
}

TEST(EndLayers, AnEncoderHasNone) {
  for (const Block& block :
       {EmbeddingForward(SmallVit(), Shape(2, 512, 4)), HeadForward(SmallVit(), Shape(2, 512, 4)),
        EmbeddingBackward(SmallVit(), Shape(2, 512, 4), Gradients::kBoth),
        HeadBackward(SmallVit(), Shape(2, 512, 4), Gradients::kBoth)}) {
    EXPECT_TRUE(block.ops.empty());
    EXPECT_EQ(block.output, -1);
  }
}

TEST(Projector, IsOneColumnParallelGemm) {
  LayerShape shape = Shape(2, 512, 4);
  const Block forward = ProjectorForward(SmallVit(), 2048, shape);
  ASSERT_THAT(Names(forward), ElementsAre("projector"));
  EXPECT_EQ(forward.ops[0].kernel.gemm, (GemmShape{1024, 512, 1024}));
  EXPECT_THAT(Names(ProjectorBackward(SmallVit(), 2048, shape, Gradients::kBoth)),
              ElementsAre("projector_dgrad", "projector_wgrad"));
  shape.recompute = Recompute::kFull;
  EXPECT_THAT(Names(ProjectorBackward(SmallVit(), 2048, shape, Gradients::kBoth)),
              ElementsAre("projector", "projector_dgrad", "projector_wgrad"));
}

}  // namespace
}  // namespace optimus::models
