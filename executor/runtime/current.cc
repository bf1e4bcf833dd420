#include "executor/runtime/current.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/runtime/rank_numbers.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor {
CurrentOperations::CurrentOperations(const ir::Schedule& schedule, const Plan& plan,
                                     const Device& device)
    : schedule_(schedule), plan_(plan), device_(device) {
  for (std::uint32_t id = 0; id < plan.operations.size(); ++id) {
    streams_[static_cast<std::size_t>(plan.operations[id].stream)].push_back(id);
  }
}

void CurrentOperations::Start(int step) {
  step_ = step;
  done_.fill(0);
  running_ = true;
}

void CurrentOperations::Stop() { running_ = false; }

void CurrentOperations::Advance() const {
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    while (done_[s] < streams_[s].size() && device_.HasHappened(EndEvent(streams_[s][done_[s]]))) {
      ++done_[s];
    }
  }
}

std::vector<StreamState> CurrentOperations::States() const {
  std::vector<StreamState> states;
  if (!running_) return states;
  Advance();
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (done_[s] == streams_[s].size()) continue;
    StreamState state;
    state.stream = static_cast<ir::Stream>(s);
    state.operation = streams_[s][done_[s]];
    state.begun = device_.HasHappened(BeginEvent(state.operation));
    const ir::Operation& op = program().operations[state.operation];
    for (const std::uint32_t dependency : program().DependenciesOf(op)) {
      if (state.begun || device_.HasHappened(EndEvent(dependency))) continue;
      state.waits_for.push_back(dependency);
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::int64_t CurrentOperations::ended() const {
  if (!running_) return 0;
  Advance();
  std::int64_t ended = 0;
  for (const std::size_t done : done_) ended += static_cast<std::int64_t>(done);
  return ended;
}

std::string CurrentOperations::Name(std::uint32_t operation) const {
  return absl::StrCat(ir::Describe(schedule_, program(), operation), " (operation ", operation,
                      ")");
}

// What an operation that has begun is about.
std::string CurrentOperations::Doing(std::uint32_t operation) const {
  const PlannedOperation& op = plan_.operations[operation];
  switch (op.kind) {
    case ir::OperationKind::kKernel:
      return "runs";
    case ir::OperationKind::kSend:
      return absl::StrCat("is on its way to rank ", op.peer);
    case ir::OperationKind::kReceive:
      return absl::StrCat("waits for rank ", op.peer);
    case ir::OperationKind::kCollective:
      break;
  }
  const ir::Group& group = schedule_.groups[schedule_.collectives[op.work].group];
  const RankPlace& place = plan_.place;
  return absl::StrCat(
      "is in its collective of ranks ",
      RankNumbers(
          ir::RanksOf(schedule_, ir::MembersOf(schedule_, group, place.stage, place.d, place.t))));
}

std::string CurrentOperations::Line(const StreamState& state) const {
  std::string line = absl::StrCat(ir::ToString(state.stream), ": ", Name(state.operation), " ");
  if (state.begun) return line + Doing(state.operation);
  if (state.waits_for.empty()) return line + "is about to begin";
  absl::StrAppend(&line, "waits for ", Name(state.waits_for.front()));
  if (state.waits_for.size() > 1) {
    absl::StrAppend(&line, " and ", state.waits_for.size() - 1, " more");
  }
  return line;
}

// What a stream waits for within the rank is in the end something that has begun on another one,
// which is shown; so the waiting ones, except for compute's, are left out where they are many.
std::string CurrentOperations::Describe() const {
  constexpr std::ptrdiff_t kShown = 3;
  const std::vector<StreamState> states = States();
  if (states.empty()) return "";
  const auto tells = [](const StreamState& state) {
    return state.begun || state.waits_for.empty() || state.stream == ir::Stream::kCompute;
  };
  std::ptrdiff_t room = kShown - std::count_if(states.begin(), states.end(), tells);
  int left_out = 0;
  std::vector<std::string> lines;
  for (const StreamState& state : states) {
    if (tells(state) || room-- > 0) {
      lines.push_back(Line(state));
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) lines.push_back(absl::StrCat(left_out, " more wait for these"));
  return absl::StrCat("step ", step_, ": ", absl::StrJoin(lines, "; "));
}

}  // namespace optimus::executor
