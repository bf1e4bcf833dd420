#include "sim/compiled_program.h"

#include <algorithm>
#include <string>

#include "schedule/ir/bubbles.h"
#include "schedule/ir/group_members.h"

namespace optimus::sim {
namespace {

unsigned StreamOf(const ir::Operation& op) { return static_cast<unsigned>(op.stream); }

Account AccountOf(const ir::Operation& op) {
  if (!ir::IsCompute(op)) return Account::kNone;
  return ir::IsOptimizerCompute(op) ? Account::kOptimizer : Account::kCompute;
}

// A dependency that its operation really has to look at.
struct Wait {
  std::uint32_t operation = 0;
  ir::BubbleClass cause = ir::BubbleClass::kPpOther;
};

// Who waits for whom across streams, on the level of operations.
struct Waits {
  explicit Waits(const ir::Schedule& schedule, const ir::Program& program)
      : of(program.operations.size()), waiters(program.operations.size(), 0) {
    const auto causes = ir::ClassifyDependencies(schedule, program);
    const std::vector<std::uint32_t> places = PlacesInStream(program);
    // met[s][o]: how many operations of stream o had ended when stream s got here.
    std::array<std::array<std::uint32_t, ir::kStreamCount>, ir::kStreamCount> met{};
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
        const std::uint32_t entry = op.first_dependency + i;
        const std::uint32_t dependency = program.dependencies[entry];
        const unsigned stream = StreamOf(program.operations[dependency]);
        std::uint32_t& known = met[StreamOf(op)][stream];
        const bool implied =
            stream == StreamOf(op) ? places[dependency] < places[id] : places[dependency] < known;
        if (implied) continue;
        known = places[dependency] + 1;
        of[id].push_back({dependency, causes[entry]});
        waiters[dependency] |= static_cast<std::uint16_t>(1U << StreamOf(op));
      }
    }
  }
  static std::vector<std::uint32_t> PlacesInStream(const ir::Program& program) {
    std::array<std::uint32_t, ir::kStreamCount> next{};
    std::vector<std::uint32_t> places;
    places.reserve(program.operations.size());
    for (const ir::Operation& op : program.operations) places.push_back(next[StreamOf(op)]++);
    return places;
  }

  std::vector<std::vector<Wait>> of;   // by operation
  std::vector<std::uint16_t> waiters;  // by operation: mask of streams
};

// Builds the steps of one program.
class StepBuilder {
 public:
  StepBuilder(const ProgramCompiler& compiler, const ir::Schedule& schedule,
              const ir::Program& program)
      : compiler_(compiler),
        schedule_(schedule),
        program_(program),
        waits_(schedule, program),
        step_of_(program.operations.size(), 0),
        issued_(schedule.groups.size(), 0) {
    compiled_.slot_stream.resize(schedule.groups.size());
  }

  CompiledProgram Build() {
    for (std::uint32_t id = 0; id < program_.operations.size(); ++id) Add(id);
    Close();
    ResolveDependencies();
    return std::move(compiled_);
  }

 private:
  void Add(std::uint32_t id) {
    const ir::Operation& op = program_.operations[id];
    const unsigned stream = StreamOf(op);
    if (CanJoin(id)) {
      compiled_.steps[stream].back().duration += compiler_.LocalDuration(op, 1.0);
    } else {
      compiled_.steps[stream].push_back(NewStep(op));
      first_operation_[stream].push_back(id);
    }
    compiled_.steps[stream].back().wakes = waits_.waiters[id];
    step_of_[id] = static_cast<std::uint32_t>(compiled_.steps[stream].size() - 1);
    compiled_.operations[stream].push_back(id);
  }

