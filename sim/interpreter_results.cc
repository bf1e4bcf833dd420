// What the interpreter reports: spans, accounts, and who is blocked where it cannot go on.

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/interpreter.h"

namespace optimus::sim {
namespace {

constexpr std::size_t kMaxBlockedShown = 8;

}  // namespace

// Starts of fixed steps also give the ends: their operations follow each other. The first call for
// a receive counts, when it began to wait.
void Interpreter::RecordStart(const Entity& entity, unsigned stream, std::int64_t time) {
  Recording& recording = recordings_[entity.program];
  const std::uint32_t position = entity.done[stream];
  const auto ids = programs_[entity.program].OperationsOf(stream, position);
  if (programs_[entity.program].steps[stream][position].kind != StepKind::kFixed) {
    std::int64_t& start = recording.starts[ids.front()];
    if (start < 0) start = time;
    return;
  }
  for (const std::uint32_t id : ids) {
    recording.starts[id] = time;
    time += DurationOn(entity, id);
    recording.ends[id] = time;
  }
}

// Of a local operation, with nothing beside it.
std::int64_t Interpreter::DurationOn(const Entity& entity, std::uint32_t operation) const {
  double factor = 1.0;
  if (entity.slowness != 0) {
    const auto rank = static_cast<int>(&entity - entities_.data());
    for (const SlowGpu& gpu : options_.slow_gpus) {
      if (gpu.rank == rank) factor = gpu.factor;
    }
  }
  const ir::Operation& op = schedule_.programs[entity.program].operations[operation];
  return compiler_.LocalDuration(op, factor);
}

void Interpreter::RecordEnd(const Entity& entity, unsigned stream) {
  const std::uint32_t position = entity.done[stream];
  if (programs_[entity.program].steps[stream][position].kind == StepKind::kFixed) return;
  const auto ids = programs_[entity.program].OperationsOf(stream, position);
  recordings_[entity.program].ends[ids.front()] = now_;
}

Outcome Interpreter::Results() const {
  Outcome outcome;
  ir::Timeline& timeline = outcome.timeline;
  timeline.step = Picoseconds(step_end_);
  timeline.runner = "simgrid";
  timeline.fidelity = ToString(fidelity_);
  timeline.entities.reserve(entities_.size());
  for (std::uint32_t entity = 0; entity < entities_.size(); ++entity) {
    const Entity& state = entities_[entity];
    timeline.entities.push_back({layout_.FirstRank(entity), schedule_.programs[state.program].stage,
                                 layout_.gpus_per_entity(), state.account.Finish(timeline.step),
                                 schedule_.programs[state.program].lane});
    for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
      const CompiledProgram& program = programs_[state.program];
      timeline.operations += program.steps[stream][state.done[stream]].first_operation;
    }
  }
  AppendSpans(timeline);
  outcome.stats.events = event_count_;
  outcome.stats.flows = network_.flows();
  outcome.stats.shared_flows = network_.communications();
  return outcome;
}

void Interpreter::AppendSpans(ir::Timeline& timeline) const {
  for (std::size_t p = 0; p < recordings_.size(); ++p) {
    const std::int32_t rank = ir::FirstRankOf(schedule_, schedule_.programs[p]);
    const Recording& recording = recordings_[p];
    for (std::uint32_t id = 0; id < recording.starts.size(); ++id) {
      timeline.spans.push_back(
          {rank, id, Picoseconds(recording.starts[id]), Picoseconds(recording.ends[id])});
    }
  }
}

// What the head of a stream waits for: an arrival from elsewhere (`root_causes`) or a dependency.
// Empty if it waits for something of the other sort.
std::string Interpreter::Blockage(std::uint32_t entity, unsigned stream, bool root_causes) const {
  const Entity& state = entities_[entity];
  const Step& step = Head(state, stream);
  const CompiledProgram& program = programs_[state.program];
  const bool started = (state.running >> stream & 1U) != 0;
  if (step.kind == StepKind::kStreamEnd) return "";  // over
  for (const Dependency& dependency : program.DependenciesOf(step)) {
    if (started || state.done[dependency.stream] > dependency.position) continue;
    if (root_causes) return "";
    const std::uint32_t id = program.OperationsOf(dependency.stream, dependency.position).back();
    return absl::StrCat("operation ", id, " (",
                        ir::Describe(schedule_, schedule_.programs[state.program], id), ")");
  }
  if (!root_causes || step.kind == StepKind::kFixed) return "";
  if (step.kind == StepKind::kReceive) {
    const ReceiveStep& receive = program.receives[step.target];
    return absl::StrCat("message ", receive.message, " from stage ", receive.peer_stage);
  }
  const bool send = step.kind == StepKind::kSend;
  const Meeting& meeting =
      send ? meetings_.back() : meetings_[program.collectives[step.target].group];
  const std::uint32_t slot = send ? stream : program.collectives[step.target].slot;
  const std::uint32_t instance = meeting.sets.InstanceOf(entity);
  return absl::StrCat("the group ",
                      send ? "of its send" : schedule_.groups[&meeting - meetings_.data()].name,
                      ": ", meeting.arrived[instance * meeting.slots + slot], " of ",
                      meeting.sets.members(), " are there");
}

absl::Status Interpreter::BlockedEntities() const {
  std::vector<std::string> lines;
  for (const bool root_causes : {true, false}) {
    for (std::uint32_t e = 0; e < entities_.size() && lines.size() < kMaxBlockedShown; ++e) {
      const Entity& state = entities_[e];
      for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
        const std::string cause = Blockage(e, stream, root_causes);
        if (cause.empty() || lines.size() >= kMaxBlockedShown) continue;
        const ir::Program& program = schedule_.programs[state.program];
        const std::uint32_t id =
            programs_[state.program].OperationsOf(stream, state.done[stream]).front();
        lines.push_back(absl::StrCat("rank ", layout_.FirstRank(e), " (stage ", program.stage,
                                     ") stream ", ir::ToString(static_cast<ir::Stream>(stream)),
                                     " operation ", id, " (", ir::Describe(schedule_, program, id),
                                     ") waits for ", cause));
      }
    }
    if (!lines.empty()) break;
  }
  return absl::InternalError(absl::StrCat("simulation stopped at ", ToSeconds(Picoseconds(now_)),
                                          " s with ", live_entities_, " of ", entities_.size(),
                                          " entities blocked: ", absl::StrJoin(lines, "; "),
                                          "; hint: Validate refuses a schedule that deadlocks"));
}

}  // namespace optimus::sim
