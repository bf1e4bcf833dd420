#include "schedule/step/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "schedule/step/data_parallel.h"
#include "schedule/step/parameters.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ir::Operation;
using ir::OperationKind;
using ir::Stream;
using testing::Build;
using testing::Costs;
using ::testing::ElementsAre;
using testing::Parse;
using testing::SmallModel;

std::string NameOf(const ir::Schedule& schedule, const Operation& op) {
  if (op.kind == OperationKind::kKernel) return schedule.kernels[op.work].name;
  if (op.kind == OperationKind::kCollective) return schedule.collectives[op.work].work.name;
  return schedule.transfers[op.work].name;
}

std::vector<Operation> OnStream(const ir::Program& program, Stream stream) {
  std::vector<Operation> result;
  std::copy_if(program.operations.begin(), program.operations.end(), std::back_inserter(result),
               [&](const Operation& op) { return op.stream == stream; });
  return result;
}

std::vector<std::string> NamesOnStream(const Step& step, int stage, Stream stream) {
  std::vector<std::string> names;
  for (const Operation& op : OnStream(step.schedule.programs[stage], stream)) {
    names.push_back(NameOf(step.schedule, op));
  }
  return names;
}

std::vector<Stream> DependencyStreams(const ir::Program& program, const Operation& op) {
  std::vector<Stream> streams;
  for (const std::uint32_t id : program.DependenciesOf(op)) {
    streams.push_back(program.operations[id].stream);
  }
  return streams;
}

// The two-stream evaluation of blocks against the whole lowering: on one stage, with one
// micro-batch, the step is the sum of its blocks.
TEST(LayerTimes, AddUpToTheStepOfOneStage) {
  for (const char* recompute : {"RECOMPUTE_NONE", "RECOMPUTE_SELECTIVE", "RECOMPUTE_FULL"}) {
    Experiment experiment =
        Parse(SmallModel("no_optimizer: true recompute: " + std::string(recompute)));
    experiment.mutable_plan()->set_pipeline_parallel(1);
    experiment.mutable_hardware()->set_gpus(8);
    experiment.mutable_batch()->set_global_batch(2);
    const auto costs = Costs();
    const Step step = Build(experiment, costs);
    const auto stack = BuildStack(experiment);
    ir::Schedule schedule;
    schedule.world = {1, 1, 8};
    const BlockTable blocks(*stack, schedule);
    Picoseconds sum;
    for (const Picoseconds t : LayerTimes(*stack, blocks, schedule, costs)) sum += t;
    EXPECT_EQ(testing::StepTime(step, costs), sum) << recompute;
  }
}

TEST(Lower, SlicesAreTheOuterLoopAndBackwardMirrorsForward) {
  const Step step = Build(SmallModel());
  std::vector<std::pair<int, int>> forward, backward;  // (slice, layer) of micro-batch 0
  for (const Operation& op : step.schedule.programs[0].operations) {
    if (op.tag.module != 1 || op.tag.micro_batch != 0 || op.tag.layer < 0) continue;
    auto& list = op.tag.phase == Phase::kForward ? forward : backward;
    const std::pair<int, int> pass(op.tag.slice, op.tag.layer);
    if (list.empty() || list.back() != pass) list.push_back(pass);
  }
  std::vector<std::pair<int, int>> expected;
  for (int slice = 0; slice < 4; ++slice) {
    for (int layer = 0; layer < 48; ++layer) expected.emplace_back(slice, layer);
  }
  EXPECT_EQ(forward, expected);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(backward, expected);
}

