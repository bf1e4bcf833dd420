#include "schedule/ir/critical_path.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using ::testing::AllOf;
using testing::HandCosts;
using ::testing::HasSubstr;
using testing::OneForwardOneBackward;
using testing::PhaseTag;
using testing::RandomSchedule;
using testing::ScheduleBuilder;

Timeline RunOrDie(const Schedule& schedule) {
  const HandCosts costs;
  CriticalPathRunner runner(costs);
  absl::StatusOr<Timeline> timeline = runner.Run(schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : Timeline{};
}

// The slow twin: the Schedule as one explicit graph, relaxed until nothing changes any more. Every
// operation is a node; the programs that take part in one collective share a node.
class ExplicitGraph {
 public:
  explicit ExplicitGraph(const Schedule& schedule) : schedule_(schedule) {
    AddNodes();
    for (std::size_t p = 0; p < schedule.programs.size(); ++p) AddEdges(p);
  }

  // End of every operation, by program.
  std::vector<std::vector<std::int64_t>> Ends() {
    std::vector<std::int64_t> end(durations_);
    bool changed = true;
    while (changed) {
      changed = false;
      for (const auto& [before, after] : edges_) {
        if (end[before] + durations_[after] <= end[after]) continue;
        end[after] = end[before] + durations_[after];
        changed = true;
      }
    }
    std::vector<std::vector<std::int64_t>> ends(nodes_.size());
    for (std::size_t p = 0; p < nodes_.size(); ++p) {
      for (const std::size_t node : nodes_[p]) ends[p].push_back(end[node]);
    }
    return ends;
  }

 private:
  std::int64_t Duration(const Program& program, const Operation& op) const {
    const HandCosts costs;
    if (op.kind == OperationKind::kReceive) return 0;
    if (op.kind == OperationKind::kKernel) {
      return costs.KernelTime(schedule_.kernels[op.work]).value();
    }
    if (op.kind == OperationKind::kCollective) {
      const Collective& c = schedule_.collectives[op.work];
      return costs.CollectiveCost(c.work, ShapeOf(schedule_, schedule_.groups[c.group]))
          .latency.value();
    }
    const Transfer& transfer = schedule_.transfers[op.work];
    if (transfer.fixed.value() > 0 || transfer.bytes.value() == 0) return transfer.fixed.value();
    const Program& peer = schedule_.programs[PeerProgram(schedule_, program, op)];
    const bool same_node = FirstRankOf(schedule_, program) / schedule_.gpus_per_node ==
                           FirstRankOf(schedule_, peer) / schedule_.gpus_per_node;
    return costs.SendCost(transfer.bytes, same_node).latency.value();
  }

  // Stages and lanes with the same values form an instance of the group.
  std::pair<int, int> Instance(const Group& group, const Program& program) const {
    const int t = program.lane * LaneWidth(schedule_);
    int all_stages = group.pp_stride > 0 ? program.stage % group.pp_stride : 0;
    if (group.paired()) all_stages = group.pp_pair[0];  // others issue nothing
    int all_lanes = 0;
    if (group.tp_block > 0) all_lanes = t / group.tp_block;
    if (group.tp_stride > 0) all_lanes = t % group.tp_stride;
    return {group.over_pp ? all_stages : program.stage, group.over_tp ? all_lanes : program.lane};
  }

  void AddNodes() {
    // (group, instance, how-many-th)
    std::map<std::tuple<int, std::pair<int, int>, int>, std::size_t> shared;
    for (const Program& program : schedule_.programs) {
      std::map<int, int> issued;
      std::vector<std::size_t>& nodes = nodes_.emplace_back();
      for (const Operation& op : program.operations) {
        std::size_t node = durations_.size();
        if (op.kind == OperationKind::kCollective) {
          const int group = schedule_.collectives[op.work].group;
          const auto instance = Instance(schedule_.groups[group], program);
          node = shared.try_emplace({group, instance, issued[group]++}, node).first->second;
        }
        if (node == durations_.size()) durations_.push_back(Duration(program, op));
        if (op.kind == OperationKind::kSend) sends_[op.message] = node;
        nodes.push_back(node);
      }
    }
  }

  void AddEdges(std::size_t p) {
    const Program& program = schedule_.programs[p];
    std::map<Stream, std::size_t> last;
    for (std::size_t id = 0; id < program.operations.size(); ++id) {
      const Operation& op = program.operations[id];
      const std::size_t node = nodes_[p][id];
      if (last.count(op.stream) > 0) edges_.push_back({last[op.stream], node});
      last[op.stream] = node;
      for (const std::uint32_t d : program.DependenciesOf(op)) {
        edges_.push_back({nodes_[p][d], node});
      }
      if (op.kind == OperationKind::kReceive) edges_.push_back({sends_.at(op.message), node});
    }
  }

  const Schedule& schedule_;
  std::vector<std::int64_t> durations_;
  std::vector<std::vector<std::size_t>> nodes_;  // by program and operation
  std::vector<std::pair<std::size_t, std::size_t>> edges_;
  std::map<std::int32_t, std::size_t> sends_;
};

TEST(CriticalPath, TwoStagesByHand) {
  // F = 1, B = 2, free messages: stage 0: F0 0-1, F1 1-2, B0 4-6, B1 7-9; stage 1: F0 1-2, B0 2-4,
  // F1 4-5, B1 5-7.
  const Schedule schedule = OneForwardOneBackward(2, 2, 1, 2, 0);
  const Timeline timeline = RunOrDie(schedule);
  EXPECT_EQ(timeline.step, Picoseconds(9));
  EXPECT_EQ(timeline.runner, "critical_path");
  EXPECT_EQ(timeline.operations, 16);
  ASSERT_EQ(timeline.entities.size(), 2u);
  std::vector<std::pair<std::int64_t, std::int64_t>> compute;
  for (const Span& span : timeline.spans) {
    if (IsCompute(schedule.programs[span.rank].operations[span.operation])) {
      compute.emplace_back(span.start.value(), span.end.value());
    }
  }
  EXPECT_THAT(compute,
              ::testing::ElementsAreArray(std::vector<std::pair<std::int64_t, std::int64_t>>{
                  {0, 1}, {1, 2}, {4, 6}, {7, 9}, {1, 2}, {2, 4}, {4, 5}, {5, 7}}));
}

// (m + p - 1) (F + B): Narayanan et al., SC 2021, section 2.2.
TEST(CriticalPath, OneForwardOneBackwardClosedForm) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const Timeline timeline =
          RunOrDie(OneForwardOneBackward(stages, micro_batches, 1000, 2000, 0));
      EXPECT_EQ(timeline.step, Picoseconds(3000) * (micro_batches + stages - 1))
          << stages << " stages, " << micro_batches << " micro-batches";
    }
  }
}

