#include "executor/runtime/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "executor/runtime/testing.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::executor {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::FakeRank;
using testing::GiveUp;
using ::testing::HasSubstr;
using testing::OnAllRanks;

using RankTimes = std::vector<std::vector<OperationTime>>;

struct StepsOutcome {
  std::vector<absl::Status> statuses;  // by rank
  std::vector<RankTimes> times;        // by step, rank
};

StepsOutcome RunSteps(const ir::Schedule& schedule, Cluster& cluster, int steps) {
  StepsOutcome outcome;
  outcome.times.resize(steps, RankTimes(static_cast<std::size_t>(cluster.size)));
  outcome.statuses = OnAllRanks(cluster, [&](FakeRank& its) -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                             Runtime::Create(schedule, its.world, its.device, its.ranks, nullptr));
    const GiveUp give_up;
    for (int step = 0; step < steps; ++step) {
      absl::StatusOr<std::vector<OperationTime>> times = runtime->Step(step, give_up);
      if (!times.ok()) return times.status();
      outcome.times[step][its.world.rank()] = *std::move(times);
      if (!runtime->Current().empty()) return absl::InternalError("still at something");
    }
    return absl::OkStatus();
  });
  return outcome;
}

// The one rank that failed by itself; the others were ended with CANCELLED.
absl::Status TheError(const std::vector<absl::Status>& statuses) {
  absl::Status error;
  for (const absl::Status& status : statuses) {
    if (status.ok() || absl::IsCancelled(status)) continue;
    EXPECT_TRUE(error.ok()) << error << status;
    error = status;
  }
  return error;
}

// The obvious rules, on recorded times alone. Every two events of the fake cluster have different
// times.
void CheckOrder(const ir::Schedule& schedule, const RankTimes& times) {
  std::map<std::pair<int, int>, std::int64_t> sent;  // by source and message: begin of the send
  for (int rank = 0; rank < static_cast<int>(times.size()); ++rank) {
    const ir::Program& program = schedule.programs[PlaceOf(schedule, rank).program];
    ASSERT_EQ(times[rank].size(), program.operations.size());
    std::map<ir::Stream, std::int64_t> stream_end;
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      const OperationTime& time = times[rank][id];
      ASSERT_GT(time.begin_ns, 0);
      ASSERT_GT(time.end_ns, time.begin_ns);
      EXPECT_GT(time.begin_ns, stream_end[op.stream]) << rank << " " << id;
      stream_end[op.stream] = time.end_ns;
      for (const std::uint32_t dependency : program.DependenciesOf(op)) {
        EXPECT_GT(time.begin_ns, times[rank][dependency].end_ns) << rank << " " << id;
      }
      if (op.kind == ir::OperationKind::kSend) sent[{rank, op.message}] = time.begin_ns;
    }
  }
  for (int rank = 0; rank < static_cast<int>(times.size()); ++rank) {
    const RankPlace place = PlaceOf(schedule, rank);
    const ir::Program& program = schedule.programs[place.program];
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      if (op.kind != ir::OperationKind::kReceive) continue;
      const int lanes_apart = op.peer_lane < 0 ? 0 : op.peer_lane - program.lane;
      const int peer = rank +
                       (op.peer_stage - place.stage) * schedule.world.dp * schedule.world.tp +
                       lanes_apart * ir::LaneWidth(schedule);
      ASSERT_TRUE(sent.contains({peer, op.message}));
      EXPECT_GT(times[rank][id].end_ns, (sent[{peer, op.message}]));
    }
  }
}

struct Counts {
  std::int64_t kernels = 0, collectives = 0, receives = 0;
};

Counts CountOperations(const ir::Schedule& schedule) {
  Counts counts;
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    for (const ir::Operation& op : schedule.programs[PlaceOf(schedule, rank).program].operations) {
      if (op.kind == ir::OperationKind::kKernel) ++counts.kernels;
      if (op.kind == ir::OperationKind::kCollective) ++counts.collectives;
      if (op.kind == ir::OperationKind::kReceive) ++counts.receives;
    }
  }
  return counts;
}