TEST(Lower, EveryLayerOncePerMicroBatchAndSlice) {
  const Step step = Build(SmallModel("model_chunks: 4 schedule: INTERLEAVED"));
  // Kernels "fc1" mark a forward pass; its two gradients a backward pass.
  std::map<std::tuple<int, int, int, int, std::string>, int> seen;
  for (const ir::Program& program : step.schedule.programs) {
    for (const Operation& op : program.operations) {
      if (op.tag.layer < 0 || op.kind != OperationKind::kKernel) continue;
      const std::string name = NameOf(step.schedule, op);
      if (name.rfind("fc1", 0) != 0) continue;
      const std::string phase = std::string(ToString(op.tag.phase)) + " " + name;
      ++seen[{op.tag.module, op.tag.layer, op.tag.slice, op.tag.micro_batch, phase}];
    }
  }
  // Forward, recomputation, data gradient, weight gradient; 4 micro-batches.
  EXPECT_EQ(seen.size(), 4U * 4 * (80 + 48 * 4));
  for (const auto& [key, count] : seen) EXPECT_EQ(count, 1);
}

TEST(Lower, TwoMessagesPerBoundaryAndMicroBatch) {
  const Step step = Build(SmallModel("model_chunks: 4 schedule: INTERLEAVED"));
  const auto stack = BuildStack(step.experiment);
  std::map<int, std::pair<int, int>> ends;  // message -> sends, receives
  std::map<std::int64_t, int> sizes;
  for (const ir::Program& program : step.schedule.programs) {
    for (const Operation& op : program.operations) {
      if (op.message < 0) continue;
      EXPECT_EQ(op.peer_stage, 1 - program.stage);
      if (op.kind == OperationKind::kSend) {
        ++ends[op.message].first;
        ++sizes[step.schedule.transfers[op.work].bytes.value()];
      } else {
        ++ends[op.message].second;
      }
    }
  }
  EXPECT_EQ(ends.size(), 2U * 4 * 7);  // 8 virtual stages have 7 boundaries
  for (const auto& [message, count] : ends) EXPECT_EQ(count, std::make_pair(1, 1)) << message;
  // 16 layers a chunk: 2 boundaries inside the encoder, the third is behind the projector.
  const std::int64_t encoder = BoundaryBytes(*stack, stack->items[0]).value();
  const std::int64_t llm = BoundaryBytes(*stack, stack->items.back()).value();
  EXPECT_EQ(sizes, (std::map<std::int64_t, int>{{encoder, 2 * 2 * 4}, {llm, 5 * 2 * 4}}));
}

TEST(Lower, ChunksOfOneStageNeedNoMessages) {
  Experiment experiment = Parse(SmallModel("model_chunks: 2 schedule: INTERLEAVED"));
  experiment.mutable_plan()->set_pipeline_parallel(1);
  experiment.mutable_plan()->set_micro_batch_group(1);
  experiment.mutable_hardware()->set_gpus(8);
  const Step step = Build(experiment, Costs());
  EXPECT_TRUE(step.schedule.transfers.empty());
}

TEST(Lower, ReceiveComesBeforeTheCollectiveThatWaitsForIt) {
  // Without recomputation a backward begins with an all-gather of the gradient.
  const Step step = Build(SmallModel("recompute: RECOMPUTE_NONE"));
  const ir::Program& program = step.schedule.programs[0];
  const auto is_backward = [](const Operation& op) { return op.tag.phase == Phase::kBackward; };
  const auto receive =
      std::find_if(program.operations.begin(), program.operations.end(), is_backward);
  ASSERT_EQ(receive->kind, OperationKind::kReceive);
  const Operation& gather = *(receive + 1);
  ASSERT_EQ(gather.kind, OperationKind::kCollective);
  EXPECT_THAT(DependencyStreams(program, gather), ::testing::Contains(Stream::kBackwardReceive));
  const Operation& compute = *(receive + 2);
  ASSERT_EQ(compute.stream, Stream::kCompute);
  const std::vector<Stream> waits = DependencyStreams(program, compute);
  ASSERT_GE(waits.size(), 2U);
  EXPECT_EQ(waits[waits.size() - 2], Stream::kBackwardReceive);
  EXPECT_EQ(waits.back(), Stream::kTensorParallel);
}

