// The emitted Schedule: complete, in the LLM's order, as fast as predicted, and right whatever the
// durations turn out to be.

#include "schedule/colocate/emit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/accounting.h"
#include "schedule/colocate/messages.h"
#include "schedule/colocate/testing.h"

namespace optimus::colocate {
namespace {

using ::testing::TestWithParam;

struct Case {
  std::string name;
  std::string encoders, plan;
  std::string more;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

step::Experiment ExperimentOf(const Case& c) {
  return testing::Experiment(c.encoders, c.plan, c.more);
}

std::string Optimus(const std::string& what) { return "optimus { " + what + "} "; }

const std::string& Vit() {
  static const std::string kVit = testing::Encoder("vit-300m");
  return kVit;
}

std::vector<Case> Cases() {
  const std::string interleaved = "schedule: INTERLEAVED model_chunks: 2 warm_up: BEST ";
  const std::string two = Vit() + testing::Encoder("vit-100m");
  return {
      {"Searched", Vit(), "", ""},
      {"SearchedList", Vit(), Optimus("scheduler: LIST "), ""},
      {"Interleaved", Vit(), interleaved, ""},
      {"InterleavedList", Vit(), interleaved + Optimus("scheduler: LIST "), ""},
      {"PipelineAsLlm", Vit(), Optimus(testing::Plan(4, 4)), ""},
      {"PipelineAsLlmList", Vit(), Optimus(testing::Plan(4, 4) + "scheduler: LIST "), ""},
      {"TensorParallel1", Vit(), Optimus(testing::Plan(1, 1)), ""},
      {"TensorParallel2", Vit(), Optimus(testing::Plan(2, 2)), ""},
      {"TensorParallel2List", Vit(), Optimus(testing::Plan(2, 2) + "scheduler: LIST "), ""},
      {"TwoEncoders", two, Optimus(testing::Plan(1, 4) + testing::Plan(2, 2)), ""},
      {"TwoEncodersList", two,
       Optimus(testing::Plan(1, 2) + testing::Plan(4, 4) + "scheduler: LIST "), ""},
      {"Frozen", testing::Encoder("vit-300m", "frozen: true"), Optimus(testing::Plan(2, 4)), ""},
      {"WithoutInput", testing::Encoder("vit-300m", "micro_batches_without_input: [0, 5]"),
       Optimus(testing::Plan(2, 2)), ""},
      {"FewerMicroBatchesThanPipelines", Vit(), Optimus(testing::Plan(1, 1)),
       "batch { global_batch: 8 }"},
      {"GivenSplit", Vit(), Optimus(testing::Plan(2, 4, "split: [5, 3]")), ""},
      {"Exposed", Vit(), Optimus("encoder_data_parallel: ENCODER_DP_EXPOSED "), ""},
      {"WithoutSync", Vit(), Optimus("encoder_data_parallel: ENCODER_DP_NONE "), ""},
      {"PlainDataParallel", Vit(), "no_distributed_optimizer: true ", ""},
      {"WithoutOptimizer", Vit(), "no_optimizer: true ", ""},
      {"Overlapped", Vit(), interleaved + "dp_communication: DP_OVERLAPPED ", ""},
      {"WithoutSequenceParallel", Vit(), "no_sequence_parallel: true recompute: RECOMPUTE_NONE ",
       ""},
      {"UnevenStages", testing::Encoder("vit-100m"), Optimus(testing::Plan(4, 2)), ""},
      {"OneStage", Vit(), "pipeline_parallel: 1 data_parallel: 8 " + Optimus(testing::Plan(1, 2)),
       ""},
  };
}

class Emit : public TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto built = BuildOptimusStep(ExperimentOf(GetParam()), costs_, {});
    ASSERT_TRUE(built.ok()) << built.status();
    built_ = *std::move(built);
  }
  const ir::Schedule& schedule() const { return built_.step.schedule; }
  const RankedPlan& best() const { return built_.plan.ranked.front(); }

  // The LLM alone, with the warm-up that was taken.
  LlmStep Alone() const {
    auto steps = BuildLlmSteps(ExperimentOf(GetParam()), costs_);
    EXPECT_TRUE(steps.ok()) << steps.status();
    for (LlmStep& step : *steps) {
      if (step.warm_up == best().warm_up) return std::move(step);
    }
    ADD_FAILURE() << "no such warm-up";
    return {};
  }

