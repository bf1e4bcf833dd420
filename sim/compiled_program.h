#pragma once
// A Program turned into what the interpreter walks: one array of steps per stream, priced, with
// dependencies as (stream, position).
//
// Three exact savings:
//   - consecutive operations of fixed duration on one stream are one step, where only the first
//     waits for another stream and no other stream waits for any but the last (durations are whole
//     picoseconds, so the sum is exact; where overlap counts, all have one role in it);
//   - a dependency is met iff its stream has completed more steps than its position;
//   - dependencies that an earlier step of the same stream has already waited for are dropped.

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"
#include "sim/layout.h"
#include "sim/pricing.h"

namespace optimus::sim {

enum class StepKind : std::uint8_t {
  kFixed,       // lasts `duration`, touches nobody
  kReceive,     // `target`: ordinal among the program's receives
  kCollective,  // `target`: index into CompiledProgram::collectives
  kSend,        // `target`: index into CompiledProgram::sends
  kStreamEnd,   // behind the last step of every stream
};

enum class Account : std::uint8_t { kNone, kCompute, kOptimizer };  // what its time counts as

struct Dependency {
  std::uint32_t position = 0;  // step of the stream
  std::uint8_t stream = 0;
  ir::BubbleClass cause = ir::BubbleClass::kPpOther;  // for steps of the compute stream
};

struct Step {
  std::int64_t duration = 0;  // picoseconds, kFixed
  std::uint32_t first_dependency = 0;
  std::uint32_t first_operation = 0;  // into operations[stream]; ends where the next step begins
  std::uint16_t dependency_count = 0;
  StepKind kind = StepKind::kFixed;
  Account account = Account::kNone;
  OverlapRole role = OverlapRole::kNone;
  std::uint16_t wakes = 0;  // mask of other streams that wait for this step
  std::int32_t target = -1;
};

struct CollectiveStep {
  std::int32_t collective = -1;  // index into Schedule::collectives
  std::int32_t group = -1;
  std::uint32_t slot = 0;  // tells apart what can be in flight at once in one group instance
};

struct SendStep {
  std::int32_t transfer = -1;
  std::int32_t peer_stage = -1;
  std::int32_t peer_lane = -1;
  std::int32_t peer_program = -1;
  std::int32_t receive = -1;  // ordinal in the peer's program; -1: nobody receives it
};

struct ReceiveStep {
  std::uint32_t position = 0;
  std::uint8_t stream = 0;
  std::int32_t message = -1;
  std::int32_t peer_stage = -1;
};

struct CompiledProgram {
  std::array<std::vector<Step>, ir::kStreamCount> steps;  // each closed by a kStreamEnd
  std::array<std::vector<std::uint32_t>, ir::kStreamCount> operations;  // ids in stream order
  std::vector<Dependency> dependencies;
  std::vector<CollectiveStep> collectives;
  std::vector<SendStep> sends;
  std::vector<ReceiveStep> receives;
  // Stream of the collective in a slot of a group that is matched by issue, by group.
  std::vector<std::vector<std::uint8_t>> slot_stream;
  // What OtherEnded of ir::StallAccount wants of a stream's last operation.
  std::array<ir::BubbleClass, ir::kStreamCount> tail_class{};

  absl::Span<const Dependency> DependenciesOf(const Step& step) const {
    return absl::MakeConstSpan(dependencies).subspan(step.first_dependency, step.dependency_count);
  }
  // Ids of the operations that a step stands for.
  absl::Span<const std::uint32_t> OperationsOf(unsigned stream, std::uint32_t position) const {
    const std::uint32_t first = steps[stream][position].first_operation;
    const std::uint32_t end = steps[stream][position + 1].first_operation;
    return absl::MakeConstSpan(operations[stream]).subspan(first, end - first);
  }
};

class ProgramCompiler {
 public:
  ProgramCompiler(const ir::Schedule& schedule, const Layout& layout, const Pricing& pricing);

  // All programs compiled, in their order. They must be valid as far as indices go.
  std::vector<CompiledProgram> CompileAll() const;

  OverlapRole RoleOf(const ir::Operation& op) const { return pricing_.RoleOf(op); }
  // True if the operation only lets time pass on its own entity.
  bool IsLocal(const ir::Operation& op) const;
  // Picoseconds of a local operation on a GPU slower by `factor`.
  std::int64_t LocalDuration(const ir::Operation& op, double factor) const;
  // Durations of the fixed steps of a program on such a GPU, by stream and position.
  std::array<std::vector<std::int64_t>, ir::kStreamCount> SlowedDurations(
      const CompiledProgram& compiled, std::size_t program, double factor) const;
  // Whether the slot of a group's collectives is their order of issue. It is their stream where all
  // members issue the group's collectives on the same streams in the same order: a stream has one
  // operation in flight at most.
  bool MatchedByIssue(std::int32_t group) const { return matched_by_issue_[group]; }

 private:
  void FindMatching();

  const ir::Schedule& schedule_;
  const Layout& layout_;
  const Pricing& pricing_;
  std::vector<bool> within_entity_, matched_by_issue_;  // by group
};

}  // namespace optimus::sim
