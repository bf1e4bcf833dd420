#include "sim/interpreter.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "schedule/ir/step_length.h"
#include "sim/fidelity.h"

namespace optimus::sim {
namespace {

constexpr auto kCompute = static_cast<unsigned>(ir::Stream::kCompute);
constexpr unsigned kAllStreams = (1U << ir::kStreamCount) - 1;

// The same expression wherever the two clocks are compared, so that it rounds the same.
double ToClock(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

bool RunsInLockstep(const ir::Schedule& schedule, const Options& options) {
  return WhyGroupIsNotExact(schedule, options).empty();
}

}  // namespace

Interpreter::Interpreter(simgrid::s4u::Engine& engine, const ir::Schedule& schedule,
                         const CostModel& costs, const Options& options, Fidelity fidelity)
    : schedule_(schedule),
      options_(options),
      fidelity_(fidelity),
      engine_(engine),
      pricing_(schedule, costs, options.interference ? costs.interference() : Interference{}),
      rates_(pricing_.interference),
      overlap_counts_(pricing_.overlap_counts),
      layout_(schedule, fidelity, RunsInLockstep(schedule, options)),
      compiler_(schedule, layout_, pricing_),
      programs_(compiler_.CompileAll()),
      network_(engine, [this](std::uint32_t transfer) { OnSharedFlowEnd(transfer); }),
      alarm_([this] { Drain(); }) {
  SetUpMeetings();
  SetUpEntities();
  SetUpSlowGpus();
  SetUpRoutes(costs);
}

absl::StatusOr<Outcome> Interpreter::Run() {
  last_progress_ = std::chrono::steady_clock::now();
  queue_.Push(0, TimedEvent(EventKind::kStepEnd, 0, 0, 0));  // no entity: wakes the alarm up once
  ArmAlarm();
  for (std::uint32_t entity = 0; entity < entities_.size(); ++entity) Advance(entity, kAllStreams);
  engine_.run();
  if (too_late_) return StepTooLong();
  if (live_entities_ > 0) return BlockedEntities();
  return Results();
}

void Interpreter::ArmAlarm() {
  if (!queue_.empty()) alarm_.SetNoLaterThan(ToClock(queue_.NextTime()));
}

// While SimGrid runs no communication it has nothing to say about what comes next: we go on without
// its clock, up to the next flow that may have to share a link. A step of SimGrid's costs twenty
// times an event.
bool Interpreter::NeedsClock() const {
  return !network_.idle() || queue_.NextHas(EventKind::kFlowStart);
}

void Interpreter::Drain() {
  const double clock = simgrid::s4u::Engine::get_clock();
  while (!queue_.empty() && (ToClock(queue_.NextTime()) <= clock || !NeedsClock())) {
    now_ = queue_.Pop(events_);
    if (IsTooLate()) return;
    event_count_ += static_cast<std::int64_t>(events_.size());
    for (const TimedEvent event : events_) Dispatch(event);
    if (options_.progress && ++instants_ % 1024 == 0) ReportProgress();
  }
  ArmAlarm();
}

// Contention between replicas can make a step longer than its operations are in all. No single
// duration exceeds the limit, so what is added to a time below the limit does not overflow. From
// then on nothing more is started, and SimGrid comes to its end.
bool Interpreter::IsTooLate() {
  if (now_ > ir::kLongestStep.value()) too_late_ = true;
  return too_late_;
}

absl::Status Interpreter::StepTooLong() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule '", schedule_.name, "': the step lasts longer than ", ToSeconds(ir::kLongestStep),
      " s, because transfers share links; oversubscription is ", options_.oversubscription,
      " and nodes_per_leaf ", options_.nodes_per_leaf,
      "; hint: an uplink of the fabric is far too slow or a message far too large"));
}

void Interpreter::Dispatch(TimedEvent event) {
  switch (event.kind()) {
    case EventKind::kStepEnd:
      for (std::uint32_t id = event.id(); id < event.id() + event.extra(); ++id) {
        if (IsStale(id, event.stream())) continue;
        Complete(id, event.stream());
      }
      return;
    case EventKind::kTransferEnd:
      EndTransfer(event.id());
      return;
    case EventKind::kFlowStart:
      StartFlow(event.id());
      return;
    case EventKind::kCollectiveStart:
      StartCollective(event.id());
      return;
    case EventKind::kFlowEnd:
      if (network_.EndAlone(event.id(), event.extra())) EndTransfer(event.id());
      return;
  }
}

void Interpreter::ReportProgress() {
  const auto time = std::chrono::steady_clock::now();
  if (time - last_progress_ < std::chrono::milliseconds(500)) return;
  last_progress_ = time;
  double done = 0;
  double all = 0;
  for (const Entity& entity : entities_) {
    for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
      done += entity.done[stream];
      all += static_cast<double>(programs_[entity.program].steps[stream].size() - 1);
    }
  }
  options_.progress(all > 0 ? done / all : 1.0);
}

