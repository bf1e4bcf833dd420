// Lanes, groups over part of the pipeline or of the tensor-parallel ranks, and messages between
// lanes: what is refused, and deadlocks that close over lanes.

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::PhaseTag;
using testing::RandomSchedule;
using testing::ScheduleBuilder;

std::string Refusal(const Schedule& schedule) {
  const absl::Status status = Validate(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("\n")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; hint: "));
  return std::string(status.message());
}

// Four stages of 8 tensor-parallel ranks in 4 lanes of 2.
ScheduleBuilder Builder() { return ScheduleBuilder({2, 4, 8}, 4); }

TEST(ValidateLanes, TheyDivideTheTensorParallelRanks) {
  Schedule schedule = Builder().Take();
  EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  schedule.lanes = 3;
  EXPECT_THAT(Refusal(schedule), HasSubstr("lanes: 3 lanes do not divide the 8 tensor-parallel"));
  for (const std::int32_t lanes : {0, -4}) {
    schedule.lanes = lanes;
    EXPECT_THAT(Refusal(schedule), HasSubstr(absl::StrCat("lanes: ", lanes, " is too small")));
  }
  schedule.lanes = 2;
  EXPECT_THAT(Refusal(schedule), HasSubstr("programs: 16 programs for 4 pipeline stages (world.pp) "
                                           "of 2 lanes; hint: one program per stage and lane"));
  schedule.lanes = 1;
  EXPECT_THAT(Refusal(schedule), HasSubstr("programs: 16 programs for 4 pipeline stages (world.pp)"
                                           "; hint: one program per stage"));
}

TEST(ValidateLanes, ProgramsAreOrderedByStageThenLane) {
  Schedule schedule = Builder().Take();
  std::swap(schedule.programs[5], schedule.programs[6]);
  EXPECT_THAT(Refusal(schedule), HasSubstr("programs[5].lane: is 2, not 1; hint: programs are "
                                           "ordered by stage, then lane"));
  schedule = Builder().Take();
  schedule.programs[4].stage = 0;
  EXPECT_THAT(Refusal(schedule), HasSubstr("programs[4].stage: is 0, not 1"));
  // A lane where there is only one.
  schedule = testing::OneForwardOneBackward(2, 1, 1, 2, 0);
  schedule.programs[1].lane = 1;
  EXPECT_THAT(Refusal(schedule), HasSubstr("programs[1].lane: is 1, not 0"));
}

TEST(ValidateGroups, ExtentsFitTheWorld) {
  const auto refusal = [](const Group& group) {
    ScheduleBuilder builder = Builder();
    builder.AddGroup("dp", true, false, false);
    builder.AddGroup(group);
    return Refusal(builder.Take());
  };
  EXPECT_THAT(refusal({"g", false, true, false, 3, 0, 0}),
              HasSubstr("groups[1] ('g').pp_stride: 3 does not divide the 4 pipeline stages"));
  EXPECT_THAT(refusal({"g", false, true, false, -1, 0, 0}),
              HasSubstr("pp_stride: -1 is too small"));
  EXPECT_THAT(
      refusal({"g", true, false, true, 2, 0, 0}),
      HasSubstr("pp_stride: narrows an axis that the group is not over; hint: set over_pp"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, 3, 0}),
              HasSubstr("tp_block: 3 does not fit tp 8 in 4 lanes; hint: a multiple of a lane's 2 "
                        "ranks that divides tp"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, 1, 0}), HasSubstr("tp_block: 1 does not fit"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, 6, 0}), HasSubstr("tp_block: 6 does not fit"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, 0, 16}),
              HasSubstr("tp_stride: 16 does not fit"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, -2, 0}), HasSubstr("tp_block: -2 is too small"));
  EXPECT_THAT(refusal({"g", true, false, false, 0, 4, 0}),
              HasSubstr("tp_block: narrows an axis that the group is not over; hint: set over_tp"));
  EXPECT_THAT(refusal({"g", true, false, false, 0, 0, 4}),
              HasSubstr("tp_stride: narrows an axis that the group is not over"));
  EXPECT_THAT(refusal({"g", false, false, true, 0, 4, 4}),
              HasSubstr("tp_stride: is set together with tp_block"));
  ScheduleBuilder builder = Builder();
  builder.AddGroup(Group{"g", true, true, true, 2, 0, 4});
  builder.AddGroup(Group{"g", false, false, true, 0, 8, 0});
  EXPECT_TRUE(Validate(builder.schedule()).ok()) << Validate(builder.schedule());
}