TEST(Lower, FrozenEncoderHasNoBackwardAndItsProjectorOnlyWeights) {
  Experiment experiment = Parse(SmallModel("model_chunks: 4 schedule: INTERLEAVED"));
  experiment.mutable_encoders(0)->set_frozen(true);
  const Step step = Build(experiment, Costs());
  int projector_backwards = 0;
  std::set<int> gradient_receivers;  // virtual stages
  for (const ir::Program& program : step.schedule.programs) {
    for (const Operation& op : program.operations) {
      if (op.stream == Stream::kBackwardReceive) {
        gradient_receivers.insert(op.tag.chunk * 2 + program.stage);
      }
      if (op.tag.module != 1 || op.tag.phase == Phase::kForward) continue;
      EXPECT_EQ(op.tag.layer, ir::kProjectorLayer);
      EXPECT_EQ(op.tag.phase, Phase::kWeightGradient);
      ++projector_backwards;
    }
  }
  EXPECT_EQ(projector_backwards, 4);                            // once per micro-batch
  EXPECT_THAT(gradient_receivers, ElementsAre(2, 3, 4, 5, 6));  // the projector is on 2
}

TEST(Lower, GradientsPassThroughAFrozenEncoderToOneInFrontOfIt) {
  Experiment experiment = Parse(SmallModel(
      "model_chunks: 2 schedule: INTERLEAVED layout: LAYER_COUNTS layer_counts: [48, 24, 24, 80]"));
  *experiment.add_encoders() = experiment.encoders(0);
  experiment.mutable_encoders(1)->set_frozen(true);
  const Step step = Build(experiment, Costs());
  // Virtual stage 1 (stage 1, chunk 0) holds frozen layers only: its backward is a receive and a
  // send that waits for it.
  const ir::Program& program = step.schedule.programs[1];
  int passed = 0;
  for (const Operation& op : program.operations) {
    if (op.tag.chunk != 0 || op.tag.phase == Phase::kForward) continue;
    EXPECT_NE(op.kind, OperationKind::kKernel);
    if (op.kind != OperationKind::kSend) continue;
    EXPECT_THAT(DependencyStreams(program, op), ElementsAre(Stream::kBackwardReceive));
    ++passed;
  }
  EXPECT_EQ(passed, 4);
}

std::string WithDataParallel(const std::string& plan) {
  return R"(name: "dp" llm: "gpt-11b" hardware { profile: "h100-80gb" gpus: 64 }
    batch { global_batch: 32 micro_batch: 2 sequence_length: 2048 }
    plan { data_parallel: 4 pipeline_parallel: 2 tensor_parallel: 8 schedule: INTERLEAVED
           model_chunks: 2 layout: EQUAL_LAYERS recompute: RECOMPUTE_FULL )" +
         plan + "}";
}

// Gradients of gpt-11b's tied table on one GPU.
constexpr std::int64_t kTable = std::int64_t{4} * 51200 / 8 * 3072;

std::vector<std::int64_t> TrainedByVirtualStage(const Experiment& experiment) {
  const auto stack = BuildStack(experiment);
  std::vector<std::int64_t> result;
  // 80 layers: 20 in each of 4 virtual stages, the first with the embedding, the last with the
  // head.
  for (const ChunkParameters& c :
       CountChunkParameters(*stack, {0, 21, 41, 61, 82}, {.stages = 2, .chunks = 2})) {
    result.push_back(c.trained);
  }
  return result;
}

std::vector<std::int64_t> BytesOnDataParallelStream(const Step& step, int stage) {
  std::vector<std::int64_t> bytes;
  for (const Operation& op : OnStream(step.schedule.programs[stage], Stream::kDataParallel)) {
    bytes.push_back(step.schedule.collectives[op.work].work.bytes.value());
  }
  return bytes;
}

