// The members of every group, against the definition of groups in schedule.h.

#include "schedule/ir/group_members.h"

#include <numeric>
#include <set>

#include "gtest/gtest.h"

namespace optimus::ir {
namespace {

// schedule.h: the ranks that agree on every axis that is false form a group; an axis that is true
// can be narrowed.
bool SameInstance(const Group& group, const std::array<int, 3>& a, const std::array<int, 3>& b) {
  const auto [stage, d, t] = a;
  const auto [other_stage, other_d, other_t] = b;
  if (!group.over_dp && d != other_d) return false;
  if (!group.over_pp && stage != other_stage) return false;
  if (!group.over_tp && t != other_t) return false;
  if (group.paired()) {  // a rank of another stage is alone
    const auto outside = [&pair = group.pp_pair](int s) { return s != pair[0] && s != pair[1]; };
    if (outside(stage) || outside(other_stage)) return a == b;
  }
  if (group.pp_stride > 0 && stage % group.pp_stride != other_stage % group.pp_stride) return false;
  if (group.tp_block > 0 && t / group.tp_block != other_t / group.tp_block) return false;
  return group.tp_stride == 0 || t % group.tp_stride == other_t % group.tp_stride;
}

std::vector<std::array<int, 3>> AllRanks(const Parallelism& world) {
  std::vector<std::array<int, 3>> ranks;
  for (int stage = 0; stage < world.pp; ++stage) {
    for (int d = 0; d < world.dp; ++d) {
      for (int t = 0; t < world.tp; ++t) ranks.push_back({stage, d, t});
    }
  }
  return ranks;
}

// The groups, and those over the pipeline again for every pair of stages.
std::vector<Group> WithPairs(std::vector<Group> groups, std::int32_t pp) {
  const std::size_t count = groups.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!groups[i].over_pp || groups[i].pp_stride > 0) continue;
    for (std::int32_t a = 0; a < pp; ++a) {
      for (std::int32_t b = a + 1; b < pp; ++b) {
        groups.push_back(groups[i]);
        groups.back().pp_pair = {a, b};
      }
    }
  }
  return groups;
}

