#include "traces/replay/classes.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optimus::traces {
namespace {

constexpr char kCompute[] = "compute";
constexpr char kCopy[] = "copy";
constexpr char kHost[] = "host";

const std::string& GroupRole(const ReplayGraph& graph, const Communication& communication) {
  static const std::string none;
  if (communication.group < 0) return none;
  return graph.recording.groups[static_cast<std::size_t>(communication.group)].role;
}

std::string CommunicationClass(const ReplayGraph& graph, const Communication& communication) {
  if (communication.kind == CommunicationKind::kUnknown) return "unknown communication";
  // Both sides of a message that waits for its receive are one transfer.
  const bool both =
      IsPointToPoint(communication.kind) && graph.recording.messages == MessageRule::kRendezvous;
  const char* kind = ToString(both ? CommunicationKind::kSendReceive : communication.kind);
  const std::string& role = GroupRole(graph, communication);
  return role.empty() ? kind : absl::StrCat(role, " ", kind);
}

}  // namespace

std::string RoleOfTask(const ReplayGraph& graph, TaskId task) {
  const Communication* communication = graph.communication(task);
  if (communication == nullptr) return "";
  const std::string& role = GroupRole(graph, *communication);
  return role.empty() && IsPointToPoint(communication->kind) ? "pp" : role;
}

OpClasses ClassesOf(const ReplayGraph& graph) {
  // By (role, kind) once: there are few of them, and many operations.
  std::map<std::pair<std::string, CommunicationKind>, std::string> names;
  std::set<std::string> communications;
  const auto key = [&](const Communication& c) {
    return std::make_pair(GroupRole(graph, c), c.kind);
  };
  for (const RecordedRank& rank : graph.recording.ranks) {
    for (const Communication& communication : rank.communications) {
      std::string& name = names[key(communication)];
      if (name.empty()) name = CommunicationClass(graph, communication);
      communications.insert(name);
    }
  }
  OpClasses classes;
  std::map<std::string, std::int32_t> index;
  const auto add = [&](const std::string& name, OpKind kind) {
    index.emplace(name, static_cast<std::int32_t>(classes.names.size()));
    classes.names.push_back(name);
    classes.kinds.push_back(kind);
  };
  add(kCompute, OpKind::kCompute);
  for (const std::string& name : communications) add(name, OpKind::kCommunication);
  add(kCopy, OpKind::kCopy);
  add(kHost, OpKind::kHost);
  const std::int32_t copy = index.at(kCopy), host = index.at(kHost);
  classes.of_task.reserve(graph.tasks.size());
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    const OpKind kind = graph.op(task).kind;
    if (const Communication* c = graph.communication(task)) {
      classes.of_task.push_back(index.at(names.at(key(*c))));
    } else {
      classes.of_task.push_back(kind == OpKind::kCompute ? 0 : kind == OpKind::kCopy ? copy : host);
    }
  }
  return classes;
}

}  // namespace optimus::traces