  hw::ProfileCostModel costs_ = step::testing::Costs();
  OptimusStep built_;
};

bool IsOfLlm(const ir::Operation& op) { return op.tag.module <= ir::kLlmModule; }

TEST_P(Emit, IsValid) { EXPECT_TRUE(ir::Validate(schedule()).ok()) << ir::Validate(schedule()); }

TEST_P(Emit, LastsAsLongAsPredicted) {
  const Picoseconds step = step::testing::StepTime(built_.step, costs_);
  // Parts of a micro-batch that a lane sends at once (list scheduler) queue behind each other,
  // which the scheduler does not count.
  const bool parts = built_.step.experiment.plan().optimus().scheduler() == step::Optimus::LIST;
  EXPECT_LE(ToSeconds(step), (parts ? 1.002 : 1.0) * ToSeconds(best().predicted));
  // Of several encoders the list scheduler may shift the LLM a little more than they need together.
  const bool several = parts && best().encoders.size() > 1;
  EXPECT_GT(ToSeconds(step), (several ? 0.99 : 0.995) * ToSeconds(best().predicted));
  EXPECT_GE(step, best().llm_step);
}

// Every lane has the LLM's own operations: on every stream the same ones in the same order.
TEST_P(Emit, KeepsTheLlmsOrder) {
  const LlmStep alone = Alone();
  for (const ir::Program& program : schedule().programs) {
    for (int stream = 0; stream < ir::kStreamCount; ++stream) {
      std::vector<ir::Operation> mine;
      for (const ir::Operation& op : program.operations) {
        if (IsOfLlm(op) && static_cast<int>(op.stream) == stream) mine.push_back(op);
      }
      std::size_t i = 0;
      for (const ir::Operation& op : alone.step.schedule.programs[program.stage].operations) {
        if (static_cast<int>(op.stream) != stream) continue;
        ASSERT_LT(i, mine.size());
        EXPECT_EQ(mine[i].kind, op.kind);
        EXPECT_EQ(mine[i].tag, op.tag);
        EXPECT_EQ(mine[i].peer_stage, op.peer_stage);
        if (op.tag.phase != Phase::kOptimizer) {
          EXPECT_EQ(mine[i].work, op.work);
        }
        ++i;
      }
      EXPECT_EQ(i, mine.size());
    }
  }
}

// From the models alone: FLOPs of the encoders' kernels, over all GPUs of one replica.
TEST_P(Emit, HoldsAllEncoderWork) {
  const step::Experiment& experiment = built_.step.experiment;
  auto stack = EncoderStack(experiment);
  ASSERT_TRUE(stack.ok());
  for (int k = 0; k < experiment.encoders_size(); ++k) {
    const step::Module& whole = stack->modules[k + 1];  // on one GPU
    const auto flops = [](const models::Block& block) {
      double sum = 0;
      for (const models::BlockOp& op : block.ops) {
        if (!op.is_collective) sum += op.kernel.flops.value();
      }
      return sum;
    };
    const std::int64_t hidden = stack->modules[0].config.hidden_size();
    double expected =
        whole.slices * whole.config.num_layers() *
        (flops(models::LayerForward(whole.config, whole.slice)) +
         (whole.frozen
              ? 0
              : flops(models::LayerBackward(whole.config, whole.slice, models::Gradients::kBoth))));
    expected += flops(models::ProjectorForward(whole.config, hidden, whole.whole)) +
                flops(models::ProjectorBackward(
                    whole.config, hidden, whole.whole,
                    whole.frozen ? models::Gradients::kWeights : models::Gradients::kBoth));
    expected *= static_cast<double>(MicroBatchesWithInput(experiment, k).size());
    double found = 0;
    for (const ir::Program& program : schedule().programs) {
      for (const ir::Operation& op : program.operations) {
        if (op.kind != ir::OperationKind::kKernel || op.tag.module != k + 1) continue;
        found += schedule().kernels[op.work].flops.value() * schedule().world.tp / schedule().lanes;
      }
    }
    EXPECT_NEAR(found / expected, 1, 1e-12) << k;
  }
}

// Each kernel of a micro-batch, slice and layer once on every lane of its pipeline.
TEST_P(Emit, EveryEncoderKernelOnce) {
  using Key =
      std::tuple<int, int, int, int, Phase, std::int32_t>;  // .., micro-batch, phase, kernel
  std::map<Key, int> counts;
  for (const ir::Program& program : schedule().programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kKernel || IsOfLlm(op)) continue;
      ++counts[{op.tag.module, op.tag.layer, op.tag.slice, op.tag.micro_batch, op.tag.phase,
                op.work}];
    }
  }
  for (int k = 0; k < built_.step.experiment.encoders_size(); ++k) {
    const std::vector<std::int32_t> with = MicroBatchesWithInput(built_.step.experiment, k);
    const ir::ModuleInfo& module = schedule().modules[k + 1];
    const int lanes = schedule().lanes * best().encoders[k].tensor_parallel / schedule().world.tp;
    std::map<std::int32_t, int> by_micro_batch;
    for (const auto& [key, count] : counts) {
      if (std::get<0>(key) != k + 1) continue;
      // Kernels of a layer differ at least in their names, so none is twice in a phase.
      EXPECT_EQ(count, lanes) << "layer " << std::get<1>(key);
      ++by_micro_batch[std::get<3>(key)];
    }
    EXPECT_EQ(by_micro_batch.size(), with.size());
    for (const std::int32_t i : with) EXPECT_EQ(by_micro_batch[i], by_micro_batch[with[0]]);
    EXPECT_EQ(module.pipelines, best().pipelines[k]);
  }
}

