#pragma once
// Abstract execution of a Schedule, without durations: which operations can run after which.
// Sends need no posted receive; a collective whose group has members in several programs (over the
// pipeline, or over several lanes) needs all of them. The validator finds deadlocks with it, and
// the critical-path runner puts times on it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "schedule/ir/schedule.h"

namespace optimus::ir {

struct OperationRef {
  std::int32_t program = -1;
  std::uint32_t operation = 0;
  friend bool operator==(const OperationRef&, const OperationRef&) = default;
};

// The Schedule must outlive the walk; its indices must be in range (ValidateOperations).
class Walk {
 public:
  explicit Walk(const Schedule& schedule);

  // Calls `visit` once per operation, after everything it waits for. A collective that several
  // programs take part in comes with all its members in one call, by index of program; everything
  // else alone. Stops when nothing can run any more.
  using Visit = absl::FunctionRef<void(absl::Span<const OperationRef>)>;
  void Run(Visit visit);

  bool complete() const { return remaining_ == 0; }
  bool Ended(OperationRef ref) const { return programs_[ref.program].ended[ref.operation] != 0; }
  // The operation that `stream` of a program is at; none where the stream is done.
  std::optional<std::uint32_t> Head(std::int32_t program, Stream stream) const;
  // A collective between programs that waits for its other members.
  bool HasArrived(OperationRef ref) const;
  bool Sent(std::int32_t message) const { return sent_.contains(message); }
  // True for a collective that other programs take part in too (SpansPrograms of its group).
  bool SpansPrograms(const Operation& operation) const;
  // The programs of the group's instance that `program` is in, ascending; `group` spans programs.
  const std::vector<std::int32_t>& Members(std::int32_t group, std::int32_t program) const {
    const Rendezvous& rendezvous = rendezvous_[group];
    return rendezvous.instances[rendezvous.instance_of[program]].programs;
  }
  // Ids of the collectives over `group` (one that spans programs) in a program, in issue order.
  const std::vector<std::uint32_t>& Issued(std::int32_t group, std::int32_t program) const {
    return rendezvous_[group].issued[program];
  }
  // The how-many-th collective of its group and program this is.
  std::size_t IssueIndex(OperationRef ref) const;

 private:
  struct StreamState {
    std::vector<std::uint32_t> operations;
    std::size_t next = 0;
    std::uint32_t dependencies_met = 0;  // of the head; they are never looked at twice
    bool arrived = false;                // the head is counted at its rendezvous
  };
  struct ProgramState {
    std::array<StreamState, kStreamCount> streams;
    std::vector<std::uint8_t> ended;
    bool queued = false;
  };
  struct Instance {
    std::vector<std::int32_t> programs;  // its members
    std::vector<std::int32_t> arrived;   // by issue index
  };
  struct Rendezvous {
    std::vector<Instance> instances;
    std::vector<std::size_t> instance_of;            // by program: index into instances
    std::vector<std::vector<std::uint32_t>> issued;  // by program
  };

  Rendezvous MakeRendezvous(const Group& group) const;
  void IndexProgram(std::int32_t program);
  void Advance(std::int32_t program, Visit visit);
  bool TryHead(std::int32_t program, StreamState& stream, Visit visit);
  bool DependenciesMet(std::int32_t program, const Operation& operation, StreamState& stream);
  bool TryRendezvous(OperationRef ref, StreamState& stream, Visit visit);
  void End(OperationRef ref);
  void Enqueue(std::int32_t program);

  const Schedule& schedule_;
  std::vector<ProgramState> programs_;
  std::vector<Rendezvous> rendezvous_;  // by group; empty where it does not span programs
  absl::flat_hash_set<std::int32_t> sent_;
  std::vector<std::int32_t> queue_;
  std::size_t remaining_ = 0;
};

}  // namespace optimus::ir
