#include "executor/numerics/route.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor::numerics {
namespace {

// An operation, for messages about it.
struct Where {
  const ir::Program* program = nullptr;
  std::uint32_t operation = 0;
};

absl::Status NotOnTheWay(const ir::Schedule& schedule, const Where& where,
                         const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(
      "numerics: stage ", where.program->stage, ", operation ", where.operation, " (",
      ir::Describe(schedule, *where.program, where.operation), ") ", what,
      ", so that no single way leads through the model; use a schedule whose model chunks follow "
      "one another (a loop over the stages, a V), or run without --numerics"));
}

class RouteFinder {
 public:
  explicit RouteFinder(const ir::Schedule& schedule) : schedule_(schedule) {
    for (const ir::ModuleInfo& module : schedule.modules) {
      if (module.both_directions) ways_ = 2;
    }
  }

  absl::StatusOr<std::map<Stop, int>> Find() {
    for (const ir::Program& program : schedule_.programs) CollectStops(program);
    for (const ir::Program& program : schedule_.programs) {
      OPTIMUS_RETURN_IF_ERROR(FollowMessages(program));
    }
    if (ways_ == 1) TakeOver();
    return Walk();
  }

 private:
  // Encoder pipelines of their own are not on the way.
  bool IsOnTheWay(const ir::Operation& op) const {
    if (op.tag.phase != Phase::kForward) return false;
    if (op.tag.module == ir::kNoModule) return op.message >= 0;
    return op.tag.module < static_cast<int>(schedule_.modules.size()) &&
           schedule_.modules[op.tag.module].pipelines == 0;
  }
  static Stop StopOf(const ir::Program& program, const ir::Operation& op) {
    return {program.stage, std::max<int>(op.tag.chunk, 0)};
  }

  void CollectStops(const ir::Program& program) {
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      if (!IsOnTheWay(op)) continue;
      stops_.emplace(StopOf(program, op), Where{&program, id});
      if (op.kind == ir::OperationKind::kReceive) receivers_[op.message] = StopOf(program, op);
    }
  }

  absl::Status FollowMessages(const ir::Program& program) {
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      if (!IsOnTheWay(op) || op.kind != ir::OperationKind::kSend) continue;
      const auto to = receivers_.find(op.message);
      if (to == receivers_.end()) continue;  // ir::Validate has its say about that
      const Stop from = StopOf(program, op);
      const bool one_next = next_.emplace(from, to->second).first->second == to->second;
      const bool one_before = before_.emplace(to->second, from).first->second == from;
      if (one_next && one_before) continue;
      return NotOnTheWay(
          schedule_, {&program, id},
          absl::StrCat("goes from chunk ", from.chunk, " to chunk ", to->second.chunk, " of stage ",
                       to->second.stage, " beside another way"));
    }
    return absl::OkStatus();
  }

  void TakeOver() {
    for (const auto& [stop, where] : stops_) {
      const Stop behind = {stop.stage, stop.chunk + 1};
      if (next_.contains(stop) || before_.contains(behind) || !stops_.contains(behind)) continue;
      next_[stop] = behind;
      before_[behind] = stop;
    }
  }

  absl::StatusOr<std::map<Stop, int>> Walk() const {
    std::map<Stop, int> position;
    for (int way = 0; way < ways_; ++way) {
      const auto first = std::find_if(stops_.begin(), stops_.end(), [&](const auto& stop) {
        return !before_.contains(stop.first) && !position.contains(stop.first);
      });
      if (first == stops_.end()) break;
      Follow(first->first, position);
    }
    for (const auto& [stop, where] : stops_) {
      if (position.contains(stop)) continue;
      return NotOnTheWay(schedule_, where,
                         absl::StrCat("is of chunk ", stop.chunk, ", which nothing leads to"));
    }
    return position;
  }

  void Follow(Stop at, std::map<Stop, int>& position) const {
    for (int i = 0; position.emplace(at, i).second; ++i) {
      const auto next = next_.find(at);
      if (next == next_.end()) return;
      at = next->second;
    }
  }

  const ir::Schedule& schedule_;
  std::map<Stop, Where> stops_;             // with an operation of each
  std::map<std::int32_t, Stop> receivers_;  // by message
  std::map<Stop, Stop> next_, before_;
  int ways_ = 1;
};

}  // namespace

absl::StatusOr<Route> Route::Of(const ir::Schedule& schedule) {
  Route route;
  OPTIMUS_ASSIGN_OR_RETURN(route.position_, RouteFinder(schedule).Find());
  for (const auto& [stop, position] : route.position_) {
    route.virtual_stages_ = std::max(route.virtual_stages_, position + 1);
  }
  return route;
}

int Route::VirtualStageOf(const Stop& stop) const {
  const auto found = position_.find(stop);
  return found == position_.end() ? -1 : found->second;
}

}  // namespace optimus::executor::numerics
