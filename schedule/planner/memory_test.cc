#include "schedule/planner/memory.h"

#include "gmock/gmock.h"
#include "models/accounting.h"
#include "schedule/step/testing.h"

namespace optimus::planner {
namespace {

using ::testing::ElementsAre;

// ViT-22B beside GPT-175B on (48, 8, 8): 8 sequences of 2048 tokens a micro-batch, 4 slices of 2.
step::Experiment Strong3072() {
  return step::testing::Parse(R"(name: "strong" llm: "gpt-175b"
    encoders { model: "vit-22b" sequences_per_sample: 4 sequence_length: 2048
               sequences_per_slice: 2 }
    hardware { profile: "h100-80gb" gpus: 3072 }
    batch { global_batch: 1536 micro_batch: 2 sequence_length: 2048 }
    plan { data_parallel: 48 pipeline_parallel: 8 tensor_parallel: 8 schedule: ONE_F_ONE_B
           recompute: RECOMPUTE_FULL })");
}

std::vector<EncoderStageMemory> MemoryOf(const step::Experiment& experiment,
                                         const EncoderPlan& plan, int module = 1) {
  const auto stack = step::BuildStack(experiment);
  EXPECT_TRUE(stack.ok()) << stack.status();
  auto memory = EncoderMemory(experiment.plan(), *stack, module, plan);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? *memory : std::vector<EncoderStageMemory>();
}

// By hand, h = 6144, f = 24576, TP 8, biases of row-parallel layers on every GPU:
//   qkv (h + 1) 3h/8, proj (h/8 + 1) h, fc1 (h + 1) f/8, fc2 (f/8 + 1) h, two norms 4 h.
constexpr std::int64_t kLayer =
    6145L * 2304 + 769L * 6144 + 6145L * 3072 + 3073L * 6144 + 4L * 6144;
static_assert(kLayer == 56'665'344);
constexpr std::int64_t kProjector = 6145L * 12288 / 8;
// Input of a layer for all 16384 tokens of a micro-batch, 1/8 of it on a GPU.
constexpr std::int64_t kInput = 16384L * 6144 * 2 / 8;

TEST(EncoderMemory, Vit22BOnOneStageByHand) {
  const auto memory = MemoryOf(Strong3072(), {1, 8});
  ASSERT_EQ(memory.size(), 1U);
  const std::int64_t parameters = 48 * kLayer + kProjector;
  EXPECT_NEAR(static_cast<double>(parameters), 22e9 / 8, 0.01 * 22e9 / 8);
  const step::StageMemory& fixed = memory[0].fixed;
  EXPECT_EQ(fixed.parameters, Bytes(2 * parameters));                      // 5.46e9
  EXPECT_EQ(fixed.gradients, Bytes(4 * parameters));                       // 10.9e9
  EXPECT_EQ(fixed.optimizer_state, Bytes((12 * parameters + 383) / 384));  // DP_enc 3072 / 8
  EXPECT_EQ(fixed.activations, Bytes(0));
  EXPECT_EQ(memory[0].activations_per_micro_batch, Bytes(49 * kInput));
  // One slice of 4096 tokens, r = 4096 h 2 / 8: a layer kept whole is 4 r outside the core, Q, K, V
  // and the core's output (4 r), fc1 and fc2 inputs (4 r each), 4 bytes a row and head; less its
  // input. The gathered input is 8 r. The LLM's input: 4096 tokens of 12288, both ways.
  constexpr std::int64_t kR = 4096L * 6144 * 2 / 8;
  EXPECT_EQ(fixed.workspace, Bytes(15 * kR + 4096L * 6 * 4 + 8 * kR + 2 * (4096L * 12288 * 2 / 8)));
}

TEST(EncoderMemory, TwoStages) {
  const auto memory = MemoryOf(Strong3072(), {2, 8});
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0].fixed.parameters, Bytes(48 * kLayer));
  EXPECT_EQ(memory[1].fixed.parameters, Bytes(2 * (24 * kLayer + kProjector)));
  EXPECT_EQ(memory[0].fixed.optimizer_state, Bytes((288 * kLayer + 191) / 192));
  EXPECT_EQ(memory[0].activations_per_micro_batch, Bytes(24 * kInput));
  EXPECT_EQ(memory[1].activations_per_micro_batch, Bytes(25 * kInput));
  // A message of 16384 tokens behind the first stage, both ways; the last has one on either side.
  EXPECT_EQ(memory[1].fixed.workspace - memory[0].fixed.workspace,
            Bytes(2 * (4096L * 12288 * 2 / 8)));
}

