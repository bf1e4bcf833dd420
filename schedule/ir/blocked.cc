#include "schedule/ir/blocked.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::ir {
namespace {

// The head of a stream, and the operation that it waits for.
struct Wait {
  OperationRef head;
  OperationRef awaited;  // program -1: nobody issues it
  std::string missing;   // what nobody issues
  bool dependency = false;
};

const Operation& At(const Schedule& schedule, OperationRef ref) {
  return schedule.programs[ref.program].operations[ref.operation];
}

Wait WaitForMessage(const Schedule& schedule, OperationRef head) {
  const std::int32_t message = At(schedule, head).message;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const auto& operations = schedule.programs[p].operations;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      if (operations[id].kind == OperationKind::kSend && operations[id].message == message) {
        return {head, {static_cast<std::int32_t>(p), id}, "", false};
      }
    }
  }
  return {head, {}, absl::StrCat("message ", message, ", which nobody sends"), false};
}

Wait WaitForMembers(const Schedule& schedule, const Walk& walk, OperationRef head) {
  const std::int32_t group = schedule.collectives[At(schedule, head).work].group;
  const std::size_t index = walk.IssueIndex(head);
  for (const std::int32_t program : walk.Members(group, head.program)) {
    const auto& issued = walk.Issued(group, program);
    if (index >= issued.size()) {
      return {head,
              {},
              absl::StrCat(NameProgram(schedule, program), ", which issues only ", issued.size(),
                           " collectives over group '", schedule.groups[group].name, "'"),
              false};
    }
    if (!walk.HasArrived({program, issued[index]})) {
      return {head, {program, issued[index]}, "", false};
    }
  }
  return {head, {}, "nothing: this is a bug", false};
}

Wait FindWait(const Schedule& schedule, const Walk& walk, OperationRef head) {
  const Operation& op = At(schedule, head);
  for (const std::uint32_t id : schedule.programs[head.program].DependenciesOf(op)) {
    if (!walk.Ended({head.program, id})) return {head, {head.program, id}, "", true};
  }
  if (op.kind == OperationKind::kReceive) return WaitForMessage(schedule, head);
  return WaitForMembers(schedule, walk, head);
}

OperationRef FirstBlocked(const Schedule& schedule, const Walk& walk) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const auto program = static_cast<std::int32_t>(p);
    for (int s = 0; s < kStreamCount; ++s) {
      if (const auto head = walk.Head(program, static_cast<Stream>(s))) return {program, *head};
    }
  }
  return {};
}

bool StartsEarlier(const Wait& a, const Wait& b) {
  return std::tie(a.head.program, a.head.operation) < std::tie(b.head.program, b.head.operation);
}

// Follows the waits until one closes a cycle or ends at something nobody issues. A cycle is
// returned without what led to it, from its lowest stage and operation on.
std::vector<Wait> FollowWaits(const Schedule& schedule, const Walk& walk) {
  std::vector<Wait> chain;
  OperationRef head = FirstBlocked(schedule, walk);
  while (true) {
    const auto seen = std::find_if(chain.begin(), chain.end(),
                                   [&](const Wait& wait) { return wait.head == head; });
    if (seen != chain.end()) {
      chain.erase(chain.begin(), seen);
      std::rotate(chain.begin(), std::min_element(chain.begin(), chain.end(), StartsEarlier),
                  chain.end());
      return chain;
    }
    chain.push_back(FindWait(schedule, walk, head));
    const OperationRef awaited = chain.back().awaited;
    if (awaited.program < 0) return chain;
    const auto next = walk.Head(awaited.program, At(schedule, awaited).stream);
    head = {awaited.program, next.value_or(awaited.operation)};
  }
}

std::string SayWait(const Schedule& schedule, const Walk& walk, const Wait& wait) {
  std::string line = absl::StrCat(NameOperation(schedule, wait.head), " waits for ");
  if (wait.awaited.program < 0) return line + wait.missing;
  absl::StrAppend(
      &line, "operation ", wait.awaited.operation, " (",
      Describe(schedule, schedule.programs[wait.awaited.program], wait.awaited.operation), ") of ",
      NameProgram(schedule, wait.awaited.program));
  const auto head = walk.Head(wait.awaited.program, At(schedule, wait.awaited).stream);
  if (head.has_value() && *head != wait.awaited.operation) {
    absl::StrAppend(&line, ", queued behind operation ", *head);
  }
  return line;
}

const char* Headline(const std::vector<Wait>& chain) {
  if (chain.back().awaited.program < 0) return "starved";
  const bool inside =
      std::all_of(chain.begin(), chain.end(), [](const Wait& wait) { return wait.dependency; });
  return inside ? "dependency cycle" : "deadlock";
}

}  // namespace

std::string NameProgram(const Schedule& schedule, std::int32_t program) {
  if (schedule.lanes == 1) return absl::StrCat("stage ", program);
  return absl::StrCat("stage ", program / schedule.lanes, " lane ", program % schedule.lanes);
}

std::string NameOperation(const Schedule& schedule, OperationRef ref) {
  const Program& program = schedule.programs[ref.program];
  return absl::StrCat(NameProgram(schedule, ref.program), " (rank ", FirstRankOf(schedule, program),
                      "), operation ", ref.operation, " (",
                      Describe(schedule, program, ref.operation), ")");
}

std::string ExplainBlocked(const Schedule& schedule, const Walk& walk) {
  const std::vector<Wait> chain = FollowWaits(schedule, walk);
  return absl::StrCat(Headline(chain), ": ",
                      absl::StrJoin(chain, "; ", [&](std::string* out, const Wait& wait) {
                        out->append(SayWait(schedule, walk, wait));
                      }));
}

}  // namespace optimus::ir