  // Whether operation `id` can be part of the step before it.
  bool CanJoin(std::uint32_t id) const {
    const ir::Operation& op = program_.operations[id];
    const auto& steps = compiled_.steps[StreamOf(op)];
    return !steps.empty() && steps.back().kind == StepKind::kFixed && steps.back().wakes == 0 &&
           steps.back().account == AccountOf(op) && steps.back().role == compiler_.RoleOf(op) &&
           waits_.of[id].empty() && compiler_.IsLocal(op);
  }

  Step NewStep(const ir::Operation& op) {
    Step step;
    step.first_operation = static_cast<std::uint32_t>(compiled_.operations[StreamOf(op)].size());
    step.account = AccountOf(op);
    step.role = compiler_.RoleOf(op);
    if (op.kind == ir::OperationKind::kCollective) {
      AddCollective(op, step);
    } else if (op.kind == ir::OperationKind::kSend) {
      step.kind = StepKind::kSend;
      step.target = static_cast<std::int32_t>(compiled_.sends.size());
      compiled_.sends.push_back(
          {op.work, op.peer_stage, op.peer_lane, ir::PeerProgram(schedule_, program_, op), -1});
    } else if (op.kind == ir::OperationKind::kReceive) {
      step.kind = StepKind::kReceive;
      step.target = static_cast<std::int32_t>(compiled_.receives.size());
      const auto position = static_cast<std::uint32_t>(compiled_.steps[StreamOf(op)].size());
      compiled_.receives.push_back(
          {position, static_cast<std::uint8_t>(op.stream), op.message, op.peer_stage});
    } else {
      step.duration = compiler_.LocalDuration(op, 1.0);
    }
    return step;
  }

  void AddCollective(const ir::Operation& op, Step& step) {
    const std::int32_t group = schedule_.collectives[op.work].group;
    const bool by_issue = compiler_.MatchedByIssue(group);
    const std::uint32_t slot = by_issue ? issued_[group]++ : StreamOf(op);
    if (by_issue) {
      compiled_.slot_stream[group].push_back(static_cast<std::uint8_t>(op.stream));
    }
    if (compiler_.IsLocal(op)) {
      step.duration = compiler_.LocalDuration(op, 1.0);
      return;
    }
    step.kind = StepKind::kCollective;
    step.target = static_cast<std::int32_t>(compiled_.collectives.size());
    compiled_.collectives.push_back({op.work, group, slot});
  }

  void Close() {
    for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
      Step end;
      end.kind = StepKind::kStreamEnd;
      const auto& ids = compiled_.operations[stream];
      end.first_operation = static_cast<std::uint32_t>(ids.size());
      compiled_.steps[stream].push_back(end);
      if (!ids.empty()) {
        compiled_.tail_class[stream] = ir::TailClass(schedule_, program_.operations[ids.back()]);
      }
    }
  }

  void ResolveDependencies() {
    for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
      for (std::size_t i = 0; i < first_operation_[stream].size(); ++i) {
        const std::vector<Wait>& waits = waits_.of[first_operation_[stream][i]];
        Step& step = compiled_.steps[stream][i];
        step.first_dependency = static_cast<std::uint32_t>(compiled_.dependencies.size());
        step.dependency_count = static_cast<std::uint16_t>(waits.size());
        for (const Wait& wait : waits) {
          compiled_.dependencies.push_back(
              {step_of_[wait.operation],
               static_cast<std::uint8_t>(program_.operations[wait.operation].stream), wait.cause});
        }
      }
    }
  }

  const ProgramCompiler& compiler_;
  const ir::Schedule& schedule_;
  const ir::Program& program_;
  Waits waits_;
  std::vector<std::uint32_t> step_of_;                                        // by operation
  std::vector<std::uint32_t> issued_;                                         // by group
  std::array<std::vector<std::uint32_t>, ir::kStreamCount> first_operation_;  // by step
  CompiledProgram compiled_;
};