TEST(EncoderMemory, LessTensorParallelismHoldsMore) {
  const auto memory = MemoryOf(Strong3072(), {1, 1});
  const auto stack = step::BuildStack(Strong3072());
  const std::int64_t parameters =
      48 * models::CountLayerParameters(stack->modules[1].config).total() +
      models::CountProjectorParameters(stack->modules[1].config, 12288);
  EXPECT_EQ(memory[0].fixed.parameters, Bytes(2 * parameters));
  EXPECT_EQ(memory[0].activations_per_micro_batch, Bytes(49L * 8 * kInput));
}

TEST(EncoderMemory, AFrozenEncoderHoldsParametersAndItsProjector) {
  step::Experiment experiment = Strong3072();
  experiment.mutable_encoders(0)->set_frozen(true);
  const auto memory = MemoryOf(experiment, {2, 8});
  EXPECT_EQ(memory[0].fixed.parameters, Bytes(48 * kLayer));
  EXPECT_EQ(memory[0].fixed.gradients, Bytes(0));
  EXPECT_EQ(memory[0].fixed.optimizer_state, Bytes(0));
  EXPECT_EQ(memory[0].activations_per_micro_batch, Bytes(0));
  EXPECT_EQ(memory[1].fixed.parameters, Bytes(2 * (24 * kLayer + kProjector)));
  EXPECT_EQ(memory[1].fixed.gradients, Bytes(4 * kProjector));
  EXPECT_EQ(memory[1].fixed.optimizer_state, Bytes((12 * kProjector + 191) / 192));
  EXPECT_EQ(memory[1].activations_per_micro_batch, Bytes(kInput));
  // Nothing is recomputed, and gradients do not travel inside: gathered input and one way.
  EXPECT_EQ(memory[0].fixed.workspace, Bytes(4096L * 6144 * 2 + kInput));
}

TEST(EncoderMemory, WithoutTheDistributedOptimizerAllStateIsOnEveryGpu) {
  step::Experiment experiment = Strong3072();
  experiment.mutable_plan()->set_no_distributed_optimizer(true);
  EXPECT_EQ(MemoryOf(experiment, {1, 8})[0].fixed.optimizer_state,
            Bytes(12 * (48 * kLayer + kProjector)));
}

// Invented numbers from here on: one byte of each category differs by place.
step::StageMemory Stage(std::int64_t parameters, std::int64_t activations) {
  return {Bytes(parameters), Bytes(1), Bytes(2), Bytes(activations), Bytes(3)};
}
EncoderOnGpus Encoder(EncoderPlan plan, const std::vector<std::int64_t>& activations,
                      std::int32_t micro_batches) {
  EncoderOnGpus encoder{plan, {}, micro_batches};
  for (const std::int64_t bytes : activations) {
    encoder.stages.push_back({Stage(10, 0), Bytes(bytes)});
  }
  return encoder;
}

TEST(MemoryWithEncoders, TheFullestRankOfEveryStage) {
  const std::vector<step::StageMemory> llm = {Stage(100, 40), Stage(100, 20)};
  // PP 2, TP 1 on a tensor-parallel pair: pipelines 0 and 1 are on both stages.
  const auto two = MemoryWithEncoders(llm, 2, {Encoder({2, 1}, {5, 7}, 4)}, {Split{1, 3}});
  EXPECT_EQ(two[0].activations, Bytes(40 + 3 * 5));
  EXPECT_EQ(two[1].activations, Bytes(20 + 3 * 7));
  EXPECT_EQ(two[1].parameters, Bytes(110));
  EXPECT_EQ(two[1].workspace, Bytes(6));
  // PP 1, TP 1: pipelines 0 and 1 are on stage 0, 2 and 3 on stage 1.
  const auto one = MemoryWithEncoders(llm, 2, {Encoder({1, 1}, {5}, 7)}, {Split{1, 2, 4, 0}});
  EXPECT_EQ(one[0].activations, Bytes(40 + 2 * 5));
  EXPECT_EQ(one[1].activations, Bytes(20 + 4 * 5));
  // Two encoders: on rank 1 of stage 0 the first holds 2 and the second 1.
  const auto both = MemoryWithEncoders(
      llm, 2, {Encoder({1, 1}, {5}, 7), Encoder({2, 2}, {11, 13}, 1)}, {Split{1, 2, 4, 0}, {1}});
  EXPECT_EQ(both[0].activations, Bytes(40 + 2 * 5 + 11));
  EXPECT_EQ(both[1].activations, Bytes(20 + 4 * 5 + 13));
  EXPECT_EQ(both[0].parameters, Bytes(120));
}

