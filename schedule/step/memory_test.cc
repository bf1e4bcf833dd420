#include "schedule/step/memory.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "models/accounting.h"
#include "schedule/pipeline/dualpipe.h"
#include "schedule/pipeline/dualpipe_v.h"
#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_h2.h"
#include "schedule/step/parameters.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Parse;
using testing::SmallModel;

// Chunk by chunk, micro-batch by micro-batch: the obvious twin of the running sum.
Bytes PeakByEnumeration(const std::vector<pipeline::Slot>& slots,
                        const std::vector<KeptBytes>& by_chunk) {
  Bytes peak;
  for (std::size_t now = 0; now < slots.size(); ++now) {
    const auto has_run = [&](const pipeline::Slot& forward, pipeline::SlotKind kind) {
      return std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(now) + 1,
                         [&](const pipeline::Slot& slot) {
                           return slot.kind == kind && slot.chunk == forward.chunk &&
                                  slot.micro_batch == forward.micro_batch;
                         });
    };
    Bytes kept;
    for (std::size_t f = 0; f <= now; ++f) {
      if (slots[f].kind != pipeline::SlotKind::kForward) continue;
      if (has_run(slots[f], pipeline::SlotKind::kBackward) ||
          has_run(slots[f], pipeline::SlotKind::kBackwardWeight)) {
        continue;
      }
      const KeptBytes& bytes = by_chunk[slots[f].chunk];
      kept += has_run(slots[f], pipeline::SlotKind::kBackwardData) ? bytes.weight_gradients
                                                                   : bytes.activations;
    }
    peak = std::max(peak, kept);
  }
  return peak;
}

TEST(PeakActivations, EqualsEnumeration) {
  for (const auto warm_up : {pipeline::WarmUp::kMegatron, pipeline::WarmUp::kDeferred}) {
    const auto order = pipeline::Interleaved(
        {.stages = 4, .chunks = 3, .micro_batches = 8, .group_size = 4, .warm_up = warm_up});
    ASSERT_TRUE(order.ok());
    const std::vector<KeptBytes> by_chunk = {
        {Bytes(100), Bytes(3)}, {Bytes(7), Bytes(3)}, {Bytes(31), Bytes(3)}};
    for (const auto& slots : order->slots) {
      EXPECT_EQ(PeakActivations(slots, by_chunk), PeakByEnumeration(slots, by_chunk));
    }
  }
}

// Weight gradients need less than was kept, or under full recomputation more.
TEST(PeakActivations, EqualsEnumerationWhereWeightGradientsRunApart) {
  for (const std::int64_t weights : {0, 3, 10, 80}) {
    const std::vector<KeptBytes> by_chunk = {{Bytes(10), Bytes(weights)},
                                             {Bytes(20), Bytes(2 * weights)}};
    for (const auto& order : {pipeline::ZbH1(4, 9), pipeline::ZbH2(4, 9), pipeline::DualPipe(4, 10),
                              pipeline::DualPipeV(4, 9)}) {
      ASSERT_TRUE(order.ok()) << order.status();
      for (const auto& slots : order->slots) {
        EXPECT_EQ(PeakActivations(slots, by_chunk), PeakByEnumeration(slots, by_chunk));
      }
    }
  }
}

TEST(PeakActivations, ClosedForms) {
  const auto gpipe = pipeline::GPipe(4, 8);
  const auto one_f_one_b = pipeline::OneForwardOneBackward(4, 8);
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(PeakActivations(gpipe->slots[s], {{Bytes(10), Bytes(0)}}), Bytes(80));
    EXPECT_EQ(PeakActivations(one_f_one_b->slots[s], {{Bytes(10), Bytes(0)}}),
              Bytes(10L * (4 - s)));
  }
  // Korthikanti et al., section 4.2.3: interleaving keeps L (1 + (p - 1) / (p m)) layers on stage
  // 0.
  const auto interleaved = pipeline::Interleaved({.stages = 4, .chunks = 2, .micro_batches = 8});
  EXPECT_EQ(PeakActivations(interleaved->slots[0], {{Bytes(10), Bytes(0)}, {Bytes(10), Bytes(0)}}),
            Bytes(10L * (2 * 4 + 3)));
}