TEST(ValidateGroups, APairIsTwoStagesOfThePipeline) {
  const auto refusal = [](std::array<std::int32_t, 2> pair, bool over_pp, std::int32_t stride) {
    ScheduleBuilder builder = Builder();
    Group group{"g", true, over_pp, false, stride, 0, 0};
    group.pp_pair = pair;
    builder.AddGroup(group);
    return Refusal(builder.Take());
  };
  const auto no_pair = [](int a, int b) {
    return HasSubstr(absl::StrCat("groups[0] ('g').pp_pair: stages ", a, " and ", b,
                                  " are not a pair of the 4 pipeline stages; hint: two stages "
                                  "below world.pp, ascending"));
  };
  EXPECT_THAT(refusal({2, 2}, true, 0), no_pair(2, 2));
  EXPECT_THAT(refusal({2, 1}, true, 0), no_pair(2, 1));
  EXPECT_THAT(refusal({1, 4}, true, 0), no_pair(1, 4));
  EXPECT_THAT(refusal({-1, 2}, true, 0), no_pair(-1, 2));
  EXPECT_THAT(refusal({0, 3}, false, 0),
              HasSubstr("pp_pair: narrows an axis that the group is not over; hint: set over_pp"));
  EXPECT_THAT(refusal({0, 3}, true, 2), HasSubstr("pp_pair: is set together with pp_stride"));
}

// Only the pair takes part, and both of it do.
TEST(ValidateGroups, OnlyAPairIssuesItsCollectives) {
  const auto issued_by = [](const std::vector<int>& stages) {
    ScheduleBuilder builder({2, 4, 1});
    Group group{"tied", false, true, false};
    group.pp_pair = {0, 3};
    const std::int32_t work =
        builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, builder.AddGroup(group));
    for (const int stage : stages) {
      builder.AddCollective(stage, Stream::kDataParallel, PhaseTag(Phase::kGradientSync), work);
    }
    return builder.Take();
  };
  EXPECT_TRUE(Validate(issued_by({0, 3})).ok()) << Validate(issued_by({0, 3}));
  EXPECT_THAT(Refusal(issued_by({0, 1, 3})),
              HasSubstr("stage 1 (rank 2), operation 0 (gradient_sync all_reduce): work: is a "
                        "collective over group 'tied', which is over stages 0 and 3; hint: only "
                        "stages of a group's pp_pair issue its collectives"));
  EXPECT_THAT(Refusal(issued_by({0})),
              HasSubstr("group 'tied': stage 3 (rank 6) issues 0 collectives, stage "
                        "0 issues 1; hint: every member of a group takes part"));
}

TEST(ValidateModules, PipelinesFitTheWorld) {
  const auto refusal = [](std::int32_t pipelines, std::int32_t tensor_parallel,
                          std::vector<std::int32_t> skipped) {
    Schedule schedule = Builder().Take();
    schedule.micro_batches = 4;
    schedule.modules = {{"vit", 1, false, pipelines, tensor_parallel, std::move(skipped)}};
    return Refusal(schedule);
  };
  const auto fits = HasSubstr("module 'vit': no operation belongs to it");  // the next check
  for (const auto& [pipelines, tensor_parallel] :
       {std::pair{0, 0}, {0, 8}, {1, 0}, {4, 8}, {2, 4}, {8, 4}, {4, 2}, {16, 2}}) {
    EXPECT_THAT(refusal(pipelines, tensor_parallel, {}), fits);
  }
  EXPECT_THAT(refusal(-1, 0, {}), HasSubstr("modules[0] ('vit').pipelines: -1 is too small"));
  EXPECT_THAT(refusal(1, 4, {}), HasSubstr("pipelines: 1 do not share 4 stages with 2 blocks"));
  EXPECT_THAT(refusal(6, 4, {}), HasSubstr("pipelines: 6 do not share 4 stages with 2 blocks"));
  EXPECT_THAT(refusal(8, 8, {}), HasSubstr("pipelines: 8 do not share 4 stages with 1 blocks"));
  EXPECT_THAT(refusal(4, 1, {}), HasSubstr("tensor_parallel: 1 does not fit tp 8 in 4 lanes"));
  EXPECT_THAT(refusal(0, 4, {}), HasSubstr("tensor_parallel: 4 of 8 ranks, but the module has no "
                                           "pipelines"));
  EXPECT_THAT(refusal(0, 0, {4}), HasSubstr("skipped_micro_batches: 4 is out of range"));
  EXPECT_THAT(refusal(0, 0, {-1}), HasSubstr("skipped_micro_batches: -1 is out of range"));
  EXPECT_THAT(refusal(0, 0, {1, 1}), HasSubstr("skipped_micro_batches: 1 is out of range, twice"));
  EXPECT_THAT(refusal(0, 0, {2, 0}), HasSubstr("skipped_micro_batches: 0 is out of range, twice"));
  EXPECT_THAT(refusal(0, 0, {0, 3}), fits);
}