// A single micro-batch passes every edge twice, one after the other.
TEST(CriticalPath, EveryEdgeOfASingleMicroBatchAddsItsTime) {
  for (int stages = 1; stages <= 6; ++stages) {
    EXPECT_EQ(RunOrDie(OneForwardOneBackward(stages, 1, 10, 20, 7)).step,
              Picoseconds(stages * 30 + 2 * (stages - 1) * 7));
  }
}

TEST(CriticalPath, TimesScaleWithDurations) {
  const Timeline one = RunOrDie(OneForwardOneBackward(4, 7, 3, 5, 2));
  const Timeline thousand = RunOrDie(OneForwardOneBackward(4, 7, 3000, 5000, 2000));
  EXPECT_EQ(one.step * 1000, thousand.step);
  ASSERT_EQ(one.spans.size(), thousand.spans.size());
  for (std::size_t i = 0; i < one.spans.size(); ++i) {
    EXPECT_EQ(one.spans[i].start * 1000, thousand.spans[i].start);
    EXPECT_EQ(one.spans[i].end * 1000, thousand.spans[i].end);
  }
}

TEST(CriticalPath, EqualsTheLongestPathOfTheExplicitGraph) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const Schedule schedule =
        RandomSchedule(seed, /*encoders=*/seed % 2 == 1, /*pairs=*/seed % 3 == 0)
            .Build(20 + static_cast<int>(seed % 100));
    ASSERT_TRUE(Validate(schedule).ok()) << "seed " << seed << ": " << Validate(schedule);
    const auto expected = ExplicitGraph(schedule).Ends();
    const Timeline timeline = RunOrDie(schedule);
    std::size_t next = 0;
    std::int64_t step = 0;
    for (const std::vector<std::int64_t>& ends : expected) {
      for (const std::int64_t end : ends) {
        ASSERT_LT(next, timeline.spans.size());
        ASSERT_EQ(timeline.spans[next++].end.value(), end) << "seed " << seed;
        step = std::max(step, end);
      }
    }
    EXPECT_EQ(next, timeline.spans.size());
    EXPECT_EQ(timeline.step.value(), step);
  }
}