void MatchMessages(std::vector<CompiledProgram>& programs, const ir::Schedule& schedule) {
  absl::flat_hash_map<std::int32_t, std::int32_t> receive_of;  // message to ordinal
  for (const CompiledProgram& program : programs) {
    for (std::size_t i = 0; i < program.receives.size(); ++i) {
      receive_of[program.receives[i].message] = static_cast<std::int32_t>(i);
    }
  }
  for (std::size_t s = 0; s < programs.size(); ++s) {
    std::size_t next = 0;  // sends were numbered in the order of operations
    for (const ir::Operation& op : schedule.programs[s].operations) {
      if (op.kind != ir::OperationKind::kSend) continue;
      const auto found = receive_of.find(op.message);
      programs[s].sends[next++].receive = found == receive_of.end() ? -1 : found->second;
    }
  }
}

}  // namespace

ProgramCompiler::ProgramCompiler(const ir::Schedule& schedule, const Layout& layout,
                                 const Pricing& pricing)
    : schedule_(schedule), layout_(layout), pricing_(pricing) {
  for (const ir::Group& group : schedule.groups) {
    within_entity_.push_back(layout.WithinEntity(schedule, group));
  }
  FindMatching();
}

void ProgramCompiler::FindMatching() {
  const std::size_t groups = schedule_.groups.size();
  // By program and group: the streams of its collectives, in order of issue.
  std::vector<std::vector<std::string>> issued;
  for (const ir::Program& program : schedule_.programs) {
    issued.emplace_back(groups);
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kCollective) continue;
      issued.back()[schedule_.collectives[op.work].group].push_back(static_cast<char>(op.stream));
    }
  }
  matched_by_issue_.assign(groups, false);
  for (std::size_t g = 0; g < groups; ++g) {
    if (!ir::SpansPrograms(schedule_, schedule_.groups[g])) continue;
    for (std::size_t p = 0; p < issued.size(); ++p) {
      const auto members = ir::MembersOf(schedule_, schedule_.groups[g], schedule_.programs[p]);
      const std::int32_t first = ir::ProgramsOf(schedule_, members).front();
      if (issued[p][g] != issued[first][g]) matched_by_issue_[g] = true;
    }
  }
}

std::vector<CompiledProgram> ProgramCompiler::CompileAll() const {
  std::vector<CompiledProgram> programs;
  programs.reserve(schedule_.programs.size());
  for (const ir::Program& program : schedule_.programs) {
    programs.push_back(StepBuilder(*this, schedule_, program).Build());
  }
  MatchMessages(programs, schedule_);
  return programs;
}

bool ProgramCompiler::IsLocal(const ir::Operation& op) const {
  if (op.kind == ir::OperationKind::kKernel) return true;
  if (op.kind != ir::OperationKind::kCollective) return false;
  if (pricing_.UsesFlow(pricing_.collectives[op.work])) return false;
  if (pricing_.DependsOnKernels(op)) return false;
  return within_entity_[schedule_.collectives[op.work].group];
}

std::int64_t ProgramCompiler::LocalDuration(const ir::Operation& op, double factor) const {
  if (op.kind == ir::OperationKind::kKernel) return Slowed(pricing_.kernels[op.work], factor);
  return pricing_.collectives[op.work].alone;
}

std::array<std::vector<std::int64_t>, ir::kStreamCount> ProgramCompiler::SlowedDurations(
    const CompiledProgram& compiled, std::size_t program, double factor) const {
  std::array<std::vector<std::int64_t>, ir::kStreamCount> durations;
  for (unsigned stream = 0; stream < ir::kStreamCount; ++stream) {
    const auto& steps = compiled.steps[stream];
    durations[stream].assign(steps.size(), 0);
    for (std::uint32_t i = 0; i + 1 < steps.size(); ++i) {
      if (steps[i].kind != StepKind::kFixed) continue;
      for (const std::uint32_t id : compiled.OperationsOf(stream, i)) {
        durations[stream][i] += LocalDuration(schedule_.programs[program].operations[id], factor);
      }
    }
  }
  return durations;
}

}  // namespace optimus::sim