TEST(ValidateLanes, EncoderStreams) {
  const auto with = [](OperationKind kind, Stream stream) {
    ScheduleBuilder builder = Builder();
    const auto edge = builder.AddTransfer("embeddings", 8, 0);
    builder.AddCollectiveWork(CollectiveKind::kAllGather, 8,
                              builder.AddGroup(Group{"g", false, false, true, 0, 2, 0}));
    builder.FixedKernel(1);
    builder.AddSend(0, Stream::kEncoderSend, 0, 0, edge, {}, 1);
    builder.AddReceive(1, Stream::kEncoderReceive, 0, 0, edge, {}, 0);
    Operation op;
    op.kind = kind;
    op.stream = stream;
    op.work = 0;
    builder.Add(0, op, {});
    return builder.Take();
  };
  const auto accepted = with(OperationKind::kCollective, Stream::kEncoderCommunication);
  EXPECT_TRUE(Validate(accepted).ok()) << Validate(accepted);
  for (const OperationKind kind :
       {OperationKind::kKernel, OperationKind::kCollective, OperationKind::kReceive}) {
    EXPECT_THAT(Refusal(with(kind, Stream::kEncoderSend)),
                HasSubstr("cannot be on the encoder_send stream"));
  }
  for (const OperationKind kind :
       {OperationKind::kKernel, OperationKind::kCollective, OperationKind::kSend}) {
    EXPECT_THAT(Refusal(with(kind, Stream::kEncoderReceive)),
                HasSubstr("cannot be on the encoder_receive stream"));
  }
}

// A send of stage 1 lane 2 to stage 3 lane 0.
Schedule Message(std::int32_t to_stage, std::int32_t to_lane, std::int32_t from_stage,
                 std::int32_t from_lane) {
  ScheduleBuilder builder = Builder();
  const auto edge = builder.AddTransfer("embeddings", 8, 0);
  builder.AddSend(builder.At(1, 2), Stream::kEncoderSend, to_stage, 0, edge, {}, to_lane);
  builder.AddReceive(builder.At(3, 0), Stream::kEncoderReceive, from_stage, 0, edge, {}, from_lane);
  return builder.Take();
}

TEST(ValidateLanes, BothEndsOfAMessageNameStageAndLane) {
  EXPECT_TRUE(Validate(Message(3, 0, 1, 2)).ok()) << Validate(Message(3, 0, 1, 2));
  EXPECT_THAT(
      Refusal(Message(3, 1, 1, 2)),
      HasSubstr("stage 1 lane 2 (rank 20), operation 0 (backward send embeddings to stage 3 "
                "lane 1): peer_lane: message 0 is received by stage 3 lane 0 (rank 48), "
                "operation 0"));
  EXPECT_THAT(Refusal(Message(2, 0, 1, 2)),
              HasSubstr("peer_stage: message 0 is received by stage 3 "
                        "lane 0 (rank 48)"));
  // -1: the own lane.
  EXPECT_THAT(Refusal(Message(3, -1, 1, 2)), HasSubstr("peer_lane: message 0 is received by"));
  EXPECT_THAT(Refusal(Message(3, 0, 1, -1)),
              AllOf(HasSubstr("stage 3 lane 0 (rank 48), operation 0"),
                    HasSubstr("peer_lane: message 0 is sent by stage 1 lane 2 (rank 20)")));
  EXPECT_THAT(Refusal(Message(3, 4, 1, 2)), HasSubstr("peer_lane: 4 is out of range; hint: there "
                                                      "are 4 lanes"));
  EXPECT_THAT(Refusal(Message(3, -2, 1, 2)), HasSubstr("peer_lane: -2 is out of range"));
  EXPECT_THAT(Refusal(Message(1, 2, 1, 2)),
              HasSubstr("peer_stage: with peer_lane is its own stage and lane"));
  EXPECT_THAT(Refusal(Message(1, -1, 1, 2)), HasSubstr("is its own stage and lane"));
}