TEST(CriticalPath, AccountsAreThoseOfTheSpansAndAddUpToTheStep) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    const Schedule schedule =
        RandomSchedule(seed, /*encoders=*/seed % 2 == 1, /*pairs=*/seed % 3 == 0).Build(60);
    const Timeline timeline = RunOrDie(schedule);
    ASSERT_EQ(timeline.entities.size(), schedule.programs.size());
    std::size_t next = 0;
    for (const EntityAccount& entity : timeline.entities) {
      const Program& program = schedule.programs[ProgramIndex(schedule, entity.stage, entity.lane)];
      EXPECT_EQ(entity.rank, FirstRankOf(schedule, program));
      std::vector<Picoseconds> starts, ends;
      for (std::size_t i = 0; i < program.operations.size(); ++i, ++next) {
        starts.push_back(timeline.spans[next].start);
        ends.push_back(timeline.spans[next].end);
        EXPECT_EQ(timeline.spans[next].rank, entity.rank);
      }
      EXPECT_EQ(entity.account, AccountFromSpans(schedule, program, starts, ends, timeline.step))
          << "seed " << seed;
      EXPECT_EQ(entity.account.total(), timeline.step) << "seed " << seed;
    }
  }
}

TEST(CriticalPath, EntitiesStandForAllGpusOfAStage) {
  Schedule schedule = OneForwardOneBackward(2, 1, 1, 2, 0);
  schedule.world = {3, 2, 4};
  const Timeline timeline = RunOrDie(schedule);
  ASSERT_EQ(timeline.entities.size(), 2u);
  EXPECT_EQ(timeline.entities[1].rank, 12);
  EXPECT_EQ(timeline.entities[1].stage, 1);
  EXPECT_EQ(timeline.entities[1].gpus, 12);
}

TEST(CriticalPath, EntitiesStandForAllGpusOfALane) {
  ScheduleBuilder builder({3, 2, 4}, 2);
  const Timeline timeline = RunOrDie(builder.Take());
  ASSERT_EQ(timeline.entities.size(), 4u);
  EXPECT_EQ(timeline.entities[3].rank, 14);
  EXPECT_EQ(timeline.entities[3].stage, 1);
  EXPECT_EQ(timeline.entities[3].lane, 1);
  EXPECT_EQ(timeline.entities[3].gpus, 6);
}

// An encoder in lane 1 of stage 0 gives its output to both lanes of stage 1, whose LLM layer
// gathers over the lanes.
TEST(CriticalPath, LanesByHand) {
  ScheduleBuilder builder({1, 2, 4}, 2);
  builder.schedule().gpus_per_node = 4;
  const auto edge = builder.AddTransfer("embeddings", 7, 0);
  const auto tp = builder.AddCollectiveWork(CollectiveKind::kAllGather, 5,
                                            builder.AddGroup("tp", false, false, true));
  const Tag tag = PhaseTag(Phase::kForward);
  const auto encoder = builder.AddKernel(builder.At(0, 1), tag, 100);
  builder.AddSend(builder.At(0, 1), Stream::kEncoderSend, 0, 0, edge, {encoder}, 0);
  builder.AddSend(builder.At(0, 1), Stream::kEncoderSend, 1, 1, edge, {encoder});
  builder.AddReceive(builder.At(0, 0), Stream::kEncoderReceive, 0, 0, edge, {}, 1);
  const auto receive = builder.AddReceive(builder.At(1, 1), Stream::kEncoderReceive, 0, 1, edge);
  builder.AddCollective(builder.At(1, 0), Stream::kTensorParallel, tag, tp);
  const auto gather =
      builder.AddCollective(builder.At(1, 1), Stream::kTensorParallel, tag, tp, {receive});
  builder.AddKernel(builder.At(1, 1), tag, 10, {gather});
  const Schedule schedule = builder.Take();
  ASSERT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  const Timeline timeline = RunOrDie(schedule);
  ASSERT_EQ(timeline.spans.size(), 8u);
  EXPECT_EQ(timeline.spans[0].end, Picoseconds(107));    // received in lane 0, in the same node
  EXPECT_EQ(timeline.spans[3].end, Picoseconds(614));    // after the other message, between nodes
  EXPECT_EQ(timeline.spans[4].start, Picoseconds(614));  // lane 0 of stage 1 waits for lane 1
  EXPECT_EQ(timeline.step, Picoseconds(629));
}