class RandomSchedules : public ::testing::TestWithParam<bool> {};

TEST_P(RandomSchedules, EveryOperationRunsOnceAfterWhatItWaitsFor) {
  constexpr int kSteps = 2;
  int with_all_axes = 0;
  for (std::uint32_t seed = 1; seed <= 24; ++seed) {
    const ir::Schedule schedule = ir::testing::RandomSchedule(seed, GetParam()).Build(60);
    if (schedule.world.gpus() > 24) continue;
    ASSERT_TRUE(ir::internal::CheckDeadlock(schedule).ok());
    const ir::Parallelism& world = schedule.world;
    with_all_axes += world.dp > 1 && world.pp > 1 && world.tp > 1 ? 1 : 0;
    Cluster cluster(world.gpus(), seed);
    const StepsOutcome outcome = RunSteps(schedule, cluster, kSteps);
    for (const absl::Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status;
    for (const RankTimes& times : outcome.times) CheckOrder(schedule, times);
    const Counts expected = CountOperations(schedule);
    EXPECT_EQ(cluster.kernels_run, kSteps * expected.kernels);
    EXPECT_EQ(cluster.collectives_run, kSteps * expected.collectives);
    EXPECT_EQ(cluster.messages_received, kSteps * expected.receives);
    EXPECT_TRUE(cluster.messages.empty());
  }
  EXPECT_GE(with_all_axes, 3);
}

INSTANTIATE_TEST_SUITE_P(Lanes, RandomSchedules, ::testing::Bool());

TEST(RuntimeTest, RefusesAWorldOfAnotherSize) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(4, 4, 10, 20, 0);
  Cluster cluster(2);
  const StepsOutcome outcome = RunSteps(schedule, cluster, 1);
  for (const absl::Status& status : outcome.statuses) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(std::string(status.message()),
              "schedule 'test' is made for 4 ranks (dp 1, pp 4, tp 1), but this run has 2 ranks; "
              "hint: start it with 4 ranks");
  }
}

// Stage 1 begins its forward without waiting for its input, as its streams go by their numbers:
// compute first.
TEST(RuntimeTest, AForgottenWaitStopsTheRunAndNamesBothOperations) {
  ir::Schedule schedule = ir::testing::OneForwardOneBackward(2, 2, 10, 20, 5);
  Cluster cluster(2);
  cluster.faults.in_order = true;
  cluster.faults.skip_wait = [](int rank, ir::Stream stream, Event event) {
    return rank == 1 && stream == ir::Stream::kCompute && event == EndEvent(0);
  };
  const absl::Status error = TheError(RunSteps(schedule, cluster, 1).statuses);
  EXPECT_THAT(
      std::string(error.message()),
      AllOf(HasSubstr("rank 1: expects rank 1: forward receive edge from stage 0 (operation 0, "
                      "step 0), found nothing; it was at step 0: compute: llm layer 1 micro-batch "
                      "0 chunk 0 "
                      "forward work10 (operation 1) runs; "),
            HasSubstr("; backward_send: backward send edge to stage 0 (operation 3) waits for llm "
                      "layer 1 micro-batch 0 chunk 0 backward work20 (operation 2)")));
}

TEST(RuntimeTest, SwappedMessagesStopTheRunAndNameBothOperations) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(2, 3, 10, 20, 5);
  Cluster cluster(2);
  cluster.faults.retag = [](int from, std::int32_t message) {
    if (from != 0) return message;
    return message == 2 ? 4 : message == 4 ? 2 : message;  // forward of micro-batches 1 and 2
  };
  const absl::Status error = TheError(RunSteps(schedule, cluster, 1).statuses);
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  // Stage 0 sends the forward of micro-batch 1 as operation 3, of micro-batch 2 as operation 7.
  EXPECT_THAT(
      std::string(error.message()),
      HasSubstr("rank 1: expects rank 0: forward send edge to stage 1 (operation 3, step 0), got "
                "rank 0: forward send edge to stage 1 (operation 7, step 0)"));
}