TEST(ValidateLanes, AMessageWithoutItsOtherEnd) {
  ScheduleBuilder builder = Builder();
  builder.AddSend(builder.At(1, 2), Stream::kEncoderSend, 1, 0, builder.AddTransfer("e", 8, 0), {},
                  3);
  EXPECT_THAT(Refusal(builder.Take()), HasSubstr("stage 1 lane 3 needs a receive for it"));
}

// The members of one instance agree; those of different instances need not.
TEST(ValidateLanes, MembersOfAnInstanceAgree) {
  const auto make = [](const Group& group, const std::vector<std::pair<int, int>>& programs) {
    ScheduleBuilder builder = Builder();
    const auto work =
        builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4, builder.AddGroup(group));
    for (const auto& [stage, lane] : programs) {
      builder.AddCollective(builder.At(stage, lane), Stream::kDataParallel,
                            PhaseTag(Phase::kGradientSync), work);
    }
    return builder.Take();
  };
  const Group tensor{"tp", false, false, true, 0, 0, 0};
  EXPECT_TRUE(Validate(make(tensor, {{2, 0}, {2, 1}, {2, 2}, {2, 3}})).ok());
  EXPECT_THAT(Refusal(make(tensor, {{2, 0}, {2, 2}, {2, 3}})),
              HasSubstr("group 'tp': stage 2 lane 1 (rank 34) issues 0 collectives, stage 2 lane 0 "
                        "issues 1; hint: every member of a group takes part"));
  const Group block{"block", false, false, true, 0, 4, 0};
  EXPECT_TRUE(Validate(make(block, {{2, 2}, {2, 3}})).ok());
  EXPECT_THAT(Refusal(make(block, {{2, 1}, {2, 2}})), HasSubstr("stage 2 lane 1 (rank 34) issues 1 "
                                                                "collectives, stage 2 lane 0"));
  const Group layers{"same layers", true, true, true, 2, 0, 4};
  EXPECT_TRUE(Validate(make(layers, {{1, 1}, {1, 3}, {3, 1}, {3, 3}})).ok());
  EXPECT_THAT(Refusal(make(layers, {{1, 1}, {1, 3}, {2, 1}, {3, 3}})),
              HasSubstr("stage 2 lane 1 (rank 34) issues 1 collectives, stage 0 lane 1"));
  const Group alone{"alone", true, false, true, 0, 2, 0};  // one lane: one program
  EXPECT_TRUE(Validate(make(alone, {{2, 1}})).ok());
}

TEST(ValidateLanes, MembersIssueTheSameWork) {
  ScheduleBuilder builder = Builder();
  const auto group = builder.AddGroup(Group{"block", false, false, true, 0, 4, 0});
  const Tag tag = PhaseTag(Phase::kForward);
  builder.AddCollective(2, Stream::kEncoderCommunication, tag,
                        builder.AddCollectiveWork(CollectiveKind::kAllGather, 4, group));
  builder.AddCollective(3, Stream::kEncoderCommunication, tag,
                        builder.AddCollectiveWork(CollectiveKind::kAllGather, 8, group));
  EXPECT_THAT(
      Refusal(builder.Take()),
      HasSubstr("stage 0 lane 3 (rank 6), operation 0 (forward all_gather): work: is "
                "collective 1 over group 'block', all_gather of 8 bytes, but there stage 0 "
                "lane 2 (rank 4), operation 0 (forward all_gather) issues all_gather of 4"));
}

