#pragma once
// Who is in a group: the ranks, and the programs, that form the instance of a Group that a given
// rank belongs to. Shared by whatever matches collectives (the walk) or prices and runs them.

#include <cstdint>
#include <vector>

#include "schedule/ir/schedule.h"

namespace optimus::ir {

// The coordinates first, first + step, ...: `count` of them, ascending.
struct MemberRange {
  std::int32_t first = 0;
  std::int32_t step = 1;
  std::int32_t count = 1;
  std::int32_t operator[](std::int32_t i) const { return first + i * step; }
  friend bool operator==(const MemberRange&, const MemberRange&) = default;
};

// One instance of a group: the ranks (stage, d, t) for all combinations of the first three. They
// run the programs (stage, lane) for all combinations of `stages` and `lanes`.
struct GroupMembers {
  MemberRange stages, replicas, tensor_ranks;
  MemberRange lanes;
  std::int32_t ranks() const { return stages.count * replicas.count * tensor_ranks.count; }
  std::int32_t programs() const { return stages.count * lanes.count; }
  friend bool operator==(const GroupMembers&, const GroupMembers&) = default;
};

// False for the stages outside a group's pp_pair: their ranks are in no instance of it.
bool HasPart(const Group& group, int stage);

// The instance that rank (stage, d, t) is in; a rank that has no part in the group is alone. All
// instances of a group have the same numbers of members. The Schedule's world, lanes and groups
// must be valid (CheckTables); its programs are not looked at.
GroupMembers MembersOf(const Schedule& schedule, const Group& group, int stage, int d, int t);

// The same from a program: the instance of the first rank that runs it (replica 0). The instances
// of all other ranks that run it have the same stages and lanes.
GroupMembers MembersOf(const Schedule& schedule, const Group& group, const Program& program);

// The instance with the lowest rank.
GroupMembers FirstInstance(const Schedule& schedule, const Group& group);

// Indices into Schedule::programs of the members' programs, ascending: by stage, then lane.
std::vector<std::int32_t> ProgramsOf(const Schedule& schedule, const GroupMembers& members);
// Global ranks of the members, ascending.
std::vector<std::int32_t> RanksOf(const Schedule& schedule, const GroupMembers& members);

// True if an instance of the group has members in more than one program: then its collectives are
// matched between programs. The members of other groups run one program and agree by construction.
bool SpansPrograms(const Schedule& schedule, const Group& group);

}  // namespace optimus::ir