// Two collectives of one kind and size in a row; one rank brings the second to the first.
TEST(RuntimeTest, SwappedCollectivesStopTheRunAndNameBothOperations) {
  ir::testing::ScheduleBuilder builder({1, 1, 2});
  const std::int32_t tp = builder.AddGroup("tp", false, false, true);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, tp);
  for (int layer = 0; layer < 2; ++layer) {
    builder.AddCollective(0, ir::Stream::kTensorParallel,
                          ir::testing::MakeTag(-1, layer, 0, Phase::kForward), work);
  }
  const ir::Schedule schedule = builder.Take();
  Cluster cluster(2);
  cluster.faults.restamp = [&](int rank, const Stamp& stamp) {
    if (rank == 0) return stamp;
    Stamp other = StampOf(schedule.programs[0], 1U - stamp.operation, rank, stamp.step);
    return other;
  };
  const std::vector<absl::Status> statuses = RunSteps(schedule, cluster, 1).statuses;
  const absl::Status error = TheError(statuses);
  EXPECT_THAT(std::string(error.message()),
              AllOf(HasSubstr("layer 0 micro-batch 0 forward all_reduce (operation 0, step 0)"),
                    HasSubstr(" met "),
                    HasSubstr("layer 1 micro-batch 0 forward all_reduce (operation 1, step 0)")));
}

TEST(RuntimeTest, SaysWhatEveryStreamIsAtWhenAMessageIsLost) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(2, 1, 10, 20, 5);
  Cluster cluster(2);
  cluster.faults.retag = [](int from, std::int32_t message) { return from == 1 ? -1 : message; };
  std::array<std::string, 2> said;
  std::array<std::int64_t, 2> ended{};
  std::array<std::vector<StreamState>, 2> states;
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    const int rank = its.world.rank();
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, nullptr);
    if (!runtime.ok()) return runtime.status();
    EXPECT_EQ((*runtime)->DescribeCurrent(), "");
    auto look = [&] {
      said[rank] = (*runtime)->DescribeCurrent();
      ended[rank] = (*runtime)->ended();
      states[rank] = (*runtime)->Current();
      return ended[rank] < 2 ? absl::OkStatus() : absl::DeadlineExceededError("seen enough");
    };
    return (*runtime)->Step(0, look).status();
  });
  // Rank 0: forward, its send, then the backward receive that never ends.
  EXPECT_TRUE(absl::IsDeadlineExceeded(statuses[0])) << statuses[0];
  EXPECT_EQ(
      said[0],
      "step 0: compute: llm layer 0 micro-batch 0 chunk 0 backward work20 (operation 3) waits for "
      "backward receive edge from stage 1 (operation 2); backward_receive: backward receive "
      "edge from stage 1 (operation 2) waits for rank 1");
  EXPECT_EQ(ended[0], 2);
  ASSERT_EQ(states[0].size(), 2);
  EXPECT_FALSE(states[0][0].begun);
  EXPECT_THAT(states[0][0].waits_for, ::testing::ElementsAre(2));
  EXPECT_TRUE(states[0][1].begun);
}