// Collectives over the pipeline begin when the last member comes, and match by order of issue even
// where they are on different streams.
TEST(CriticalPath, CollectiveOverThePipelineWaitsForItsLastMember) {
  ScheduleBuilder builder({1, 2, 1});
  const auto all = builder.AddGroup("all", false, true, false);
  const auto norm = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 5, all);
  const auto slow = builder.AddKernel(0, PhaseTag(Phase::kBackward), 100);
  builder.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kGradientSync), norm, {slow});
  const auto fast = builder.AddKernel(1, PhaseTag(Phase::kBackward), 10);
  const auto last = builder.AddCollective(1, Stream::kEncoderCommunication,
                                          PhaseTag(Phase::kGradientSync), norm, {fast});
  builder.AddKernel(1, PhaseTag(Phase::kOptimizer), 3, {last});
  const Timeline timeline = RunOrDie(builder.Take());
  EXPECT_EQ(timeline.step, Picoseconds(108));
  EXPECT_EQ(timeline.spans[3].start, Picoseconds(100));
  EXPECT_EQ(timeline.spans[3].end, Picoseconds(105));
}

// A dependency may have a higher id, on another stream.
TEST(CriticalPath, DependenciesMayPointForward) {
  ScheduleBuilder builder({1, 1, 2});
  const auto tp = builder.AddGroup("tp", false, false, true);
  const auto gather = builder.AddCollectiveWork(CollectiveKind::kAllGather, 30, tp);
  builder.AddKernel(0, PhaseTag(Phase::kForward), 7, {1});
  builder.AddCollective(0, Stream::kTensorParallel, PhaseTag(Phase::kForward), gather);
  EXPECT_EQ(RunOrDie(builder.Take()).step, Picoseconds(37));
}

TEST(CriticalPath, MessagesCostWhatTheirLinkCosts) {
  Schedule schedule = OneForwardOneBackward(3, 1, 1, 1, 0);
  schedule.transfers = {{"edge", Bytes(40), Picoseconds(0)}};
  schedule.gpus_per_node = 2;  // stages 0 and 1 share a node: 40 ps; 1 to 2: 540 ps
  EXPECT_EQ(RunOrDie(schedule).step, Picoseconds(6 + 2 * (40 + 540)));
}

TEST(CriticalPath, BlockedScheduleIsAnInternalErrorThatNamesWhoWaits) {
  ScheduleBuilder builder({1, 2, 1});
  const auto edge = builder.AddTransfer("activations", 1, 0);
  for (int stage = 0; stage < 2; ++stage) {
    const auto receive =
        builder.AddReceive(stage, Stream::kForwardReceive, 1 - stage, 1 - stage, edge);
    builder.AddSend(stage, Stream::kForwardSend, 1 - stage, stage, edge, {receive});
  }
  const HandCosts costs;
  const absl::StatusOr<Timeline> timeline = CriticalPathRunner(costs).Run(builder.Take());
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(timeline.status().message()),
              AllOf(HasSubstr("deadlock"), HasSubstr("stage 0 (rank 0), operation 0 (forward "
                                                     "receive activations from stage 1)")));
}

}  // namespace
}  // namespace optimus::ir