TEST(DataParallel, ExposedIsOneGatherAndOneReducePerStage) {
  const Step step = Build(WithDataParallel(""));
  EXPECT_THAT(NamesOnStream(step, 0, Stream::kDataParallel),
              ElementsAre("parameter_all_gather", "gradient_reduce_scatter",
                          "tied_embedding_all_reduce", "grad_norm"));
  const auto trained = TrainedByVirtualStage(step.experiment);
  EXPECT_THAT(BytesOnDataParallelStream(step, 0),
              ElementsAre(2 * (trained[0] + trained[2]), 4 * (trained[0] + trained[2]), kTable, 8));
  for (const ir::Program& program : step.schedule.programs) {
    const std::vector<Operation> compute = OnStream(program, Stream::kCompute);
    EXPECT_EQ(DependencyStreams(program, compute.front()).front(), Stream::kDataParallel);
    // The optimizer is the last compute operation: it waits for the reduce-scatter, then the norm.
    EXPECT_EQ(compute.back().tag.phase, Phase::kOptimizer);
    EXPECT_THAT(DependencyStreams(program, compute.back()),
                ElementsAre(Stream::kDataParallel, Stream::kDataParallel));
    // No other compute operation waits for data-parallel communication.
    for (std::size_t i = 1; i + 1 < compute.size(); ++i) {
      EXPECT_THAT(DependencyStreams(program, compute[i]),
                  ::testing::Not(::testing::Contains(Stream::kDataParallel)));
    }
  }
}

TEST(DataParallel, OverlappedIsOnePerChunkInOrderOfUse) {
  const Step step = Build(WithDataParallel("dp_communication: DP_OVERLAPPED"));
  EXPECT_THAT(NamesOnStream(step, 1, Stream::kDataParallel),
              ElementsAre("parameter_all_gather", "parameter_all_gather", "gradient_reduce_scatter",
                          "gradient_reduce_scatter", "tied_embedding_all_reduce", "grad_norm"));
  const auto trained = TrainedByVirtualStage(step.experiment);
  EXPECT_THAT(
      BytesOnDataParallelStream(step, 1),
      ElementsAre(2 * trained[1], 2 * trained[3], 4 * trained[3], 4 * trained[1], kTable, 8));
  // Each chunk's first compute operation waits for its own gather, first of all.
  const ir::Program& program = step.schedule.programs[1];
  std::set<int> started;
  for (const Operation& op : OnStream(program, Stream::kCompute)) {
    if (op.tag.phase == Phase::kOptimizer || !started.insert(op.tag.chunk).second) continue;
    const Operation& gather = program.operations[program.DependenciesOf(op).front()];
    EXPECT_EQ(gather.tag.phase, Phase::kParameterSync);
    EXPECT_EQ(gather.tag.chunk, op.tag.chunk);
  }
  EXPECT_EQ(started.size(), 2U);
}

TEST(DataParallel, OverlappedReduceWaitsForTheLastWeightGradient) {
  const Step step = Build(WithDataParallel("dp_communication: DP_OVERLAPPED"));
  const ir::Program& program = step.schedule.programs[0];
  for (const Operation& op : OnStream(program, Stream::kDataParallel)) {
    if (op.tag.phase != Phase::kGradientSync || op.tag.chunk < 0) continue;
    const auto dependencies = program.DependenciesOf(op);
    ASSERT_EQ(dependencies.size(), 1U);
    std::uint32_t last = 0;  // compute operation of this chunk
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const Operation& other = program.operations[id];
      if (other.stream == Stream::kCompute && other.tag.chunk == op.tag.chunk) last = id;
    }
    EXPECT_EQ(dependencies[0], last);
  }
}

TEST(DataParallel, WithoutDistributedOptimizerGradientsAreAllReduced) {
  const Step step = Build(WithDataParallel("no_distributed_optimizer: true"));
  EXPECT_THAT(NamesOnStream(step, 0, Stream::kDataParallel),
              ElementsAre("gradient_all_reduce", "tied_embedding_all_reduce", "grad_norm"));
}