void Interpreter::Complete(std::uint32_t entity, unsigned stream) {
  Entity& state = entities_[entity];
  state.running &= static_cast<std::uint16_t>(~(1U << stream));
  const Step& step = Head(state, stream);
  if (stream == kCompute) {
    state.compute_end = kNever;
    if (state.slowable) EndKernel(entity, step);
  } else if (step.role != OverlapRole::kNone && step.kind == StepKind::kFixed) {
    ChangeLoad(entity, step.role, -1);
  }
  Advance(entity, FinishStep(state, stream, step));
}

// Looks at the heads of `streams` (a mask) and, where one ends at once, at those it wakes.
void Interpreter::Advance(std::uint32_t entity, unsigned streams) {
  while (streams != 0) {
    const auto stream = static_cast<unsigned>(std::countr_zero(streams));
    streams &= streams - 1;
    streams |= TryStart(entity, stream);
  }
}

// Each of these returns the mask of streams to look at next.
unsigned Interpreter::TryStart(std::uint32_t entity, unsigned stream) {
  Entity& state = entities_[entity];
  if ((state.running >> stream & 1U) != 0) return 0;
  const Step& step = Head(state, stream);
  if (!DependenciesMet(state, stream, step)) return 0;
  switch (step.kind) {
    case StepKind::kFixed:
      return StartFixed(entity, stream, step);
    case StepKind::kReceive:
      return TryReceive(entity, stream, step);
    case StepKind::kStreamEnd:
      EndStream(state, stream);
      return 0;
    case StepKind::kCollective:
    case StepKind::kSend:
      break;
  }
  state.running |= static_cast<std::uint16_t>(1U << stream);
  if (step.kind == StepKind::kCollective) {
    ArriveAtCollective(entity, step);
  } else {
    ArriveAtSend(entity, stream, step);
  }
  return 0;
}

unsigned Interpreter::StartFixed(std::uint32_t entity, unsigned stream, const Step& step) {
  Entity& state = entities_[entity];
  const std::int64_t duration =
      state.slowness == 0 ? step.duration
                          : slowed_[state.slowness][state.program][stream][state.done[stream]];
  const bool slowable = step.role == OverlapRole::kKernel && duration > 0;
  if (step.account != Account::kNone && !slowable) {
    state.account.Run(Picoseconds(now_), Picoseconds(now_ + duration),
                      step.account == Account::kOptimizer);
  }
  if (state.recorded && !slowable) RecordStart(state, stream, now_);
  if (duration == 0) return FinishStep(state, stream, step);
  state.running |= static_cast<std::uint16_t>(1U << stream);
  if (overlap_counts_) {
    StartUnderOverlap(entity, stream, step, duration);
    return 0;
  }
  queue_.Push(now_ + duration, TimedEvent(EventKind::kStepEnd, entity, stream, 1));
  return 0;
}

unsigned Interpreter::TryReceive(std::uint32_t entity, unsigned stream, const Step& step) {
  Entity& state = entities_[entity];
  if (state.recorded) RecordStart(state, stream, now_);
  return Received(entity, step.target) ? FinishStep(state, stream, step) : 0;
}

unsigned Interpreter::FinishStep(Entity& entity, unsigned stream, const Step& step) {
  if (entity.recorded) RecordEnd(entity, stream);
  ++entity.done[stream];
  if (stream == kCompute) entity.dependency = 0;
  return step.wakes | 1U << stream;
}

void Interpreter::EndStream(Entity& entity, unsigned stream) {
  step_end_ = now_;
  entity.running |= static_cast<std::uint16_t>(1U << stream);
  if (--entity.live_streams == 0) --live_entities_;
  const CompiledProgram& program = programs_[entity.program];
  const std::vector<std::uint32_t>& ids = program.operations[stream];
  if (ids.empty()) return;
  const ir::Operation& last = schedule_.programs[entity.program].operations[ids.back()];
  if (last.kind == ir::OperationKind::kKernel && stream == kCompute) return;
  entity.account.OtherEnded(ids.back(), Picoseconds(now_), program.tail_class[stream]);
}

// A compute step waits for its dependencies one after the other, in listed order: each is charged
// the idle time until it is met.
bool Interpreter::DependenciesMet(Entity& entity, unsigned stream, const Step& step) {
  const auto dependencies = programs_[entity.program].DependenciesOf(step);
  if (stream != kCompute) {
    for (const Dependency& dependency : dependencies) {
      if (entity.done[dependency.stream] <= dependency.position) return false;
    }
    return true;
  }
  for (; entity.dependency < dependencies.size(); ++entity.dependency) {
    const Dependency& dependency = dependencies[entity.dependency];
    if (entity.done[dependency.stream] <= dependency.position) return false;
    if (step.account != Account::kNone) {
      entity.account.WaitUntil(Picoseconds(now_), dependency.cause);
    }
  }
  return true;
}

}  // namespace optimus::sim