TEST(RuntimeTest, SaysWhoIsInACollectiveThatNobodyElseReaches) {
  ir::testing::ScheduleBuilder builder({1, 2, 2});
  const std::int32_t model = builder.AddGroup("model", false, true, true);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, model);
  const std::int32_t edge = builder.AddTransfer("edge", 8, 0);
  const std::uint32_t got = builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 0, edge);
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 0, edge);
  const ir::Tag tag = ir::testing::PhaseTag(Phase::kGradientSync);
  builder.AddCollective(0, ir::Stream::kDataParallel, tag, work);
  builder.AddCollective(1, ir::Stream::kDataParallel, tag, work, {got});
  const ir::Schedule schedule = builder.Take();
  Cluster cluster(4);
  cluster.faults.retag = [](int from, std::int32_t m) { return from == 1 ? -1 : m; };
  std::array<std::string, 4> said;
  std::atomic<int> looked = 0;  // ranks
  OnAllRanks(cluster, [&](FakeRank& its) {
    const int rank = its.world.rank();
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, nullptr);
    if (!runtime.ok()) return runtime.status();
    bool first = true;
    return (*runtime)
        ->Step(0,
               [&] {
                 said[rank] = (*runtime)->DescribeCurrent();
                 if (first) ++looked;
                 first = false;
                 return looked < 4 ? absl::OkStatus() : absl::DeadlineExceededError("enough");
               })
        .status();
  });
  EXPECT_EQ(
      said[0],
      "step 0: data_parallel: gradient_sync all_reduce (operation 1) is in its collective of ranks "
      "0, 1, 2, 3");
  EXPECT_EQ(said[3],
            "step 0: forward_receive: forward receive edge from stage 0 (operation 0) waits for "
            "rank 1; data_parallel: gradient_sync all_reduce (operation 1) waits for forward "
            "receive edge from stage 0 (operation 0)");
}

// Stage 1 waits for a message on all its streams; what has begun, and compute, are always shown.
TEST(RuntimeTest, OfManyStreamsThatWaitSomeAreCounted) {
  ir::testing::ScheduleBuilder builder({1, 2, 1});
  const std::int32_t group = builder.AddGroup("tp", false, false, true);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, group);
  const std::int32_t edge = builder.AddTransfer("edge", 8, 0);
  const ir::Tag tag = ir::testing::MakeTag(-1, 0, 0, Phase::kForward);
  const std::uint32_t got = builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 0, edge);
  const std::uint32_t kernel = builder.AddKernel(1, tag, 10, {got});
  builder.AddCollective(1, ir::Stream::kTensorParallel, tag, work, {kernel});
  builder.AddSend(1, ir::Stream::kBackwardSend, 0, 1, edge, {kernel});
  builder.AddCollective(1, ir::Stream::kDataParallel, tag, work, {got});
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(0, ir::Stream::kBackwardReceive, 1, 1, edge);
  const ir::Schedule schedule = builder.Take();
  Cluster cluster(2);
  cluster.faults.retag = [](int from, std::int32_t message) { return from == 0 ? -1 : message; };
  std::string said;
  std::atomic<bool> begun = false;  // the receive that never ends
  OnAllRanks(cluster, [&](FakeRank& its) {
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, nullptr);
    if (!runtime.ok()) return runtime.status();
    auto look = [&] {
      if (its.world.rank() == 1) {
        said = (*runtime)->DescribeCurrent();
        begun = absl::StrContains(said, "waits for rank 0");
      }
      return begun ? absl::DeadlineExceededError("seen enough") : absl::OkStatus();
    };
    return (*runtime)->Step(0, look).status();
  });
  EXPECT_EQ(said,
            "step 0: compute: layer 0 micro-batch 0 forward work10 (operation 1) waits for forward "
            "receive edge from stage 0 (operation 0); tensor_parallel: layer 0 micro-batch 0 "
            "forward all_reduce (operation 2) waits for layer 0 micro-batch 0 forward work10 "
            "(operation 1); forward_receive: forward receive edge from stage 0 (operation 0) waits "
            "for rank 0; 2 more wait for these");
}

// A dependency that is issued after what waits for it.
TEST(RuntimeTest, AnOperationMayWaitForALaterOne) {
  ir::testing::ScheduleBuilder builder({1, 1, 2});
  const std::int32_t tp = builder.AddGroup("tp", false, false, true);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, tp);
  const ir::Tag tag = ir::testing::MakeTag(-1, 0, 0, Phase::kForward);
  builder.AddKernel(0, tag, 10, {1});
  builder.AddCollective(0, ir::Stream::kTensorParallel, tag, work);
  const ir::Schedule schedule = builder.Take();
  Cluster cluster(2);
  const StepsOutcome outcome = RunSteps(schedule, cluster, 1);
  for (const absl::Status& status : outcome.statuses) ASSERT_TRUE(status.ok()) << status;
  CheckOrder(schedule, outcome.times[0]);
}

