#include "schedule/ir/critical_path.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/stall_account.h"
#include "schedule/ir/step_length.h"
#include "schedule/ir/walk.h"

namespace optimus::ir {
namespace {

// Times of one program while it runs.
struct ProgramTimes {
  std::vector<Picoseconds> starts, ends;  // by operation id
  std::array<Picoseconds, kStreamCount> stream_ends{};
  std::vector<BubbleClass> causes;  // by entry of Program::dependencies
  StallAccount account;
};

// One run. The walk says in which order operations can go; this puts a start and an end on each.
class TimedRun {
 public:
  TimedRun(const Schedule& schedule, const CostModel& costs)
      : schedule_(schedule), costs_(costs), programs_(schedule.programs.size()) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      const std::size_t count = schedule.programs[p].operations.size();
      programs_[p].starts.resize(count);
      programs_[p].ends.resize(count);
      programs_[p].causes = ClassifyDependencies(schedule, schedule.programs[p]);
    }
    for (const Kernel& kernel : schedule.kernels) kernels_.push_back(costs.KernelTime(kernel));
    for (const Collective& c : schedule.collectives) {
      const GroupShape shape = ShapeOf(schedule, schedule.groups[c.group]);
      collectives_.push_back(UncontendedTime(costs, costs.CollectiveCost(c.work, shape)));
    }
  }

  void Visit(absl::Span<const OperationRef> members) {
    Picoseconds start;
    for (const OperationRef member : members) start = std::max(start, Ready(member));
    const Picoseconds end = start + Duration(members.front(), start);
    for (const OperationRef member : members) Record(member, start, end);
  }

  Timeline Finish() const;

 private:
  const Operation& At(OperationRef ref) const {
    return schedule_.programs[ref.program].operations[ref.operation];
  }
  Picoseconds Ready(OperationRef ref) const;
  Picoseconds Duration(OperationRef ref, Picoseconds start) const;
  void Record(OperationRef ref, Picoseconds start, Picoseconds end);
  void Account(OperationRef ref, Picoseconds start, Picoseconds end);

  const Schedule& schedule_;
  const CostModel& costs_;
  std::vector<ProgramTimes> programs_;
  std::vector<Picoseconds> kernels_, collectives_;           // by index of work
  absl::flat_hash_map<std::int32_t, Picoseconds> arrivals_;  // by message
};

Picoseconds TimedRun::Ready(OperationRef ref) const {
  const ProgramTimes& times = programs_[ref.program];
  const Operation& op = At(ref);
  Picoseconds ready = times.stream_ends[static_cast<std::size_t>(op.stream)];
  for (const std::uint32_t id : schedule_.programs[ref.program].DependenciesOf(op)) {
    ready = std::max(ready, times.ends[id]);
  }
  return ready;
}

Picoseconds TimedRun::Duration(OperationRef ref, Picoseconds start) const {
  const Operation& op = At(ref);
  switch (op.kind) {
    case OperationKind::kKernel:
      return kernels_[op.work];
    case OperationKind::kCollective:
      return collectives_[op.work];
    case OperationKind::kReceive:
      return std::max(arrivals_.at(op.message) - start, Picoseconds(0));
    case OperationKind::kSend:
      break;
  }
  const Transfer& transfer = schedule_.transfers[op.work];
  if (transfer.fixed > Picoseconds(0) || transfer.free()) return transfer.fixed;
  const Program& program = schedule_.programs[ref.program];
  const bool same_node = SameNode(schedule_, program.stage, op.peer_stage, 0,
                                  program.lane * LaneWidth(schedule_), op.peer_lane);
  return UncontendedTime(costs_, costs_.SendCost(transfer.bytes, same_node));
}

void TimedRun::Record(OperationRef ref, Picoseconds start, Picoseconds end) {
  Account(ref, start, end);
  ProgramTimes& times = programs_[ref.program];
  const Operation& op = At(ref);
  times.starts[ref.operation] = start;
  times.ends[ref.operation] = end;
  times.stream_ends[static_cast<std::size_t>(op.stream)] = end;
  if (op.kind == OperationKind::kSend) arrivals_[op.message] = end;
}

void TimedRun::Account(OperationRef ref, Picoseconds start, Picoseconds end) {
  ProgramTimes& times = programs_[ref.program];
  const Operation& op = At(ref);
  if (!IsCompute(op)) {
    times.account.OtherEnded(ref.operation, end, TailClass(schedule_, op));
    return;
  }
  const Program& program = schedule_.programs[ref.program];
  for (std::size_t i = op.first_dependency; i < op.first_dependency + op.dependency_count; ++i) {
    times.account.WaitUntil(times.ends[program.dependencies[i]], times.causes[i]);
  }
  times.account.Run(start, end, IsOptimizerCompute(op));
}

Timeline TimedRun::Finish() const {
  Timeline timeline;
  timeline.runner = "critical_path";
  for (const ProgramTimes& times : programs_) {
    for (const Picoseconds end : times.ends) timeline.step = std::max(timeline.step, end);
    timeline.operations += static_cast<std::int64_t>(times.ends.size());
  }
  timeline.spans.reserve(static_cast<std::size_t>(timeline.operations));
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const ProgramTimes& times = programs_[p];
    const Program& program = schedule_.programs[p];
    const std::int32_t rank = FirstRankOf(schedule_, program);
    timeline.entities.push_back({rank, program.stage, schedule_.world.dp * LaneWidth(schedule_),
                                 times.account.Finish(timeline.step), program.lane});
    for (std::uint32_t id = 0; id < times.ends.size(); ++id) {
      timeline.spans.push_back({rank, id, times.starts[id], times.ends[id]});
    }
  }
  return timeline;
}

}  // namespace

absl::StatusOr<Timeline> CriticalPathRunner::Run(const Schedule& schedule) {
  OPTIMUS_RETURN_IF_ERROR(CheckNodeSize(schedule, costs_));
  OPTIMUS_RETURN_IF_ERROR(CheckLength(schedule, costs_, /*largest_slow_down=*/1.0));
  TimedRun run(schedule, costs_);
  Walk walk(schedule);
  walk.Run([&](absl::Span<const OperationRef> members) { run.Visit(members); });
  if (!walk.complete()) {
    return absl::InternalError(
        absl::StrCat("critical-path runner: ", ExplainBlocked(schedule, walk),
                     "; hint: Validate refuses such a schedule"));
  }
  return run.Finish();
}

}  // namespace optimus::ir