// All groups that CheckTables allows.
std::vector<Group> AllGroups(const Schedule& schedule) {
  const Parallelism& world = schedule.world;
  const int width = LaneWidth(schedule);
  std::vector<Group> groups;
  for (int axes = 0; axes < 8; ++axes) {
    const Group group{"g", (axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
    for (int p = 0; p <= (group.over_pp ? world.pp : 0); ++p) {
      if (p > 0 && world.pp % p != 0) continue;
      for (int b = 0; b <= (group.over_tp ? world.tp : 0); b += width) {
        if (b > 0 && world.tp % b != 0) continue;
        for (const bool block : {false, true}) {
          groups.push_back(group);
          groups.back().pp_stride = p;
          (block ? groups.back().tp_block : groups.back().tp_stride) = b;
        }
      }
    }
  }
  return WithPairs(std::move(groups), world.pp);
}

void CheckInstance(const Schedule& schedule, const Group& group, const std::array<int, 3>& mine) {
  std::vector<std::int32_t> ranks;
  std::set<std::int32_t> programs;
  for (const std::array<int, 3>& other : AllRanks(schedule.world)) {
    if (!SameInstance(group, mine, other)) continue;
    const auto [stage, d, t] = other;
    ranks.push_back(RankOf(schedule.world, stage, d, t));
    programs.insert(ProgramIndex(schedule, stage, LaneOf(schedule, t)));
  }
  const auto [stage, d, t] = mine;
  const GroupMembers members = MembersOf(schedule, group, stage, d, t);
  EXPECT_EQ(RanksOf(schedule, members), ranks);
  const std::vector<std::int32_t> expected(programs.begin(), programs.end());
  EXPECT_EQ(ProgramsOf(schedule, members), expected);
  EXPECT_EQ(members.ranks(), static_cast<std::int32_t>(ranks.size()));
  if (HasPart(group, stage)) {
    EXPECT_EQ(members.programs() > 1, SpansPrograms(schedule, group));
    EXPECT_EQ(members.ranks(), FirstInstance(schedule, group).ranks());
  } else {
    EXPECT_EQ(members.ranks(), 1);
  }
  Program program;
  program.stage = stage;
  program.lane = LaneOf(schedule, t);
  EXPECT_EQ(ProgramsOf(schedule, MembersOf(schedule, group, program)), expected);
}

TEST(GroupMembers, AreThoseOfTheDefinition) {
  for (const Parallelism world : {Parallelism{1, 1, 1}, Parallelism{2, 4, 8}, Parallelism{3, 6, 4},
                                  Parallelism{1, 3, 6}, Parallelism{2, 1, 12}}) {
    for (const int lanes : {1, 2, 3, 4, 8}) {
      if (world.tp % lanes != 0) continue;
      Schedule schedule;
      schedule.world = world;
      schedule.lanes = lanes;
      for (const Group& group : AllGroups(schedule)) {
        SCOPED_TRACE(::testing::Message()
                     << "tp " << world.tp << " lanes " << lanes << " over " << group.over_dp
                     << group.over_pp << group.over_tp << " stride " << group.pp_stride << " block "
                     << group.tp_block << " tensor stride " << group.tp_stride << " pair "
                     << group.pp_pair[0] << " " << group.pp_pair[1]);
        for (const std::array<int, 3>& rank : AllRanks(world)) CheckInstance(schedule, group, rank);
      }
    }
  }
}

// Two encoder pipelines of TP 4 beside an LLM of TP 8, on the first and the third of four stages.
TEST(GroupMembers, AnEncodersGroups) {
  Schedule schedule;
  schedule.world = {3, 4, 8};
  schedule.lanes = 2;
  const Group tensor{"encoder tp", false, false, true, 0, 4, 0};
  EXPECT_EQ(RanksOf(schedule, MembersOf(schedule, tensor, 1, 2, 6)),
            (std::vector<std::int32_t>{44, 45, 46, 47}));
  EXPECT_FALSE(SpansPrograms(schedule, tensor));
  const Group data{"encoder dp", true, true, true, 2, 0, 4};
  EXPECT_EQ(ProgramsOf(schedule, MembersOf(schedule, data, 1, 2, 6)),
            (std::vector<std::int32_t>{2, 3, 6, 7}));
  EXPECT_EQ(RanksOf(schedule, MembersOf(schedule, data, 1, 2, 6)),
            (std::vector<std::int32_t>{26, 30, 34, 38, 42, 46, 74, 78, 82, 86, 90, 94}));
  EXPECT_TRUE(SpansPrograms(schedule, data));
}

// A tied embedding on the first of four stages and the head on the last, and the two copies of what
// stages 1 and 2 hold.
TEST(GroupMembers, APairOfStages) {
  Schedule schedule;
  schedule.world = {3, 4, 2};
  Group tied{"tied", false, true, false};
  tied.pp_pair = {0, 3};
  EXPECT_EQ(RanksOf(schedule, MembersOf(schedule, tied, 3, 2, 1)),
            (std::vector<std::int32_t>{5, 23}));
  EXPECT_EQ(RanksOf(schedule, MembersOf(schedule, tied, 1, 2, 1)), std::vector<std::int32_t>{11});
  EXPECT_TRUE(HasPart(tied, 0));
  EXPECT_FALSE(HasPart(tied, 1));
  Group copies{"copies", true, true, false};
  copies.pp_pair = {1, 2};
  EXPECT_EQ(RanksOf(schedule, MembersOf(schedule, copies, 2, 0, 1)),
            (std::vector<std::int32_t>{7, 9, 11, 13, 15, 17}));
  EXPECT_EQ(ProgramsOf(schedule, FirstInstance(schedule, copies)),
            (std::vector<std::int32_t>{1, 2}));
}

}  // namespace
}  // namespace optimus::ir
