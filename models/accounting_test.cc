#include "models/accounting.h"

#include <gtest/gtest.h>

#include <utility>

#include "models/testing_models.h"
#include "models/zoo.h"

namespace optimus::models {
namespace {

ModelConfig Zoo(const std::string& name) {
  absl::StatusOr<ModelConfig> model = LoadModel(name);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.value_or(ModelConfig());
}

TEST(Parameters, MatchTheModelsNames) {
  const std::pair<const char*, double> named[] = {
      {"vit-3b", 3e9},
      {"vit-5b", 5.5e9},
      {"vit-11b", 10e9},  // the paper's table lists it with 10 B
      {"vit-22b", 22e9},
      {"llama-70b", 70e9},
      {"gpt-175b", 175e9},
      {"gpt-22b-korthikanti", 22e9},
      {"gpt-530b-korthikanti", 530e9},
  };
  for (const auto& [name, parameters] : named) {
    const auto counted = static_cast<double>(CountParameters(Zoo(name)));
    EXPECT_NEAR(counted / parameters, 1, 0.05) << name;
  }
  // The one name that the paper's own width and depth do not give: 80 layers of 3072 are 9.2 B.
  EXPECT_NEAR(static_cast<double>(CountParameters(Zoo("gpt-11b"))), 9.2e9, 0.05e9);
}

// The published count of meta-llama/Llama-2-70b-hf's checkpoint.
TEST(Parameters, LlamaIsExact) { EXPECT_EQ(CountParameters(Zoo("llama-70b")), 68'976'648'192); }

// 12 L h^2 (1 + 13 / 12h) + (V + s) h, and 2 h for the final norm (Narayanan et al., SC 2021,
// section 5.1: P = 12 l h^2 (1 + 13/12h + (V + s)/12lh), which leaves the final norm out).
TEST(Parameters, GptMatchesTheClosedForm) {
  const std::int64_t h = 12288, l = 96, vocabulary = 51200, positions = 2048;
  EXPECT_EQ(CountParameters(Zoo("gpt-175b")),
            12 * l * h * h + 13 * l * h + (vocabulary + positions) * h + 2 * h);
}

TEST(Parameters, SplitOverTensorParallelGpus) {
  for (const ModelConfig& model : {SmallGpt(), SmallVit(), SmallLlama()}) {
    const std::int64_t h = model.hidden_size();
    const std::int64_t row_biases = model.linear_bias() ? 2 * h : 0;
    const LayerParameters whole = CountLayerParameters(model);
    EXPECT_EQ(LayerParametersPerGpu(model, 1), whole.total());
    for (const int tp : {2, 4}) {
      const std::int64_t copies = (tp - 1) * (whole.norms + row_biases);
      EXPECT_EQ(LayerParametersPerGpu(model, tp) * tp, whole.total() + copies);
    }
    EXPECT_EQ(EmbeddingParametersPerGpu(model, 4),
              model.vocabulary_size() / 4 * h + model.max_position_embeddings() * h);
  }
  // 4 key/value heads on 8 GPUs: each of the 2 x 4 heads (48 x 1024 weights) is there twice.
  const LayerParameters llama = CountLayerParameters(SmallLlama());
  EXPECT_EQ(LayerParametersPerGpu(SmallLlama(), 8) * 8,
            llama.total() + 7 * llama.norms + 2LL * 4 * 48 * 1024);
}

TEST(Parameters, HeadAndProjector) {
  EXPECT_EQ(CountHeadParameters(SmallGpt()), 2 * 1024);              // tied: final norm only
  EXPECT_EQ(CountHeadParameters(SmallLlama()), 1024 + 8192 * 1024);  // RMSNorm, untied
  EXPECT_EQ(HeadParametersPerGpu(SmallLlama(), 4), 1024 + 2048 * 1024);
  EXPECT_EQ(CountProjectorParameters(SmallVit(), 2048), 1025 * 2048);  // with bias
  EXPECT_EQ(ProjectorParametersPerGpu(SmallVit(), 2048, 4), 1025 * 512);
}

// ViT-22B + GPT-175B at batch 1536: what the paper's products of time and PFLOP/s give (Feng et
// al., USENIX ATC 2025).
TEST(ModelFlops, PaperStrongScaling) {
  const double flops = ModelFlops(Zoo("gpt-175b"), 1536LL * 2048, 2048).value() +
                       ModelFlops(Zoo("vit-22b"), 1536LL * 4 * 2048, 2048).value();
  EXPECT_NEAR(flops / 5.1197e18, 1, 5e-4);
}

// Slow twin: the kernels' own FLOPs. Forward once, backward twice of it; norms and biases have
// parameters but no GEMM.
TEST(ModelFlops, MatchTheKernels) {
  for (const std::string& name : ZooModels()) {
    ModelConfig model = Zoo(name);
    model.set_attention(ModelConfig::FULL);
    const LayerShape shape = Shape(2, 1024, 1);
    const double kernels = 3 * (model.num_layers() * TotalFlops(LayerForward(model, shape)) +
                                TotalFlops(HeadForward(model, shape)));
    ModelConfig bare = model;
    bare.set_linear_bias(false);
    const LayerParameters parameters = CountLayerParameters(model);
    const std::int64_t not_gemm =
        parameters.total() - CountLayerParameters(bare).total() + parameters.norms;
    const double expected = ModelFlops(model, shape.tokens(), shape.sequence_length).value() -
                            6.0 * static_cast<double>(shape.tokens()) * model.num_layers() *
                                static_cast<double>(not_gemm);
    EXPECT_NEAR(kernels / expected, 1, 1e-12) << name;
  }
}

LayerShape Unfused(std::int64_t sequences, std::int64_t s, int tp, bool sequence_parallel,
                   Recompute recompute) {
  LayerShape shape = Shape(sequences, s, tp);
  shape.attention = AttentionImplementation::kUnfused;
  shape.fused_elementwise = false;
  shape.sequence_parallel = sequence_parallel;
  shape.recompute = recompute;
  return shape;
}

// Korthikanti et al., Table 2: activation memory of a transformer layer.
TEST(Activations, KorthikantiEquations) {
  const double a = 16, h = 1024;
  for (const double t : {1, 2, 8}) {
    for (const double s : {512, 2048}) {
      const double b = 3, sbh = s * b * h, core = 5 * a * s / h;
      const auto bytes = [&](bool sp, Recompute recompute) {
        const LayerShape shape =
            Unfused(3, static_cast<std::int64_t>(s), static_cast<int>(t), sp, recompute);
        return static_cast<double>(LayerActivationBytes(SmallGpt(), shape).value());
      };
      EXPECT_DOUBLE_EQ(bytes(false, Recompute::kNone), sbh * (10 + 24 / t + core / t));
      EXPECT_DOUBLE_EQ(bytes(true, Recompute::kNone), sbh * (34 + core) / t);
      EXPECT_DOUBLE_EQ(bytes(false, Recompute::kSelective), sbh * (10 + 24 / t));
      EXPECT_DOUBLE_EQ(bytes(true, Recompute::kSelective), sbh * 34 / t);
      EXPECT_DOUBLE_EQ(bytes(false, Recompute::kFull), sbh * 2);
      EXPECT_DOUBLE_EQ(bytes(true, Recompute::kFull), sbh * 2 / t);
    }
  }
}

// Rows of Korthikanti et al. (arXiv 2205.05198), Table 3 and the memory per GPU shown with it: no
// sequence parallelism and no recomputation; both; parameters and optimizer state at 18 bytes a
// parameter, embeddings not counted.
struct PublishedMemory {
  const char* model;
  int tp, pp, interleave, gpus, micro_batch;
  double activation_gib_none, activation_gib_seqpar_selective, params_optimizer_gib;
};
constexpr PublishedMemory kKorthikanti[] = {
    {"gpt-22b-korthikanti", 8, 1, 1, 8, 4, 59.25, 9.56, 45.56},
    {"gpt-530b-korthikanti", 8, 35, 3, 280, 1, 114.02, 23.08, 31.64},
};

TEST(Activations, KorthikantiPublishedMemory) {
  for (const PublishedMemory& row : kKorthikanti) {
    const ModelConfig model = Zoo(row.model);
    // The first stage holds L / p layers of p micro-batches, and of the interleaved schedule's
    // (p - 1) / (p m) more (section 4.2.3).
    const double interleaved =
        row.pp == 1 ? 1 : 1 + (row.pp - 1.0) / (static_cast<double>(row.pp) * row.interleave);
    const auto gib = [&](bool sequence_parallel, Recompute recompute) {
      const LayerShape shape = Unfused(row.micro_batch, 2048, row.tp, sequence_parallel, recompute);
      return ToGib(LayerActivationBytes(model, shape)) * model.num_layers() * interleaved;
    };
    EXPECT_NEAR(gib(false, Recompute::kNone), row.activation_gib_none, 0.01) << row.model;
    EXPECT_NEAR(gib(true, Recompute::kSelective), row.activation_gib_seqpar_selective, 0.01);
    const double layers =
        model.num_layers() * static_cast<double>(CountLayerParameters(model).total());
    EXPECT_NEAR(18 * layers / row.gpus / (1 << 30), row.params_optimizer_gib, 0.02) << row.model;
  }
}

// Fused kernels and flash attention, by hand for a GELU layer with ffn = 4 h: norm inputs and
// outputs 4 x 2, Q, K, V and the core's output 4 x 2, fc1's output and fc2's input 2 x 8 bytes a
// token and channel; 4 bytes of log-sum-exp a token and head.
TEST(Activations, FlashAndFused) {
  for (const int tp : {1, 4}) {
    LayerShape shape = Shape(3, 512, tp);
    const std::int64_t tokens = 3LL * 512, lse = tokens * 16 * 4 / tp;
    const std::int64_t kept = tokens * 1024 * 32 / tp;
    EXPECT_EQ(LayerActivationBytes(SmallGpt(), shape), Bytes(kept + lse));
    EXPECT_EQ(LayerRecomputeWorkspaceBytes(SmallGpt(), shape), Bytes(0));
    shape.recompute = Recompute::kSelective;
    EXPECT_EQ(LayerActivationBytes(SmallGpt(), shape), Bytes(kept));
    EXPECT_EQ(LayerRecomputeWorkspaceBytes(SmallGpt(), shape), Bytes(lse));
    shape.recompute = Recompute::kFull;
    const std::int64_t input = tokens * 1024 * 2 / tp;
    EXPECT_EQ(LayerActivationBytes(SmallGpt(), shape), Bytes(input));
    EXPECT_EQ(LayerRecomputeWorkspaceBytes(SmallGpt(), shape), Bytes(kept + lse - input));
  }
}

TEST(Activations, GroupedQueriesAndSwiglu) {
  // norms 4 x 2 x 1024; Q and output 2 x 2 x 768; K, V 2 x 2 x 192; fc1 2 x 5632; fc2 2 x 2816;
  // log-sum-exp 4 x 16.
  const std::int64_t per_token = 8192 + 3072 + 768 + 11264 + 5632 + 64;
  EXPECT_EQ(LayerActivationBytes(SmallLlama(), Shape(1, 512, 1)), Bytes(512 * per_token));
}

// Korthikanti et al., section 4.3: sbh / t of embedding dropout, 4 sbh / t (1 + v / h) of the final
// norm, the LM head's input and the fp32 logits.
TEST(Activations, EmbeddingAndHead) {
  const std::int64_t sbh = 3LL * 512 * 1024, v = 8192, h = 1024, t = 4;
  const LayerShape shape = Unfused(3, 512, t, true, Recompute::kNone);
  EXPECT_EQ(EmbeddingActivationBytes(SmallGpt(), shape), Bytes(sbh / t));
  EXPECT_EQ(HeadActivationBytes(SmallGpt(), shape), Bytes(4 * sbh / t + 4 * sbh * (v / h) / t));
  EXPECT_EQ(EmbeddingActivationBytes(SmallGpt(), Shape(3, 512, t)), Bytes(0));
  EXPECT_EQ(EmbeddingActivationBytes(SmallVit(), shape), Bytes(0));
  EXPECT_EQ(HeadActivationBytes(SmallVit(), shape), Bytes(0));
}

// Qi et al., arXiv 2401.10241, Table 1: M_W = 32 s b h (inputs 2 + 2 + 2 + 8, output gradients
// 6 + 2 + 8 + 2 bytes a token and channel). Under tensor parallelism the output gradients of proj
// and fc2 are whole.
TEST(WeightGradientBytes, IsWhatTheLinearLayersNeed) {
  const std::int64_t sbh = 3LL * 512 * 1024, v = 8192, h = 1024;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    LayerShape shape = Shape(3, 512, 1);
    shape.recompute = recompute;
    EXPECT_EQ(LayerWeightGradientBytes(SmallGpt(), shape), Bytes(32 * sbh));
    shape.tensor_parallel = 4;
    EXPECT_EQ(LayerWeightGradientBytes(SmallGpt(), shape), Bytes(28 * sbh / 4 + 4 * sbh));
    shape.sequence_parallel = false;  // norms' outputs are whole, too
    EXPECT_EQ(LayerWeightGradientBytes(SmallGpt(), shape), Bytes(24 * sbh / 4 + 8 * sbh));
  }
  const LayerShape shape = Shape(3, 512, 4);
  EXPECT_EQ(HeadWeightGradientBytes(SmallGpt(), shape), Bytes(2 * sbh / 4 * (1 + v / h)));
  EXPECT_EQ(HeadWeightGradientBytes(SmallVit(), shape), Bytes(0));
  const std::int64_t tokens = 3LL * 512, width = SmallVit().hidden_size();
  EXPECT_EQ(ProjectorWeightGradientBytes(SmallVit(), 1024, shape),
            Bytes(2 * tokens * (width + 1024) / 4));
}

}  // namespace
}  // namespace optimus::models