TEST_P(Emit, CountsFlopsOfEncodersAndLlm) {
  const LlmStep alone = Alone();
  EXPECT_GT(built_.step.model_flops.value(), alone.step.model_flops.value());
  EXPECT_GE(built_.step.hardware_flops.value(), alone.step.hardware_flops.value());
  const auto& recompute = built_.step.experiment.plan().recompute();
  if (recompute == step::Plan::RECOMPUTE_NONE) return;
  // Recomputing is work that the model does not ask for.
  EXPECT_GT(built_.step.hardware_flops.value(), 0.9 * built_.step.model_flops.value());
}

// Prices everything differently, each kernel and collective by a factor of its own.
class DistortedCosts : public hw::ProfileCostModel {
 public:
  DistortedCosts(const hw::ProfileCostModel& costs, std::uint64_t seed)
      : hw::ProfileCostModel(costs.profile()), seed_(seed) {}
  Picoseconds KernelTime(const Kernel& kernel) const override {
    return Distorted(ProfileCostModel::KernelTime(kernel),
                     static_cast<std::int64_t>(kernel.name.size()) + kernel.gemm.n);
  }
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    TransferCost cost = ProfileCostModel::CollectiveCost(work, group);
    cost.latency =
        Distorted(cost.latency, static_cast<std::int64_t>(work.name.size()) + work.bytes.value());
    return cost;
  }
  TransferCost SendCost(Bytes bytes, bool same_node) const override {
    TransferCost cost = ProfileCostModel::SendCost(bytes, same_node);
    cost.latency = 50 * Distorted(cost.latency, bytes.value());
    return cost;
  }

 private:
  Picoseconds Distorted(Picoseconds time, std::int64_t what) const {
    std::uint64_t x = static_cast<std::uint64_t>(what) * 0x9e3779b97f4a7c15ULL + seed_;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 32;
    return time * (1 + static_cast<std::int64_t>(x % 20));  // up to 20 times as long
  }
  std::uint64_t seed_;
};

// When things happened in one run, on one lane.
struct Interval {
  Picoseconds start = Picoseconds(std::numeric_limits<std::int64_t>::max());
  Picoseconds end;
  void Add(const ir::Span& span) {
    start = std::min(start, span.start);
    end = std::max(end, span.end);
  }
};

// Of one program. Layers in the order in which a forward passes them.
struct LaneRun {
  using PassKey = std::tuple<int, int, int, int>;  // module, micro-batch, slice, layer
  std::map<PassKey, Interval> forward, backward;
  std::map<std::pair<int, int>, Interval> layer_forward, layer_backward;  // module, layer
  std::map<std::pair<int, int>, Interval> gathers, reductions;            // module, layer
  std::map<int, Interval> needs, makes;  // LLM stage 0, chunk 0, by micro-batch
  Interval gradient_norm, optimizer, others;
  Picoseconds encoders_end;
};

int LayerOrder(int layer) { return layer == ir::kProjectorLayer ? 1 << 20 : layer; }

bool IsGradientNorm(const ir::Schedule& schedule, const ir::Operation& op) {
  return op.kind == ir::OperationKind::kCollective &&
         schedule.collectives[op.work].work.name == "grad_norm";
}

void AddTo(LaneRun& run, int stage, const ir::Operation& op, const ir::Span& span) {
  if (op.tag.phase == Phase::kOptimizer) {
    run.optimizer.Add(span);
    return;
  }
  run.others.Add(span);
  const bool message =
      op.kind == ir::OperationKind::kSend || op.kind == ir::OperationKind::kReceive;
  if (message) return;
  const int layer = LayerOrder(op.tag.layer);
  if (op.stream == ir::Stream::kDataParallel) {
    if (IsOfLlm(op)) return;
    (op.tag.phase == Phase::kParameterSync ? run.gathers : run.reductions)[{op.tag.module, layer}]
        .Add(span);
  } else if (IsOfLlm(op)) {
    if (stage != 0 || op.tag.chunk != 0) return;
    (op.tag.phase == Phase::kForward ? run.needs : run.makes)[op.tag.micro_batch].Add(span);
  } else {
    run.encoders_end = std::max(run.encoders_end, span.end);
    const bool forward = op.tag.phase == Phase::kForward;
    (forward ? run.forward : run.backward)[{op.tag.module, op.tag.micro_batch, op.tag.slice, layer}]
        .Add(span);
    (forward ? run.layer_forward : run.layer_backward)[{op.tag.module, layer}].Add(span);
  }
}

