#include "schedule/step/fsdp.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/step/limits.h"
#include "schedule/step/memory.h"
#include "schedule/step/parameters.h"
#include "schedule/step/testing.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using testing::Parse;

using testing::SmallModel;
using testing::StepTime;

// SmallModel on 8 GPUs: 2 micro-batches each.
Experiment Fsdp(const std::string& plan = "") {
  Experiment experiment = Parse(SmallModel(absl::StrCat(
      "strategy: FSDP data_parallel: 8 pipeline_parallel: 1 tensor_parallel: 1 ", plan)));
  experiment.mutable_hardware()->set_gpus(8);
  experiment.mutable_hardware()->set_cluster_gpus(8);
  experiment.mutable_batch()->set_global_batch(32);
  return experiment;
}

// A kernel lasts a microsecond, a collective as long as it says here.
class FlatCosts : public CostModel {
 public:
  FlatCosts(std::int64_t gather_us, std::int64_t reduce_us)
      : gather_us_(gather_us), reduce_us_(reduce_us) {}
  Picoseconds KernelTime(const Kernel& kernel) const override {
    return kernel.kind == KernelKind::kFixed ? kernel.fixed : Picoseconds(1'000'000);
  }
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape /*group*/) const override {
    const bool gather = work.kind == CollectiveKind::kAllGather;
    return {Picoseconds((gather ? gather_us_ : reduce_us_) * 1'000'000), Bytes(0),
            LinkScope::kNone};
  }
  TransferCost SendCost(Bytes /*bytes*/, bool /*same_node*/) const override { return {}; }
  BytesPerSecond LinkBandwidth(LinkScope /*scope*/) const override { return BytesPerSecond(1e12); }
  int gpus_per_node() const override { return 0; }

 private:
  std::int64_t gather_us_, reduce_us_;
};

// A language model of two layers, on two GPUs.
struct TwoLayers {
  explicit TwoLayers(int prefetch, int micro_batches = 1) {
    Experiment experiment = Fsdp();
    experiment.clear_encoders();
    plan = experiment.plan();
    plan.set_data_parallel(2);
    plan.mutable_fsdp()->set_prefetch(prefetch);
    stack = *BuildStack(experiment);
    stack.modules[0].config.set_num_layers(2);
    stack.items = {{ItemKind::kEmbedding, 0, 0},
                   {ItemKind::kLayer, 0, 0},
                   {ItemKind::kLayer, 0, 1},
                   {ItemKind::kHead, 0, 0}};
    schedule.name = "two layers";
    schedule.world = {2, 1, 1};
    schedule.micro_batches = micro_batches;
    schedule.modules.push_back({.name = "llm", .layers = 2});
    blocks = std::make_unique<BlockTable>(stack, schedule);
    LowerFsdp(plan, stack, *blocks, Costs(), schedule);
    EXPECT_TRUE(ir::Validate(schedule).ok()) << ir::Validate(schedule);
  }
  Picoseconds Time(const CostModel& costs) const {
    ir::CriticalPathRunner runner(costs);
    const auto timeline = runner.Run(schedule);
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return timeline.ok() ? timeline->step : Picoseconds(0);
  }
  std::int64_t Kernels(int item, bool forward) const {
    const ItemBlocks& work = blocks->Of(stack.items[item]);
    return static_cast<std::int64_t>((forward ? work.forward : work.backward).ops.size());
  }

  Plan plan;
  Stack stack;
  ir::Schedule schedule;
  std::unique_ptr<BlockTable> blocks;
};

// By hand, in microseconds. Capital letters: backward.
struct Durations {
  std::int64_t e, f, h, E, F, H;  // embedding, layer, head
  std::int64_t g, r;              // gather, reduction
};

Durations DurationsOf(const TwoLayers& model, std::int64_t gather, std::int64_t reduce) {
  return {model.Kernels(0, true),
          model.Kernels(1, true),
          model.Kernels(3, true),
          model.Kernels(0, false),
          model.Kernels(1, false),
          model.Kernels(3, false),
          gather,
          reduce};
}

// The tail is the same for all: reductions of layer 0 and of the root, gradient norm.
std::int64_t Tail(const Durations& d, std::int64_t layer_0_end, std::int64_t links) {
  const std::int64_t reduced_0 = std::max(layer_0_end, links) + d.r;
  const std::int64_t root = std::max(layer_0_end + d.E, reduced_0) + d.r;
  return root + d.r;
}

// Nothing ahead: a gather, then its layer. The reduction of layer 1 is in front of the last gather.
std::int64_t WithoutPrefetch(const Durations& d) {
  const std::int64_t layer_0 = d.g + std::max(d.g, d.e) + d.f;
  const std::int64_t turn = layer_0 + d.g + d.f + d.h;
  const std::int64_t layer_1 = turn + std::max(d.g, d.H) + d.F;
  const std::int64_t gathered_0 = layer_1 + d.r + d.g;
  return Tail(d, gathered_0 + d.F, gathered_0);
}

