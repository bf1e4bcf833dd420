#include "traces/replay/replay.h"

#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "traces/replay/account.h"
#include "traces/replay/gaps.h"
#include "traces/replay/path.h"
#include "traces/replay/random_step.h"
#include "traces/replay/sensitivity.h"
#include "traces/replay/what_if.h"

namespace optimus::traces {
namespace {

class RandomSteps : public ::testing::TestWithParam<std::tuple<MessageRule, bool>> {
 protected:
  RandomStep Make(unsigned seed) const {
    return {seed, std::get<0>(GetParam()), std::get<1>(GetParam())};
  }
  static ReplayGraph Rebuilt(const RandomStep& step) {
    auto graph = Rebuild(step.Record());
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }
};

TEST_P(RandomSteps, ReplayAsRecorded) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    EXPECT_TRUE(graph.unpaired.empty()) << graph.unpaired[0].what;
    const traces::Run run = Replay(graph, RecordedDurations(graph));
    ASSERT_EQ(run.step, graph.step) << seed;
    for (TaskId task = 0; task < graph.tasks.size(); ++task) {
      ASSERT_EQ(run.tasks[task].start, graph.tasks[task].start) << seed << " " << task;
      ASSERT_EQ(run.tasks[task].end, graph.tasks[task].end) << seed << " " << task;
    }
  }
}

// Waiting is taken out of the recording rightly: with slower kernels the step is what the twin, who
// knows the true durations, says.
TEST_P(RandomSteps, SlowerKernelsAsTheTwinSays) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    RandomStep step = Make(seed);
    const ReplayGraph graph = Rebuilt(step);
    WhatIf what_if;
    what_if.compute_scale = 3;
    const auto durations = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
    ASSERT_TRUE(durations.ok());
    EXPECT_EQ(Replay(graph, durations->durations).step.value(), step.StepWith(3)) << seed;
  }
}

TEST_P(RandomSteps, AccountsAddUpToTheStep) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    const OpClasses classes = ClassesOf(graph);
    const traces::Run run = Replay(graph, RecordedDurations(graph));
    for (const TimeAccount& rank : AccountOf(graph, classes, run)) {
      Picoseconds sum = rank.compute + rank.copy + rank.waiting + rank.idle;
      for (const Picoseconds exposed : rank.exposed) sum += exposed;
      EXPECT_EQ(sum, run.step);
    }
  }
}

// The slow twin of the sweep: picosecond by picosecond.
TEST_P(RandomSteps, AccountsAsCountedOneByOne) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    const OpClasses classes = ClassesOf(graph);
    const traces::Run run = Replay(graph, RecordedDurations(graph));
    const TimeAccount rank = AccountOf(graph, classes, run).front();
    const bool eager = graph.recording.messages == MessageRule::kEager;
    std::int64_t compute = 0, idle = 0, waiting = 0;
    for (Picoseconds t; t < run.step; t += Picoseconds(1)) {
      bool computes = false, moves = false, waits = false;
      for (TaskId task = graph.first_task[0]; task < graph.first_task[1]; ++task) {
        const TaskRun& r = run.tasks[task];
        const bool is_kernel = graph.op(task).kind == OpKind::kCompute;
        const bool posted =
            !is_kernel && eager && graph.communication(task)->kind == CommunicationKind::kReceive;
        const bool on = r.start <= t && t < r.end;
        computes = computes || (is_kernel && on);
        moves = moves || (!is_kernel && !posted && r.moving <= t && t < r.end);
        waits = waits || (!is_kernel && on);
      }
      compute += computes ? 1 : 0;
      waiting += !computes && !moves && waits ? 1 : 0;
      idle += !computes && !moves && !waits ? 1 : 0;
    }
    EXPECT_EQ(rank.compute.value(), compute);
    EXPECT_EQ(rank.idle.value(), idle);
    EXPECT_EQ(rank.waiting.value(), waiting);
  }
}

void ExpectWithoutHoles(const std::vector<PathPiece>& path, Picoseconds from, Picoseconds to) {
  Picoseconds at = from;
  for (const PathPiece& piece : path) {
    EXPECT_EQ(piece.from, at);
    EXPECT_GT(piece.length(), Picoseconds(0));
    at = piece.to;
  }
  EXPECT_EQ(at, to);
}

TEST_P(RandomSteps, TheCriticalPathHasNoHoles) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    const traces::Run run = Replay(graph, RecordedDurations(graph));
    const std::vector<PathPiece> path = CriticalPath(graph, run);
    ExpectWithoutHoles(path, Picoseconds(0), run.step);
    for (const PathPiece& piece : path) {
      if (piece.kind != PieceKind::kWork) continue;
      EXPECT_LE(run.tasks[piece.task].moving, piece.from);
      EXPECT_GE(run.tasks[piece.task].end, piece.to);
    }
  }
}

// What is on the critical path is what counts: with its work free the step is shorter, and never by
// more than its time there; what is not on it changes nothing.
TEST_P(RandomSteps, SensitivityFitsTheCriticalPath) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    const OpClasses classes = ClassesOf(graph);
    const Durations durations = RecordedDurations(graph);
    const traces::Run run = Replay(graph, durations);
    const std::vector<Share> shares = SharesOf(graph, classes, CriticalPath(graph, run));
    for (const Sensitivity& free : Sensitivities(graph, classes, durations)) {
      if (free.cls < 0) continue;
      Picoseconds on_path;
      for (const Share& share : shares) {
        if (share.cls == free.cls) on_path += share.time;
      }
      EXPECT_GE(free.step, run.step - on_path) << seed << " " << free.name;
      EXPECT_LE(free.step, run.step);
      if (on_path == Picoseconds(0)) {
        EXPECT_EQ(free.step, run.step);
      }
    }
  }
}

TEST_P(RandomSteps, GapsAreExplainedFromTheirStartToTheirEnd) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const ReplayGraph graph = Rebuilt(Make(seed));
    const traces::Run run = Replay(graph, RecordedDurations(graph));
    const std::vector<IdleGap> gaps = LongestGaps(graph, run, 100, 0);
    Picoseconds idle;
    for (const IdleGap& gap : gaps) {
      idle += gap.length();
      ExpectWithoutHoles(gap.path, gap.from, gap.to);
    }
    EXPECT_EQ(idle, run.step - AccountOf(graph, ClassesOf(graph), run).front().compute);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RandomSteps,
    ::testing::Combine(::testing::Values(MessageRule::kEager, MessageRule::kRendezvous),
                       ::testing::Bool()),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) == MessageRule::kEager ? "Eager" : "Rendezvous") +
             (std::get<1>(info.param) ? "WaitsInside" : "StartsTogether");
    });

}  // namespace
}  // namespace optimus::traces
