#include "executor/runtime/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "executor/runtime/runtime.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

// What a rank issues on each channel, in order: the how-many-th collective of its group each is.
using Sequences = std::map<std::int32_t, std::vector<std::size_t>>;

Sequences SequencesOf(const ir::Schedule& schedule, const Channels& channels, int program,
                      std::set<std::pair<std::int32_t, ir::Stream>>& streams) {
  Sequences sequences;
  std::map<std::int32_t, std::size_t> issued;  // by group
  const std::vector<ir::Operation>& operations = schedule.programs[program].operations;
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    if (operations[id].kind != ir::OperationKind::kCollective) continue;
    const std::int32_t channel = channels.channel_of[program][id];
    const std::int32_t group = schedule.collectives[operations[id].work].group;
    EXPECT_EQ(channels.channels[channel].group, group);
    sequences[channel].push_back(issued[group]++);
    streams.insert({channel, operations[id].stream});
  }
  return sequences;
}

TEST(ChannelsTest, MembersMeetInOneOrderAndUseOneStreamEach) {
  int split_groups = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const ir::Schedule schedule =
        ir::testing::RandomSchedule(seed, seed % 2 == 0, seed % 3 == 0).Build(80);
    const Channels channels = ChannelsOf(schedule);
    std::vector<Sequences> sequences;
    for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
      std::set<std::pair<std::int32_t, ir::Stream>> streams;
      sequences.push_back(SequencesOf(schedule, channels, static_cast<int>(p), streams));
      std::set<std::int32_t> seen;
      for (const auto& [channel, stream] : streams) {
        EXPECT_TRUE(seen.insert(channel).second) << "one stream a channel";
      }
    }
    for (std::size_t c = 0; c < channels.channels.size(); ++c) {
      const ir::Group& group = schedule.groups[channels.channels[c].group];
      split_groups += channels.channels[c].number > 0 ? 1 : 0;
      for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
        for (const std::int32_t other :
             ir::ProgramsOf(schedule, ir::MembersOf(schedule, group, schedule.programs[p]))) {
          EXPECT_EQ(sequences[p][static_cast<int>(c)], sequences[other][static_cast<int>(c)]);
        }
      }
    }
  }
  EXPECT_GT(split_groups, 10);
}

TEST(ChannelsTest, OneForEveryGroupAndStreamThatIsUsed) {
  ir::testing::ScheduleBuilder builder({2, 2, 2});
  const std::int32_t dp = builder.AddGroup("dp", true, false, false);
  const std::int32_t tp = builder.AddGroup("tp", false, false, true);
  builder.AddGroup("unused", true, true, true);
  const std::int32_t on_dp = builder.AddCollectiveWork(CollectiveKind::kAllGather, 8, dp);
  const std::int32_t on_tp = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, tp);
  const ir::Tag tag = ir::testing::PhaseTag(Phase::kForward);
  builder.AddCollective(0, ir::Stream::kTensorParallel, tag, on_tp);
  builder.AddCollective(0, ir::Stream::kEncoderCommunication, tag, on_tp);
  builder.AddCollective(0, ir::Stream::kTensorParallel, tag, on_tp);
  builder.AddCollective(1, ir::Stream::kTensorParallel, tag, on_tp);
  builder.AddCollective(1, ir::Stream::kDataParallel, tag, on_dp);
  const Channels channels = ChannelsOf(builder.schedule());
  std::vector<std::string> names;
  for (const Channel& channel : channels.channels) names.push_back(channel.name);
  EXPECT_THAT(names, ::testing::ElementsAre("dp", "tp", "tp #1"));
  EXPECT_THAT(channels.channel_of[0], ::testing::ElementsAre(1, 2, 1));
  EXPECT_THAT(channels.channel_of[1], ::testing::ElementsAre(1, 0));
}

TEST(ChannelsTest, AllMembersFindTheFirstMembersOperation) {
  ir::testing::ScheduleBuilder builder({1, 3, 1});
  const std::int32_t pp = builder.AddGroup("pp", false, true, false);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 8, pp);
  builder.AddKernel(0, ir::testing::PhaseTag(Phase::kForward), 1);
  for (int stage = 0; stage < 3; ++stage) {
    builder.AddCollective(stage, ir::Stream::kDataParallel,
                          ir::testing::MakeTag(-1, stage, -1, Phase::kGradientSync), work);
  }
  const Channels channels = ChannelsOf(builder.schedule());
  for (int stage = 0; stage < 3; ++stage) {
    const FirstMember& first = channels.first_of[stage].back();
    EXPECT_EQ(first.program, 0);
    EXPECT_EQ(first.operation, 1);
  }
}

}  // namespace
}  // namespace optimus::executor