// One ahead: root, layer 0 and layer 1 one after another on the links, and again both on the way
// back, before the reduction of layer 1.
std::int64_t WithPrefetch(const Durations& d) {
  const std::int64_t layer_0 = d.g + std::max(d.g, d.e) + d.f;
  const std::int64_t turn = std::max(layer_0, 3 * d.g) + d.f + d.h;
  const std::int64_t layer_1 = turn + std::max(d.g, d.H) + d.F;
  const std::int64_t gathered_0 = turn + 2 * d.g;
  const std::int64_t reduced_1 = std::max(layer_1, gathered_0) + d.r;
  return Tail(d, std::max(layer_1, gathered_0) + d.F, reduced_1);
}

Picoseconds Microseconds(std::int64_t us) { return Picoseconds(us * 1'000'000); }

class TwoLayersByHand : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(TwoLayersByHand, EqualsTheClosedForm) {
  const auto [gather, reduce] = GetParam();
  const FlatCosts costs(gather, reduce);
  const Picoseconds optimizer = Costs().optimizer_overhead();
  for (const int prefetch : {0, 1, 2}) {
    const TwoLayers model(prefetch);
    const Durations d = DurationsOf(model, gather, reduce);
    const std::int64_t expected = prefetch == 0 ? WithoutPrefetch(d) : WithPrefetch(d);
    EXPECT_EQ(model.Time(costs), Microseconds(expected) + optimizer) << prefetch;
  }
}

// Layers have some ten kernels: links that are free, faster, as fast, and slower than them.
INSTANTIATE_TEST_SUITE_P(Links, TwoLayersByHand,
                         ::testing::Values(std::pair(0, 0), std::pair(1, 2), std::pair(8, 5),
                                           std::pair(5, 30), std::pair(40, 3),
                                           std::pair(100, 100)));

// A micro-batch begins when the last reduction of the one before has ended.
TEST(Fsdp, MicroBatchesRunOneAfterAnother) {
  const FlatCosts costs(20, 15);
  const Picoseconds once = Costs().optimizer_overhead() + Microseconds(15);
  const Picoseconds one = TwoLayers(1).Time(costs) - once;
  EXPECT_EQ(TwoLayers(1, 3).Time(costs), 3 * one + once);
}

std::map<std::string, std::int64_t> BytesByCollective(const ir::Schedule& schedule) {
  std::map<std::string, std::int64_t> bytes;
  for (const ir::Operation& op : schedule.programs[0].operations) {
    if (op.kind != ir::OperationKind::kCollective) continue;
    const CollectiveWork& work = schedule.collectives[op.work].work;
    bytes[work.name] += work.bytes.value();
  }
  return bytes;
}

std::int64_t ParametersOf(const Stack& stack, ItemKind kind, int module) {
  std::int64_t sum = 0;
  for (const Item& item : stack.items) {
    if (item.kind == kind && item.module == module) sum += ItemParameters(stack, item);
  }
  return sum;
}

// A micro-batch gathers every layer twice and the root once, and reduces all of it once.
TEST(Fsdp, Volumes) {
  const auto stack = BuildStack(Fsdp());
  const std::int64_t encoder = ParametersOf(*stack, ItemKind::kLayer, 1);
  const std::int64_t layers = encoder + ParametersOf(*stack, ItemKind::kLayer, 0);
  const std::int64_t root = ParametersOf(*stack, ItemKind::kProjector, 1) +
                            ParametersOf(*stack, ItemKind::kEmbedding, 0) +
                            ParametersOf(*stack, ItemKind::kHead, 0);
  EXPECT_EQ(layers, 48 * ItemParameters(*stack, stack->items[0]) +
                        80 * ItemParameters(*stack, stack->items[60]));
  auto bytes = BytesByCollective(Build(Fsdp(), Costs()).schedule);
  EXPECT_EQ(bytes["parameter_all_gather"], 2L * 2 * (2 * layers + root));
  EXPECT_EQ(bytes["gradient_reduce_scatter"], 2L * 2 * (layers + root));
  EXPECT_EQ(bytes["grad_norm"], 8);

  bytes = BytesByCollective(Build(Fsdp("fsdp { reduce_in_fp32: true }"), Costs()).schedule);
  EXPECT_EQ(bytes["gradient_reduce_scatter"], 2L * 4 * (layers + root));

  Experiment frozen = Fsdp();
  frozen.mutable_encoders(0)->set_frozen(true);
  bytes = BytesByCollective(Build(frozen, Costs()).schedule);
  EXPECT_EQ(bytes["parameter_all_gather"], 2L * 2 * (2 * layers - encoder + root));
  EXPECT_EQ(bytes["gradient_reduce_scatter"], 2L * 2 * (layers - encoder + root));
}