// Adds up its input: a message carries what a kernel made, a collective sums it over the ranks.
class SummingWorkload : public Workload {
 public:
  SummingWorkload(const ir::Program& program, int rank)
      : program_(program), values_(program.operations.size()), rank_(rank) {}
  absl::Status Begin(int step) override {
    step_ = step;
    return absl::OkStatus();
  }
  absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t id) override {
    return [this, id] {
      values_[id] = static_cast<float>(100 * step_ + rank_ + 1);
      for (const float input : Inputs(id)) values_[id] += input;
      return absl::OkStatus();
    };
  }
  absl::StatusOr<Payload> Data(std::uint32_t id) override {
    Payload payload;
    payload.input = [this, id] {
      values_[id] = 0;
      for (const float input : Inputs(id)) values_[id] += input;
      return absl::MakeConstSpan(&values_[id], 1);
    };
    payload.output = [this, id] { return absl::MakeSpan(&values_[id], 1); };
    payload.done = [this, id] { done_.insert(id); };
    return payload;
  }
  float value(std::uint32_t id) const { return values_[id]; }
  bool done(std::uint32_t id) const { return done_.contains(id); }

 private:
  std::vector<float> Inputs(std::uint32_t id) const {
    std::vector<float> inputs;
    for (const std::uint32_t d : program_.DependenciesOf(program_.operations[id])) {
      inputs.push_back(values_[d]);
    }
    return inputs;
  }
  const ir::Program& program_;
  std::vector<float> values_;
  std::set<std::uint32_t> done_;
  int rank_ = 0, step_ = 0;
};

// Stage 0 (ranks 0, 1) makes rank + 1, sums it up over tensor-parallel ranks (3) and sends it to
// stage 1 (ranks 2, 3), which adds its rank + 1.
TEST(RuntimeTest, AWorkloadsDataGoesThroughMessagesAndCollectives) {
  ir::testing::ScheduleBuilder builder({1, 2, 2});
  const std::int32_t tp = builder.AddGroup("tp", false, false, true);
  const std::int32_t sum = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4, tp);
  const std::int32_t edge = builder.AddTransfer("edge", 4, 0);
  const ir::Tag tag = ir::testing::MakeTag(-1, 0, 0, Phase::kForward);
  const std::uint32_t made = builder.AddKernel(0, tag, 10);
  const std::uint32_t summed =
      builder.AddCollective(0, ir::Stream::kTensorParallel, tag, sum, {made});
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 0, edge, {summed});
  const std::uint32_t got = builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 0, edge);
  const std::uint32_t last = builder.AddKernel(1, tag, 10, {got});
  const ir::Schedule schedule = builder.Take();
  Cluster cluster(4);
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    const int rank = its.world.rank();
    SummingWorkload workload(schedule.programs[rank / 2], rank);
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, &workload);
    if (!runtime.ok()) return runtime.status();
    for (int step = 0; step < 2; ++step) {
      const GiveUp give_up;
      OPTIMUS_RETURN_IF_ERROR((*runtime)->Step(step, give_up).status());
      const int expected = rank < 2 ? 200 * step + 3 : 300 * step + 3 + rank + 1;
      EXPECT_EQ(workload.value(rank < 2 ? summed : last), static_cast<float>(expected));
    }
    EXPECT_TRUE(workload.done(rank < 2 ? summed : got));
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

class RefusingWorkload : public SummingWorkload {
 public:
  using SummingWorkload::SummingWorkload;
  absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t /*id*/) override {
    return absl::UnimplementedError("no such kernel");
  }
};

// What comes of a step of one rank that is given this workload.
template <class ItsWorkload>
absl::Status StepOfOneRank() {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(1, 1, 10, 20, 0);
  Cluster cluster(1);
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    ItsWorkload workload(schedule.programs[0], 0);
    absl::StatusOr<std::unique_ptr<Runtime>> runtime =
        Runtime::Create(schedule, its.world, its.device, its.ranks, &workload);
    if (!runtime.ok()) return runtime.status();
    return (*runtime)->Step(0, GiveUp()).status();
  });
  return statuses[0];
}