TEST(WhyItDoesNotFit, NamesStageNeedByCategoryAndCapacity) {
  constexpr std::int64_t kGib = 1L << 30;
  const step::StageMemory small = Stage(kGib, kGib);
  const step::StageMemory large = {Bytes(30 * kGib), Bytes(20 * kGib), Bytes(kGib / 2),
                                   Bytes(32 * kGib), Bytes(10 * kGib)};
  EXPECT_EQ(WhyItDoesNotFit({small, large, large}, Bytes(80 * kGib)),
            "GPU memory of stage 1: 92.5 GiB needed (parameters 30.0, gradients 20.0, optimizer "
            "state 0.5, activations 32.0, workspace 10.0), 80.0 GiB there");
  EXPECT_EQ(WhyItDoesNotFit({small, large}, large.total()), "");
  EXPECT_NE(WhyItDoesNotFit({small, large}, large.total() - Bytes(1)), "");
}

// The twin counts upwards until it does not fit.
std::int32_t MostByCounting(const std::vector<step::StageMemory>& llm, const EncoderOnGpus& encoder,
                            std::int32_t tp, std::int32_t pipelines, Bytes capacity) {
  std::int32_t most = 0;
  while (most < encoder.micro_batches &&
         WhyItDoesNotFit(MemoryWithEncoders(llm, tp, {encoder}, {Split(pipelines, most + 1)}),
                         capacity)
             .empty()) {
    ++most;
  }
  return most;
}

TEST(MostMicroBatches, EqualsCounting) {
  const std::vector<step::StageMemory> llm = {Stage(100, 40), Stage(90, 70)};
  const EncoderOnGpus encoder = Encoder({2, 1}, {5, 8}, 6);  // 2 pipelines, 3 each when balanced
  for (std::int64_t capacity = 150; capacity < 260; ++capacity) {
    const auto most = MostMicroBatches(llm, 2, {encoder}, Bytes(capacity));
    const std::int32_t counted = MostByCounting(llm, encoder, 2, 2, Bytes(capacity));
    if (counted < 3) {
      EXPECT_EQ(most.status().code(), absl::StatusCode::kResourceExhausted) << capacity;
    } else {
      ASSERT_TRUE(most.ok()) << most.status();
      EXPECT_THAT(*most, ElementsAre(counted)) << capacity;
    }
  }
}

TEST(MostMicroBatches, SeveralEncodersFitTogether) {
  const std::vector<step::StageMemory> llm = {Stage(100, 0), Stage(100, 0)};
  const std::vector<EncoderOnGpus> encoders = {Encoder({2, 2}, {10, 10}, 8),
                                               Encoder({1, 2}, {20}, 8)};
  // Balanced: the only pipeline of the first holds 8, those of the second 4 each.
  const Bytes fixed = Stage(100, 0).total() + Stage(10, 0).total() * 2;
  EXPECT_THAT(*MostMicroBatches(llm, 2, encoders, fixed + Bytes(80 + 80)), ElementsAre(8, 4));
  EXPECT_THAT(*MostMicroBatches(llm, 2, encoders, fixed + Bytes(80 + 125)), ElementsAre(8, 6));
  EXPECT_FALSE(MostMicroBatches(llm, 2, encoders, fixed + Bytes(80 + 79)).ok());
  // A frozen encoder keeps nothing: no limit.
  EXPECT_THAT(*MostMicroBatches(llm, 2, {Encoder({1, 2}, {0}, 8)}, Bytes(1000)), ElementsAre(8));
}

}  // namespace
}  // namespace optimus::planner