TEST(Memory, FullRecomputationKeepsLayerInputs) {
  const auto stack = BuildStack(Parse(SmallModel()));
  ASSERT_TRUE(stack.ok());
  // GPT-11B, one layer: 2 s b h / tp bytes; ViT-5B: all 8 sequences of the micro-batch.
  EXPECT_EQ(ActivationBytes(*stack, 60, 61), Bytes(2L * 2048 * 2 * 3072 / 8));
  EXPECT_EQ(ActivationBytes(*stack, 0, 1), Bytes(2L * 2048 * 8 * 3072 / 8));
}

TEST(Memory, BytesPerParameter) {
  Experiment experiment = Parse(SmallModel());
  const Step one = Build(experiment, testing::Costs());
  const auto stack = BuildStack(experiment);
  const std::int64_t layers = 16 * models::LayerParametersPerGpu(stack->modules[0].config, 8) +
                              48 * models::LayerParametersPerGpu(stack->modules[1].config, 8);
  const std::int64_t stage_0 = layers +
                               models::EmbeddingParametersPerGpu(stack->modules[0].config, 8) +
                               models::ProjectorParametersPerGpu(stack->modules[1].config, 3072, 8);
  EXPECT_EQ(one.memory[0].parameters, Bytes(2 * stage_0));
  EXPECT_EQ(one.memory[0].gradients, Bytes(4 * stage_0));
  EXPECT_EQ(one.memory[0].optimizer_state, Bytes(12 * stage_0));
  // Tied embeddings: the last stage holds a copy, without positions.
  const std::int64_t stage_1 = 64 * models::LayerParametersPerGpu(stack->modules[0].config, 8) +
                               models::HeadParametersPerGpu(stack->modules[0].config, 8) +
                               51200L / 8 * 3072;
  EXPECT_EQ(one.memory[1].parameters, Bytes(2 * stage_1));

  experiment.mutable_plan()->set_data_parallel(4);
  experiment.mutable_hardware()->set_gpus(64);
  experiment.mutable_hardware()->set_cluster_gpus(64);
  const Step four = Build(experiment, testing::Costs());
  EXPECT_EQ(four.memory[0].gradients, one.memory[0].gradients);
  EXPECT_EQ(four.memory[0].optimizer_state, Bytes(12 * stage_0 / 4));
  experiment.mutable_plan()->set_no_distributed_optimizer(true);
  EXPECT_EQ(Build(experiment, testing::Costs()).memory[0].optimizer_state, Bytes(12 * stage_0));
}

TEST(Memory, AFrozenEncoderHasNeitherGradientsNorActivations) {
  Experiment experiment = Parse(SmallModel());
  experiment.mutable_encoders(0)->set_frozen(true);
  const Step step = Build(experiment, testing::Costs());
  const auto stack = BuildStack(experiment);
  const auto parameters = CountChunkParameters(*stack, {0, 64 + 2, 64 + 64 + 3}, {.stages = 2});
  const std::int64_t frozen = 48 * models::LayerParametersPerGpu(stack->modules[1].config, 8);
  EXPECT_EQ(parameters[0].all - parameters[0].trained, frozen);
  EXPECT_EQ(step.memory[0].gradients, Bytes(4 * parameters[0].trained));
  EXPECT_EQ(step.memory[0].parameters, Bytes(2 * parameters[0].all));
  EXPECT_EQ(ActivationBytes(*stack, 0, 48), Bytes(0));
}

TEST(Memory, TotalIsTheSum) {
  const Step step = Build(SmallModel());
  for (const StageMemory& m : step.memory) {
    EXPECT_EQ(m.total(),
              m.parameters + m.gradients + m.optimizer_state + m.activations + m.workspace);
    EXPECT_GT(m.workspace, Bytes(0));
  }
}

TEST(Memory, WorkspaceClosedForm) {
  const auto stack = BuildStack(Parse(SmallModel()));
  const Step step = Build(SmallModel());
  const Module& llm = stack->modules[0];
  // Last stage: recomputing a layer, its gathered input, and one boundary used both ways.
  const Bytes boundary(2L * 2048 * 3072 * 2 / 8);
  EXPECT_EQ(step.memory[1].workspace, models::LayerRecomputeWorkspaceBytes(llm.config, llm.whole) +
                                          Bytes(2L * 2048 * 3072 * 2) + 2 * boundary);
}

}  // namespace
}  // namespace optimus::step