// When a unit is gathered (from the start of its gather), and when its last kernel has ended.
struct Use {
  int module = 0, layer = 0;
  Picoseconds gather_start, gather_end, first_start, last_end;
};

std::vector<Use> UsesOf(const Step& step, const ir::Timeline& timeline) {
  std::vector<Use> uses;
  const auto& operations = step.schedule.programs[0].operations;
  // In issue order, so that a kernel belongs to the latest gather of its layer.
  std::map<std::pair<int, int>, std::size_t> current;
  for (const ir::Span& span : timeline.spans) {
    const ir::Operation& op = operations[span.operation];
    const std::pair<int, int> key(op.tag.module, op.tag.layer);
    if (op.tag.layer < 0) continue;
    if (op.tag.phase == Phase::kParameterSync) {
      current[key] = uses.size();
      uses.push_back({op.tag.module, op.tag.layer, span.start, span.end, {}, {}});
    } else if (op.kind == ir::OperationKind::kKernel) {
      Use& use = uses[current.at(key)];
      if (use.last_end == Picoseconds(0)) use.first_start = span.start;
      use.last_end = span.end;
    }
  }
  return uses;
}

TEST(Fsdp, HoldsNoMoreLayersThanItMay) {
  const auto costs = Costs();
  for (const int prefetch : {1, 2, 3}) {
    const Step step = Build(Fsdp(absl::StrCat("fsdp { prefetch: ", prefetch, " }")), costs);
    const ir::Timeline timeline = testing::Run(step, costs);
    ASSERT_EQ(timeline.spans.size(), step.schedule.programs[0].operations.size());
    const std::vector<Use> uses = UsesOf(step, timeline);
    ASSERT_EQ(uses.size(), 2U * 2 * 128);
    std::size_t most = 0;
    for (const Use& now : uses) {
      EXPECT_GE(now.first_start, now.gather_end);
      const auto held = std::count_if(uses.begin(), uses.end(), [&now](const Use& other) {
        return other.gather_start <= now.gather_start && now.gather_start < other.last_end;
      });
      most = std::max(most, static_cast<std::size_t>(held));
    }
    EXPECT_EQ(most, static_cast<std::size_t>(prefetch) + 1);
  }
}

TEST(Fsdp, OneCollectiveAtATime) {
  const auto costs = Costs();
  const Step step = Build(Fsdp(), costs);
  Picoseconds end;
  for (const ir::Span& span : testing::Run(step, costs).spans) {
    const ir::Operation& op = step.schedule.programs[0].operations[span.operation];
    if (op.kind != ir::OperationKind::kCollective) continue;
    EXPECT_EQ(op.stream, ir::Stream::kDataParallel);
    EXPECT_GE(span.start, end);
    end = span.end;
  }
}

TEST(Fsdp, MorePrefetchIsNeverSlower) {
  const auto costs = Costs("a100-80gb");
  Picoseconds before(std::int64_t{1} << 60);
  for (const int prefetch : {1, 2, 4}) {
    Experiment experiment = Fsdp(absl::StrCat("fsdp { prefetch: ", prefetch, " }"));
    experiment.mutable_batch()->set_sequence_length(256);  // gathers are not hidden
    const Picoseconds now = StepTime(Build(experiment, costs), costs);
    EXPECT_LE(now, before) << prefetch;
    before = now;
  }
}

// Idle time is waiting for a gather, until the last backward is done; then it is the reductions'.
TEST(Fsdp, BubblesAreGathersAndReductions) {
  const auto costs = Costs();
  const ir::Timeline timeline = testing::Run(Build(Fsdp(), costs), costs);
  ASSERT_EQ(timeline.entities.size(), 1U);
  const ir::RankAccount& account = timeline.entities[0].account;
  EXPECT_EQ(account.total(), timeline.step);
  for (int i = 0; i < ir::kBubbleClassCount; ++i) {
    const auto kind = static_cast<ir::BubbleClass>(i);
    const bool expected =
        kind == ir::BubbleClass::kDpAllGather || kind == ir::BubbleClass::kDpReduceScatter;
    EXPECT_EQ(account.bubbles[i] > Picoseconds(0), expected) << ir::ToString(kind);
  }
}

TEST(Fsdp, OneGpuHasNoCollectives) {
  Experiment experiment = Fsdp();
  experiment.mutable_plan()->set_data_parallel(1);
  experiment.mutable_hardware()->set_gpus(1);
  experiment.mutable_hardware()->set_cluster_gpus(1);
  const Step step = Build(experiment, Costs());
  EXPECT_TRUE(step.schedule.collectives.empty());
}