TEST(DeadlockOverLanes, CollectivesOfTwoGroupsInSwappedOrder) {
  ScheduleBuilder builder({1, 1, 2}, 2);
  const auto all = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4,
                                             builder.AddGroup("tp", false, false, true));
  const auto same = builder.AddCollectiveWork(
      CollectiveKind::kAllReduce, 8, builder.AddGroup(Group{"dp", true, true, true, 1, 0, 2}));
  const Tag tag = PhaseTag(Phase::kGradientSync);
  // Over `same` each lane is alone, so only the order over `all` and the message counts.
  builder.AddCollective(0, Stream::kDataParallel, tag, same);
  builder.AddCollective(0, Stream::kDataParallel, tag, all);
  builder.AddCollective(1, Stream::kDataParallel, tag, all);
  builder.AddCollective(1, Stream::kDataParallel, tag, same);
  EXPECT_TRUE(Validate(builder.schedule()).ok()) << Validate(builder.schedule());
  builder.schedule().groups[1].tp_stride = 0;  // now over both lanes
  EXPECT_EQ(Refusal(builder.schedule()),
            "schedule 'test': deadlock: "
            "stage 0 lane 0 (rank 0), operation 0 (gradient_sync all_reduce) waits for "
            "operation 1 (gradient_sync all_reduce) of stage 0 lane 1, queued behind operation 0; "
            "stage 0 lane 1 (rank 1), operation 0 (gradient_sync all_reduce) waits for "
            "operation 1 (gradient_sync all_reduce) of stage 0 lane 0, queued behind operation 0; "
            "hint: no order of execution meets these waits; reorder one of the streams");
}

TEST(DeadlockOverLanes, AMessageAndACollective) {
  ScheduleBuilder builder({1, 2, 4}, 2);
  const auto edge = builder.AddTransfer("embeddings", 8, 0);
  const auto tp = builder.AddCollectiveWork(CollectiveKind::kAllGather, 4,
                                            builder.AddGroup("tp", false, false, true));
  const Tag tag = PhaseTag(Phase::kForward);
  // Lane 0 gathers after the message of lane 1, which is sent after the gather.
  const auto receive = builder.AddReceive(0, Stream::kEncoderReceive, 0, 0, edge, {}, 1);
  builder.AddCollective(0, Stream::kTensorParallel, tag, tp, {receive});
  const auto gather = builder.AddCollective(1, Stream::kTensorParallel, tag, tp);
  builder.AddSend(1, Stream::kEncoderSend, 0, 0, edge, {gather}, 0);
  EXPECT_THAT(
      Refusal(builder.schedule()),
      AllOf(HasSubstr("deadlock: stage 0 lane 0 (rank 0), operation 0 (backward receive "
                      "embeddings from stage 0 lane 1) waits for operation 1 (backward send "
                      "embeddings to stage 0 lane 0) of stage 0 lane 1"),
            HasSubstr("stage 0 lane 1 (rank 2), operation 0 (forward all_gather) waits for "
                      "operation 1 (forward all_gather) of stage 0 lane 0")));
  builder.schedule().programs[1].operations[1].dependency_count = 0;
  EXPECT_TRUE(Validate(builder.schedule()).ok()) << Validate(builder.schedule());
}

// The slow twin: every operation is tried again and again until nothing can run any more.
class Exhaustive {
 public:
  explicit Exhaustive(const Schedule& schedule) : schedule_(schedule) {
    for (const Program& p : schedule.programs) done_.emplace_back(p.operations.size(), false);
  }