std::vector<LaneRun> RunLanes(const ir::Schedule& schedule, const ir::Timeline& timeline) {
  std::vector<LaneRun> lanes(schedule.programs.size());
  std::size_t next = 0;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    for (const ir::Operation& op : schedule.programs[p].operations) {
      const ir::Span& span = timeline.spans[next++];
      if (IsGradientNorm(schedule, op)) lanes[p].gradient_norm.Add(span);
      AddTo(lanes[p], schedule.programs[p].stage, op, span);
    }
  }
  return lanes;
}

// Layers of one slice in order, on whatever stage of the same lane; a layer without a slice (the
// projector) needs all slices.
void ExpectLayersInOrder(const std::vector<LaneRun>& lanes, int lane_count, bool forward) {
  std::map<std::tuple<int, int, int>, std::map<int, std::vector<std::pair<int, Interval>>>> passes;
  for (std::size_t p = 0; p < lanes.size(); ++p) {
    for (const auto& [key, interval] : forward ? lanes[p].forward : lanes[p].backward) {
      const auto [module, micro_batch, slice, layer] = key;
      passes[{module, micro_batch, static_cast<int>(p) % lane_count}][layer].push_back(
          {slice, interval});
    }
  }
  for (const auto& [key, layers] : passes) {
    const std::vector<std::pair<int, Interval>>* before = nullptr;
    for (const auto& [layer, slices] : layers) {
      for (const auto& [slice, interval] : slices) {
        if (before == nullptr) continue;
        for (const auto& [other, earlier] : *before) {
          if (slice >= 0 && other >= 0 && other != slice) continue;
          const Interval& first = forward ? earlier : interval;
          const Interval& second = forward ? interval : earlier;
          ASSERT_LE(first.end, second.start) << "module " << std::get<0>(key) << " layer " << layer;
        }
      }
      before = &slices;
    }
  }
}

void ExpectSyncAround(const LaneRun& lane) {
  for (const auto& [key, gather] : lane.gathers) {
    const auto found = lane.layer_forward.find(key);
    if (found != lane.layer_forward.end()) {
      ASSERT_LE(gather.end, found->second.start);
    }
  }
  for (const auto& [key, reduction] : lane.reductions) {
    const auto found = lane.layer_backward.find(key);
    if (found != lane.layer_backward.end()) {
      ASSERT_GE(reduction.start, found->second.end);
    }
  }
  ASSERT_LE(lane.encoders_end, lane.gradient_norm.start);
  ASSERT_LE(lane.others.end, lane.optimizer.start);
}

// Module k + 1's outputs reach LLM stage 0, and its gradients come back from there.
void ExpectLlmBetween(const ir::Schedule& schedule, const std::vector<LaneRun>& lanes, int module,
                      const planner::EncoderPlan& plan) {
  for (std::int32_t j = 0; j < planner::PipelinesOf(plan, schedule.world); ++j) {
    const int stage = LastStageOf(plan, schedule.world, j);
    for (const LanePair& pair : LanePairs(schedule, plan, j)) {
      const LaneRun& encoder = lanes[stage * schedule.lanes + pair.encoder_lane];
      const LaneRun& llm = lanes[pair.llm_lane];
      for (const auto& [key, interval] : encoder.forward) {
        if (std::get<0>(key) != module) continue;
        ASSERT_LE(interval.end, llm.needs.at(std::get<1>(key)).start);
      }
      for (const auto& [key, interval] : encoder.backward) {
        if (std::get<0>(key) != module) continue;
        ASSERT_GE(interval.start, llm.makes.at(std::get<1>(key)).end);
      }
    }
  }
}

// What must wait for what does so by explicit dependencies, not by predicted times: with quite
// other durations everything still waits for what it needs.
TEST_P(Emit, WaitsForWhatItNeedsWhateverItLasts) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const DistortedCosts costs(costs_, seed);
    const ir::Timeline timeline = step::testing::Run(built_.step, costs);
    const std::vector<LaneRun> lanes = RunLanes(schedule(), timeline);
    ExpectLayersInOrder(lanes, schedule().lanes, /*forward=*/true);
    ExpectLayersInOrder(lanes, schedule().lanes, /*forward=*/false);
    for (const LaneRun& lane : lanes) ExpectSyncAround(lane);
    for (std::size_t k = 0; k < best().encoders.size(); ++k) {
      ExpectLlmBetween(schedule(), lanes, static_cast<int>(k) + 1, best().encoders[k]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Emit, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace optimus::colocate
