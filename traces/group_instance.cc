#include "traces/group_instance.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedule/ir/group_members.h"

namespace optimus::traces {
namespace {

ir::GroupMembers Members(const ir::Schedule& schedule, const ir::Group& group, const Place& place) {
  return ir::MembersOf(schedule, group, place.stage, place.replica, place.tensor_rank);
}

// Adds "stage 3", "stages 0 and 7", "stages 1, 5, ...", "tensor ranks 4 to 7", or nothing where all
// `size` coordinates of the axis are members.
void AddAxis(const char* one, const char* many, const ir::MemberRange& range, std::int32_t size,
             std::vector<std::string>& out) {
  if (range.count == size) return;
  const std::int32_t last = range[range.count - 1];
  if (range.count == 1) {
    out.push_back(absl::StrCat(one, " ", range.first));
  } else if (range.count == 2) {
    out.push_back(absl::StrCat(many, " ", range.first, " and ", last));
  } else if (range.step == 1) {
    out.push_back(absl::StrCat(many, " ", range.first, " to ", last));
  } else {
    out.push_back(absl::StrCat(many, " ", range.first, ", ", range[1], " to ", last));
  }
}

std::string NameOf(const ir::Schedule& schedule, const ir::Group& group,
                   const ir::GroupMembers& members) {
  std::vector<std::string> place;
  AddAxis("stage", "stages", members.stages, schedule.world.pp, place);
  AddAxis("replica", "replicas", members.replicas, schedule.world.dp, place);
  AddAxis("tensor rank", "tensor ranks", members.tensor_ranks, schedule.world.tp, place);
  return absl::StrCat(group.name, place.empty() ? "" : " of ", absl::StrJoin(place, ", "));
}

const char* RoleOfAxes(const ir::Schedule& schedule, const ir::Group& group,
                       const ir::GroupMembers& members) {
  if (members.ranks() == schedule.world.gpus() && members.ranks() > 1) return "world";
  if (group.over_dp || group.pp_stride > 0 || group.tp_stride > 0) return "dp";
  if (group.over_pp) return "pp";
  return group.over_tp ? "tp" : "";
}

}  // namespace

Place PlaceOf(const ir::Parallelism& world, std::int32_t rank) {
  return {rank / world.tp / world.dp, rank / world.tp % world.dp, rank % world.tp};
}

Instance InstanceAt(const ir::Schedule& schedule, const ir::Group& group, const Place& place) {
  const ir::GroupMembers members = Members(schedule, group, place);
  return {ir::RankOf(schedule.world, members.stages.first, members.replicas.first,
                     members.tensor_ranks.first),
          members.ranks()};
}

CommunicatorGroup GroupAt(const ir::Schedule& schedule, const ir::Group& group,
                          const Place& place) {
  const ir::GroupMembers members = Members(schedule, group, place);
  CommunicatorGroup instance;
  instance.name = NameOf(schedule, group, members);
  instance.description = group.name;
  instance.role = RoleOfAxes(schedule, group, members);
  instance.ranks = ir::RanksOf(schedule, members);
  instance.size = members.ranks();
  return instance;
}

}  // namespace optimus::traces
