// Collectives of groups that span programs (over the pipeline, over several lanes) are issued by
// different programs: all members of an instance must issue the same ones in the same order.
// (Members of other groups run one program and agree by construction.)

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

// The collectives of one program, by group and in order of issue; groups that do not span programs
// have none.
using Issued = std::vector<std::vector<OperationRef>>;

Issued IssuedByGroup(const Schedule& schedule, const std::vector<bool>& spans, std::int32_t p) {
  Issued issued(schedule.groups.size());
  const std::vector<Operation>& operations = schedule.programs[p].operations;
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    if (operations[id].kind != OperationKind::kCollective) continue;
    const std::int32_t group = schedule.collectives[operations[id].work].group;
    if (spans[group]) issued[group].push_back({p, id});
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

// Two members of one instance of a group: what the first and what the other issues.
struct Pair {
  const Group& group;
  std::int32_t first, other;
};

absl::Status CompareCounts(const Schedule& schedule, const Pair& pair, std::size_t first,
                           std::size_t other) {
  if (first == other) return absl::OkStatus();
  const bool whole_pipeline =
      schedule.lanes == 1 && pair.group.pp_stride == 0 && !pair.group.paired();
  return absl::InvalidArgumentError(absl::StrCat(
      "group '", pair.group.name, "': ", NameProgram(schedule, pair.other), " (rank ",
      FirstRankOf(schedule, schedule.programs[pair.other]), ") issues ", other, " collectives, ",
      NameProgram(schedule, pair.first), " issues ", first, "; hint: ",
      whole_pipeline ? "every stage takes part in every collective over the pipeline"
                     : "every member of a group takes part in each of its collectives"));
}

absl::Status Compare(const Schedule& schedule, const Pair& pair,
                     const std::vector<OperationRef>& first,
                     const std::vector<OperationRef>& other) {
  for (std::size_t k = 0; k < std::min(first.size(), other.size()); ++k) {
    const CollectiveWork& a = WorkOf(schedule, first[k]);
    const CollectiveWork& b = WorkOf(schedule, other[k]);
    if (a.kind == b.kind && a.bytes == b.bytes) continue;
    return OperationError(
        schedule, other[k], "work",
        absl::StrCat("is collective ", k + 1, " over group '", pair.group.name, "', ",
                     Say(schedule, other[k]), ", but there ", NameOperation(schedule, first[k]),
                     " issues ", Say(schedule, first[k])),
        "members of a group issue the same collectives in the same order");
  }
  return CompareCounts(schedule, pair, first.size(), other.size());
}

// What a program issues over a group that its stage has no part in.
absl::Status CheckPart(const Schedule& schedule, const Group& group, std::int32_t stage,
                       const std::vector<OperationRef>& issued) {
  if (issued.empty() || HasPart(group, stage)) return absl::OkStatus();
  return OperationError(
      schedule, issued.front(), "work",
      absl::StrCat("is a collective over group '", group.name, "', which is over stages ",
                   group.pp_pair[0], " and ", group.pp_pair[1]),
      "only stages of a group's pp_pair issue its collectives");
}

}  // namespace

absl::Status CheckCollectives(const Schedule& schedule) {
  std::vector<bool> spans;
  for (const Group& group : schedule.groups) spans.push_back(SpansPrograms(schedule, group));
  std::vector<Issued> issued;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const auto program = static_cast<std::int32_t>(p);
    issued.push_back(IssuedByGroup(schedule, spans, program));
    for (std::size_t g = 0; g < schedule.groups.size(); ++g) {
      if (!spans[g]) continue;
      const Group& group = schedule.groups[g];
      OPTIMUS_RETURN_IF_ERROR(CheckPart(schedule, group, schedule.programs[p].stage, issued[p][g]));
      const GroupMembers members = MembersOf(schedule, group, schedule.programs[p]);
      const std::int32_t first = ProgramIndex(schedule, members.stages[0], members.lanes[0]);
      if (first == program) continue;
      OPTIMUS_RETURN_IF_ERROR(
          Compare(schedule, {group, first, program}, issued[first][g], issued[p][g]));
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