  bool CanFinish() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t p = 0; p < done_.size(); ++p) {
        for (std::size_t id = 0; id < done_[p].size(); ++id) progress |= Try(p, id);
      }
    }
    return std::all_of(done_.begin(), done_.end(), [](const std::vector<bool>& program) {
      return std::all_of(program.begin(), program.end(), [](bool d) { return d; });
    });
  }

 private:
  const Operation& At(std::size_t p, std::size_t id) const {
    return schedule_.programs[p].operations[id];
  }

  bool Ready(std::size_t p, std::size_t id) const {
    const Operation& op = At(p, id);
    for (std::size_t before = 0; before < id; ++before) {
      if (At(p, before).stream == op.stream && !done_[p][before]) return false;
    }
    for (const std::uint32_t d : schedule_.programs[p].DependenciesOf(op)) {
      if (!done_[p][d]) return false;
    }
    return op.kind != OperationKind::kReceive || sent_.count(op.message) > 0;
  }

  // How many collectives of its group come before it, and the operation that is as far elsewhere.
  std::size_t Index(std::size_t p, std::size_t id) const {
    return static_cast<std::size_t>(std::count_if(
        schedule_.programs[p].operations.begin(),
        schedule_.programs[p].operations.begin() + static_cast<std::ptrdiff_t>(id),
        [&](const Operation& op) {
          return op.kind == OperationKind::kCollective && GroupOf(op) == GroupOf(At(p, id));
        }));
  }
  std::size_t Nth(std::size_t p, std::int32_t group, std::size_t index) const {
    for (std::size_t id = 0;; ++id) {
      if (At(p, id).kind != OperationKind::kCollective || GroupOf(At(p, id)) != group) continue;
      if (index-- == 0) return id;
    }
  }
  std::int32_t GroupOf(const Operation& op) const { return schedule_.collectives[op.work].group; }

  bool Try(std::size_t p, std::size_t id) {
    if (done_[p][id] || !Ready(p, id)) return false;
    const Operation& op = At(p, id);
    if (op.kind != OperationKind::kCollective) {
      if (op.kind == OperationKind::kSend) sent_.insert(op.message);
      done_[p][id] = true;
      return true;
    }
    const Group& group = schedule_.groups[GroupOf(op)];
    const auto members = ProgramsOf(schedule_, MembersOf(schedule_, group, schedule_.programs[p]));
    const std::size_t index = Index(p, id);
    for (const std::int32_t m : members) {
      if (!Ready(m, Nth(m, GroupOf(op), index))) return false;
    }
    for (const std::int32_t m : members) done_[m][Nth(m, GroupOf(op), index)] = true;
    return true;
  }

  const Schedule& schedule_;
  std::vector<std::vector<bool>> done_;
  std::set<std::int32_t> sent_;
};

TEST(DeadlockOverLanes, AgreesWithExhaustiveExecution) {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    Schedule schedule = RandomSchedule(seed, /*encoders=*/true, /*pairs=*/seed % 3 == 0).Build(60);
    ASSERT_TRUE(Validate(schedule).ok()) << "seed " << seed << ": " << Validate(schedule);
    ASSERT_TRUE(Exhaustive(schedule).CanFinish());
    for (int swaps = 0; swaps < 3; ++swaps) {
      auto& operations = schedule.programs[random() % schedule.programs.size()].operations;
      if (operations.size() < 2) continue;
      const std::size_t at = random() % (operations.size() - 1);
      std::swap(operations[at], operations[std::min(at + 1 + random() % 4, operations.size() - 1)]);
    }
    const absl::Status status = Validate(schedule);
    const std::string text(status.message());
    const bool blocked = text.find("deadlock: ") != std::string::npos ||
                         text.find("dependency cycle: ") != std::string::npos;
    if (!status.ok() && !blocked) continue;  // refused for what it is, not for its order
    ASSERT_EQ(status.ok(), Exhaustive(schedule).CanFinish()) << "seed " << seed << ": " << status;
    ++(status.ok() ? accepted : refused);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

// The random Schedules have what they are for.
TEST(RandomSchedules, HaveLanesPartialGroupsAndEncoderMessages) {
  int lanes = 0, across_lanes = 0, encoder_messages = 0;
  std::set<std::pair<int, bool>> spanning;  // (group, over several programs)
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Schedule schedule =
        RandomSchedule(seed, /*encoders=*/true, /*pairs=*/seed % 3 == 0).Build(60);
    lanes += schedule.lanes > 1 ? 1 : 0;
    for (const Program& program : schedule.programs) {
      for (const Operation& op : program.operations) {
        across_lanes += op.peer_lane >= 0 ? 1 : 0;
        encoder_messages += op.stream == Stream::kEncoderSend ? 1 : 0;
        if (op.kind != OperationKind::kCollective) continue;
        const std::int32_t group = schedule.collectives[op.work].group;
        spanning.insert({group, SpansPrograms(schedule, schedule.groups[group])});
      }
    }
  }
  EXPECT_GT(lanes, 25);
  EXPECT_GT(across_lanes, 100);
  EXPECT_GT(encoder_messages, 100);
  for (const int group : {1, 4, 5, 6}) {
    EXPECT_TRUE(spanning.count({group, true}) > 0 && spanning.count({group, false}) > 0) << group;
  }
}

}  // namespace
}  // namespace optimus::ir