TEST(DataParallel, OneReplicaKeepsNormAndOptimizer) {
  const Step step = Build(SmallModel());
  EXPECT_THAT(NamesOnStream(step, 0, Stream::kDataParallel),
              ElementsAre("tied_embedding_all_reduce", "grad_norm"));
  EXPECT_EQ(OnStream(step.schedule.programs[0], Stream::kCompute).back().tag.phase,
            Phase::kOptimizer);
}

TEST(DataParallel, NoOptimizerMeansNeither) {
  const Step step = Build(WithDataParallel("no_optimizer: true"));
  EXPECT_THAT(NamesOnStream(step, 0, Stream::kDataParallel), ElementsAre());
  EXPECT_NE(OnStream(step.schedule.programs[0], Stream::kCompute).back().tag.phase,
            Phase::kOptimizer);
}

// Half the bytes are kept and travel, and the optimizer reads half as many; nothing else changes.
TEST(DataParallel, GradientsInSixteenBitsAreHalf) {
  const Step fp32 = Build(WithDataParallel(""));
  const Step bf16 = Build(WithDataParallel("grad_reduce_in_bf16: true"));
  ASSERT_EQ(fp32.schedule.collectives.size(), bf16.schedule.collectives.size());
  int halved = 0;
  for (std::size_t i = 0; i < fp32.schedule.collectives.size(); ++i) {
    const CollectiveWork& whole = fp32.schedule.collectives[i].work;
    const CollectiveWork& half = bf16.schedule.collectives[i].work;
    ASSERT_EQ(whole.name, half.name);
    const bool gradients = whole.name == "gradient_reduce_scatter" ||
                           whole.name == "gradient_all_reduce" ||
                           whole.name == "tied_embedding_all_reduce";
    EXPECT_EQ(whole.bytes, gradients ? 2 * half.bytes : half.bytes) << whole.name;
    halved += gradients ? 1 : 0;
  }
  EXPECT_GE(halved, 2);
  for (std::size_t s = 0; s < fp32.memory.size(); ++s) {
    EXPECT_EQ(fp32.memory[s].gradients, 2 * bf16.memory[s].gradients);
    EXPECT_EQ(fp32.memory[s].total() - bf16.memory[s].total(), bf16.memory[s].gradients);
  }
  Plan plan;
  plan.set_data_parallel(4);
  plan.set_grad_reduce_in_bf16(true);
  EXPECT_EQ(OptimizerKernel(plan, Costs(), 20'000'000'000).bytes, Bytes(28 * 5'000'000'000LL));
}

TEST(OptimizerKernel, TheLongerOfFixedAndMemoryTime) {
  const auto costs = Costs();
  Plan plan;
  plan.set_data_parallel(4);
  EXPECT_EQ(OptimizerKernel(plan, costs, 1'000'000).kind, KernelKind::kFixed);
  EXPECT_EQ(costs.KernelTime(OptimizerKernel(plan, costs, 1'000'000)), costs.optimizer_overhead());
  const Kernel large = OptimizerKernel(plan, costs, 20'000'000'000);
  EXPECT_EQ(large.kind, KernelKind::kMemoryBound);
  EXPECT_EQ(large.bytes, Bytes(30 * 5'000'000'000LL));  // a quarter each
  EXPECT_GT(costs.KernelTime(large), costs.optimizer_overhead());
  plan.set_no_distributed_optimizer(true);
  EXPECT_EQ(OptimizerKernel(plan, costs, 20'000'000'000).bytes, Bytes(30 * 20'000'000'000LL));
}

TEST(Lower, TablesHoldEveryEntryOnce) {
  const Step step = Build(WithDataParallel(""));
  const ir::Schedule& schedule = step.schedule;
  EXPECT_LT(schedule.kernels.size(), 60U);
  for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
    EXPECT_EQ(std::count(schedule.kernels.begin(), schedule.kernels.end(), schedule.kernels[i]), 1);
  }
  for (const ir::Collective& collective : schedule.collectives) {
    EXPECT_EQ(std::count(schedule.collectives.begin(), schedule.collectives.end(), collective), 1);
  }
}

}  // namespace
}  // namespace optimus::step