TEST(Fsdp, ALayerRunsAllSlicesBeforeTheNext) {
  const Step step = Build(Fsdp(), Costs());
  std::vector<std::pair<int, int>> forward, backward;  // (layer, slice) of micro-batch 1
  for (const ir::Operation& op : step.schedule.programs[0].operations) {
    if (op.tag.module != 1 || op.tag.micro_batch != 1 || op.tag.layer < 0) continue;
    if (op.kind != ir::OperationKind::kKernel) continue;
    auto& list = op.tag.phase == Phase::kForward ? forward : backward;
    const std::pair<int, int> pass(op.tag.layer, op.tag.slice);
    if (list.empty() || list.back() != pass) list.push_back(pass);
  }
  std::vector<std::pair<int, int>> expected;
  for (int layer = 0; layer < 48; ++layer) {
    for (int slice = 0; slice < 4; ++slice) expected.emplace_back(layer, slice);
  }
  EXPECT_EQ(forward, expected);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(backward, expected);
}

TEST(Fsdp, IsAsLargeAsTheLimitCounts) {
  for (const bool frozen : {false, true}) {
    Experiment experiment = Fsdp();
    experiment.mutable_encoders(0)->set_frozen(frozen);
    const auto stack = BuildStack(experiment);
    ir::Schedule schedule;
    schedule.world = {8, 1, 1};
    const BlockTable blocks(*stack, schedule);
    const Step step = Build(experiment, Costs());
    // Beside the micro-batches: gradient norm and optimizer.
    EXPECT_EQ(static_cast<double>(step.schedule.programs[0].operations.size()),
              2 * OperationsPerMicroBatch(experiment.plan(), {}, *stack, blocks) + 2);
  }
}

TEST(FsdpMemory, ByCategory) {
  const auto stack = BuildStack(Fsdp());
  const std::int64_t vit = ItemParameters(*stack, stack->items[0]);
  const std::int64_t gpt = ItemParameters(*stack, stack->items[60]);
  const std::int64_t root = ParametersOf(*stack, ItemKind::kProjector, 1) +
                            ParametersOf(*stack, ItemKind::kEmbedding, 0) +
                            ParametersOf(*stack, ItemKind::kHead, 0);
  const std::int64_t all = 48 * vit + 80 * gpt + root;
  ASSERT_GT(gpt, vit / 2);
  const Step one = Build(Fsdp(), Costs());
  ASSERT_EQ(one.memory.size(), 1U);
  const std::int64_t two_layers = 2 * std::max(vit, gpt);
  EXPECT_EQ(one.memory[0].parameters, Bytes(2 * (root + two_layers)));
  EXPECT_EQ(one.memory[0].gradients, Bytes((4 * all + 7) / 8));
  EXPECT_EQ(one.memory[0].optimizer_state, Bytes((12 * all + 7) / 8));
  EXPECT_EQ(one.memory[0].activations,
            ActivationBytes(*stack, 0, static_cast<int>(stack->items.size())));
  const Bytes recompute = RecomputeWorkspace(*stack, 0, static_cast<int>(stack->items.size()));
  EXPECT_EQ(one.memory[0].workspace, recompute + Bytes(2 * root) + Bytes(2 * two_layers));

  // Two more layers, gradients of 4 bytes.
  const Step more = Build(Fsdp("fsdp { prefetch: 3 reduce_in_fp32: true }"), Costs());
  EXPECT_EQ(more.memory[0].parameters, Bytes(2 * (root + 2 * two_layers)));
  EXPECT_EQ(more.memory[0].workspace, recompute + Bytes(2 * root) + Bytes(4L * 2 * two_layers));
  EXPECT_EQ(more.memory[0].optimizer_state, one.memory[0].optimizer_state);
}

TEST(FsdpMemory, AFrozenEncoderKeepsBf16Shards) {
  Experiment experiment = Fsdp();
  const Step trained = Build(experiment, Costs());
  experiment.mutable_encoders(0)->set_frozen(true);
  const auto stack = BuildStack(experiment);
  const std::int64_t frozen = 48 * ItemParameters(*stack, stack->items[0]);
  const Step step = Build(experiment, Costs());
  EXPECT_EQ(step.memory[0].parameters, trained.memory[0].parameters + Bytes(2 * frozen / 8));
  EXPECT_EQ(step.memory[0].gradients, trained.memory[0].gradients - Bytes(4 * frozen / 8));
  EXPECT_EQ(step.memory[0].optimizer_state,
            trained.memory[0].optimizer_state - Bytes(12 * frozen / 8));
}

}  // namespace
}  // namespace optimus::step