TEST(RuntimeTest, NamesTheOperationThatCannotBeEnqueued) {
  const absl::Status status = StepOfOneRank<RefusingWorkload>();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(std::string(status.message()),
            "rank 0: llm layer 0 micro-batch 0 chunk 0 forward work10 (operation 0): no such "
            "kernel");
}

class FailingWorkload : public SummingWorkload {
 public:
  using SummingWorkload::SummingWorkload;
  absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t /*id*/) override {
    return [] { return absl::InternalError("rank 0: this kernel"); };
  }
};

TEST(RuntimeTest, AnErrorThatNamesItsRankIsNotNamedTwice) {
  const absl::Status status = StepOfOneRank<FailingWorkload>();
  EXPECT_THAT(std::string(status.message()),
              ::testing::StartsWith("rank 0: this kernel; it was at step 0: "));
}

// Two stages of two ranks each; the collective is over both stages, the other one of a rank alone.
ir::Schedule WithLargeData() {
  ir::testing::ScheduleBuilder builder({1, 2, 2});
  const std::int32_t edge = builder.AddTransfer("edge", 7000, 0);
  const std::int32_t pipeline = builder.AddGroup("pipeline", false, true, false);
  const std::int32_t alone = builder.AddGroup("dp", true, false, false);
  const auto gather = builder.AddCollectiveWork(CollectiveKind::kAllGather, 9001, pipeline);
  const auto none = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 1 << 20, alone);
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 0, edge);
  const ir::Tag tag = ir::testing::PhaseTag(Phase::kGradientSync);
  for (const int stage : {0, 1}) {
    builder.AddCollective(stage, ir::Stream::kDataParallel, tag, gather);
    builder.AddCollective(stage, ir::Stream::kDataParallel, tag, none);
  }
  return builder.Take();
}

TEST(RuntimeTest, MakesRoomForTheLargestDataBeforeAStep) {
  const ir::Schedule schedule = WithLargeData();
  for (const bool data_is_real : {false, true}) {
    Cluster cluster(4);
    const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
      const int stage = PlaceOf(schedule, its.world.rank()).stage;
      SummingWorkload workload(schedule.programs[stage], its.world.rank());
      absl::Status made =
          Runtime::Create(schedule, its.world, its.device, its.ranks,
                          data_is_real ? static_cast<Workload*>(&workload) : nullptr)
              .status();
      EXPECT_EQ(its.ranks.reserved, Bytes(data_is_real ? 0 : 9001 + 2 * 4));
      return made;
    });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(RuntimeTest, NamesTheOperationThatThereIsNoRoomFor) {
  const ir::Schedule schedule = WithLargeData();
  Cluster cluster(4);
  const std::vector<absl::Status> statuses = OnAllRanks(cluster, [&](FakeRank& its) {
    its.ranks.most = Bytes(9000);
    return Runtime::Create(schedule, its.world, its.device, its.ranks, nullptr).status();
  });
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_EQ(std::string(status.message()), "gradient_sync all_gather: too large");
  }
}

TEST(PlaceTest, IsTheInverseOfRankOf) {
  const ir::Schedule schedule = ir::testing::ScheduleBuilder({3, 2, 4}, 2).Take();
  for (int stage = 0; stage < 2; ++stage) {
    for (int d = 0; d < 3; ++d) {
      for (int t = 0; t < 4; ++t) {
        const RankPlace place = PlaceOf(schedule, ir::RankOf(schedule.world, stage, d, t));
        EXPECT_EQ(place.stage, stage);
        EXPECT_EQ(place.d, d);
        EXPECT_EQ(place.t, t);
        EXPECT_EQ(place.program, stage * 2 + t / 2);
      }
    }
  }
}

}  // namespace
}  // namespace optimus::executor
