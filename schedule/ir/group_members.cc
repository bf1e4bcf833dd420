#include "schedule/ir/group_members.h"

namespace optimus::ir {
namespace {

// Those of `size` coordinates that agree with `mine` modulo `stride`.
MemberRange Strided(std::int32_t mine, std::int32_t size, std::int32_t stride) {
  return {mine % stride, stride, size / stride};
}

// The block of `block` neighbours that `mine` is in.
MemberRange Block(std::int32_t mine, std::int32_t block) { return {mine - mine % block, 1, block}; }

MemberRange StagesOf(const Group& group, std::int32_t stage, std::int32_t pp) {
  if (!group.over_pp) return {stage, 1, 1};
  if (group.paired()) return {group.pp_pair[0], group.pp_pair[1] - group.pp_pair[0], 2};
  return group.pp_stride > 0 ? Strided(stage, pp, group.pp_stride) : MemberRange{0, 1, pp};
}

// Along the tensor-parallel axis, counted in units of `unit` ranks: 1, or the width of a lane (a
// block or stride is a multiple of it).
MemberRange AlongTensorAxis(const Group& group, std::int32_t mine, std::int32_t size,
                            std::int32_t unit) {
  if (!group.over_tp) return {mine, 1, 1};
  if (group.tp_block > 0) return Block(mine, group.tp_block / unit);
  if (group.tp_stride > 0) return Strided(mine, size, group.tp_stride / unit);
  return {0, 1, size};
}

GroupMembers Alone(const Schedule& schedule, int stage, int d, int t) {
  return {{stage, 1, 1}, {d, 1, 1}, {t, 1, 1}, {LaneOf(schedule, t), 1, 1}};
}

}  // namespace

bool HasPart(const Group& group, int stage) {
  return !group.paired() || stage == group.pp_pair[0] || stage == group.pp_pair[1];
}

GroupMembers FirstInstance(const Schedule& schedule, const Group& group) {
  return MembersOf(schedule, group, group.pp_pair[0], 0, 0);
}

GroupMembers MembersOf(const Schedule& schedule, const Group& group, int stage, int d, int t) {
  if (!HasPart(group, stage)) return Alone(schedule, stage, d, t);
  const Parallelism& world = schedule.world;
  GroupMembers members;
  members.stages = StagesOf(group, stage, world.pp);
  members.replicas = group.over_dp ? MemberRange{0, 1, world.dp} : MemberRange{d, 1, 1};
  members.tensor_ranks = AlongTensorAxis(group, t, world.tp, 1);
  members.lanes = AlongTensorAxis(group, LaneOf(schedule, t), schedule.lanes, LaneWidth(schedule));
  return members;
}

GroupMembers MembersOf(const Schedule& schedule, const Group& group, const Program& program) {
  return MembersOf(schedule, group, program.stage, 0, program.lane * LaneWidth(schedule));
}

std::vector<std::int32_t> ProgramsOf(const Schedule& schedule, const GroupMembers& members) {
  std::vector<std::int32_t> programs;
  programs.reserve(members.programs());
  for (std::int32_t i = 0; i < members.stages.count; ++i) {
    for (std::int32_t j = 0; j < members.lanes.count; ++j) {
      programs.push_back(ProgramIndex(schedule, members.stages[i], members.lanes[j]));
    }
  }
  return programs;
}

std::vector<std::int32_t> RanksOf(const Schedule& schedule, const GroupMembers& members) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(members.ranks());
  for (std::int32_t i = 0; i < members.stages.count; ++i) {
    for (std::int32_t j = 0; j < members.replicas.count; ++j) {
      for (std::int32_t k = 0; k < members.tensor_ranks.count; ++k) {
        ranks.push_back(RankOf(schedule.world, members.stages[i], members.replicas[j],
                               members.tensor_ranks[k]));
      }
    }
  }
  return ranks;
}

bool SpansPrograms(const Schedule& schedule, const Group& group) {
  return FirstInstance(schedule, group).programs() > 1;
}

}  // namespace optimus::ir
