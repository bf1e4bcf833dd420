// Collectives over the pipeline are issued by different programs: all must issue the same ones in
// the same order. (Members of other groups run one program and agree by construction.)

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

std::vector<std::vector<OperationRef>> IssuedByGroup(const Schedule& schedule, std::size_t p) {
  std::vector<std::vector<OperationRef>> issued(schedule.groups.size());
  const std::vector<Operation>& operations = schedule.programs[p].operations;
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    if (operations[id].kind != OperationKind::kCollective) continue;
    const std::int32_t group = schedule.collectives[operations[id].work].group;
    if (!schedule.groups[group].over_pp) continue;
    issued[group].push_back({static_cast<std::int32_t>(p), id});
  }
  return issued;
}

const CollectiveWork& WorkOf(const Schedule& schedule, OperationRef ref) {
  const Operation& op = schedule.programs[ref.program].operations[ref.operation];
  return schedule.collectives[op.work].work;
}

std::string Say(const Schedule& schedule, OperationRef ref) {
  const CollectiveWork& work = WorkOf(schedule, ref);
  return absl::StrCat(ToString(work.kind), " of ", work.bytes.value(), " bytes");
}

absl::Status Compare(const Schedule& schedule, const Group& group,
                     const std::vector<OperationRef>& first, const std::vector<OperationRef>& other,
                     std::size_t stage) {
  for (std::size_t k = 0; k < std::min(first.size(), other.size()); ++k) {
    const CollectiveWork& a = WorkOf(schedule, first[k]);
    const CollectiveWork& b = WorkOf(schedule, other[k]);
    if (a.kind == b.kind && a.bytes == b.bytes) continue;
    return OperationError(
        schedule, other[k], "work",
        absl::StrCat("is collective ", k + 1, " over group '", group.name, "', ",
                     Say(schedule, other[k]), ", but there ", NameOperation(schedule, first[k]),
                     " issues ", Say(schedule, first[k])),
        "members of a group issue the same collectives in the same order");
  }
  if (first.size() == other.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("group '", group.name, "': stage ", stage, " (rank ",
                   RankOf(schedule.world, static_cast<int>(stage), 0, 0), ") issues ", other.size(),
                   " collectives, stage 0 issues ", first.size(),
                   "; hint: every stage takes part in every collective over the pipeline"));
}

}  // namespace

absl::Status CheckCollectives(const Schedule& schedule) {
  const auto first = IssuedByGroup(schedule, 0);
  for (std::size_t p = 1; p < schedule.programs.size(); ++p) {
    const auto other = IssuedByGroup(schedule, p);
    for (std::size_t g = 0; g < schedule.groups.size(); ++g) {
      OPTIMUS_RETURN_IF_ERROR(Compare(schedule, schedule.groups[g], first[g], other[g], p));
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
