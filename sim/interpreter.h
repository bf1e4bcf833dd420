#pragma once
// Walks the programs of all entities on SimGrid's clock.
//
// Everything of known duration is an event of our own queue, and one SimGrid timer is armed at its
// head. Transfers that can share a link are flows of FlowNetwork. An entity is a counter of
// completed steps per stream; when a step ends, the streams that may have waited for it are looked
// at. Times are whole picoseconds; SimGrid's seconds are converted at this border only.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/stall_account.h"
#include "schedule/ir/timeline.h"
#include "sim/compiled_program.h"
#include "sim/event_queue.h"
#include "sim/fabric.h"
#include "sim/flow_network.h"
#include "sim/layout.h"
#include "sim/outcome.h"
#include "sim/overlap.h"
#include "sim/pricing.h"
#include "sim/simgrid_compat.hpp"
#include "sim/simgrid_runner.h"

namespace optimus::sim {

class Interpreter {
 public:
  // One per process: SimGrid allows one engine. `fidelity` is not kAuto and is exact.
  Interpreter(simgrid::s4u::Engine& engine, const ir::Schedule& schedule, const CostModel& costs,
              const Options& options, Fidelity fidelity);

  // INTERNAL, naming them, if entities are blocked at the end.
  absl::StatusOr<Outcome> Run();

 private:
  static constexpr std::int64_t kNever = -1;
  struct Entity {
    std::array<std::uint32_t, ir::kStreamCount> done{};  // completed steps
    std::uint32_t program = 0;                           // index into programs_
    std::uint16_t slowness = 0;                          // index into slowed_, 0: none
    std::uint16_t dependency = 0;  // the one the head of the compute stream is at
    std::uint16_t running = 0;     // mask of streams whose head has started (or that are over)
    std::uint8_t live_streams = ir::kStreamCount;
    bool recorded = false;
    // Where overlap counts: whether the step of the compute stream is of role kKernel, and its end
    // as far as is known.
    bool slowable = false;
    std::int64_t compute_end = kNever;
    ir::StallAccount account;
  };
  // In flight: for whom it ends, and what it moves.
  struct Transfer {
    std::int32_t set = -1;  // index into sets_
    std::uint32_t instance = 0;
    std::uint32_t slot = 0;
    std::int32_t collective = -1;  // index into Schedule::collectives
    OverlapRole role = OverlapRole::kNone;
    std::int32_t program = -1;  // of a send
    std::int32_t send = -1;     // index into the program's sends; -1: a collective
    RouteId route = -1;
    std::int64_t bytes = 0;
  };
  // Who meets for transfers of a group (or, in the last one, for sends), and how many are there.
  struct Meeting {
    MemberSets sets;
    bool by_issue = false;  // ProgramCompiler::MatchedByIssue
    std::uint32_t slots = ir::kStreamCount;
    std::vector<std::uint32_t> arrived;          // by instance and slot
    std::array<std::vector<RouteId>, 2> routes;  // over NVLink, NIC; by instance
  };
  struct SendPath {
    RouteId route = -1;
    bool same_node = false;
  };
  struct Recording {
    std::vector<std::int64_t> starts, ends;  // by operation id
    // Of a compute step that overlap slows: the operation of it that runs, and the work left when
    // that one ends.
    std::size_t next = 0;
    WorkUnits left_after_next = 0;
  };
  using Durations = std::array<std::vector<std::int64_t>, ir::kStreamCount>;

  // Set-up (interpreter_setup.cc).
  void SetUpMeetings();
  void SetUpEntities();
  void SetUpSlowGpus();
  void SetUpRoutes(const CostModel& costs);
  void SetUpCollectiveRoutes(Fabric& fabric);
  void SetUpSendPaths(Fabric& fabric);

  // The clock.
  void Drain();
  void Dispatch(TimedEvent event);
  void ArmAlarm();
  bool NeedsClock() const;
  void ReportProgress();
  bool IsTooLate();
  absl::Status StepTooLong() const;

  // Streams.
  void Complete(std::uint32_t entity, unsigned stream);
  void Advance(std::uint32_t entity, unsigned streams);
  unsigned TryStart(std::uint32_t entity, unsigned stream);
  unsigned StartFixed(std::uint32_t entity, unsigned stream, const Step& step);
  unsigned TryReceive(std::uint32_t entity, unsigned stream, const Step& step);
  unsigned FinishStep(Entity& entity, unsigned stream, const Step& step);
  void EndStream(Entity& entity, unsigned stream);
  bool DependenciesMet(Entity& entity, unsigned stream, const Step& step);

  // Transfers (interpreter_transfers.cc).
  void ArriveAtCollective(std::uint32_t entity, const Step& step);
  void ArriveAtSend(std::uint32_t entity, unsigned stream, const Step& step);
  bool AllArrived(Meeting& meeting, std::uint32_t instance, std::uint32_t slot);
  void Launch(const Transfer& transfer, const TransferPrice& price);
  void MoveBytes(std::uint32_t transfer, const TransferPrice& price);
  void StartFlow(std::uint32_t transfer);
  void EndTransfer(std::uint32_t transfer);
  void Deliver(std::uint32_t sender, const SendStep& send);
  std::uint32_t PlaceInProgram(std::uint32_t port) const;
  unsigned StreamOfMember(const Transfer& transfer, std::uint32_t entity) const;
  void OnSharedFlowEnd(std::uint32_t transfer);

  // Kernels and collectives that slow each other (interpreter_overlap.cc).
  void StartUnderOverlap(std::uint32_t entity, unsigned stream, const Step& step,
                         std::int64_t duration);
  void EndKernel(std::uint32_t entity, const Step& step);
  void ChangeLoad(std::uint32_t entity, OverlapRole role, int change);
  void Settle(std::uint32_t entity);
  void StartCollective(std::uint32_t transfer);
  void StartRecordingKernels(std::uint32_t entity, std::int64_t duration);
  void RecordKernels(std::uint32_t entity, const ComputeState& before);

  // Results (interpreter_results.cc).
  std::int64_t DurationOn(const Entity& entity, std::uint32_t operation) const;
  void RecordStart(const Entity& entity, unsigned stream, std::int64_t time);
  void RecordEnd(const Entity& entity, unsigned stream);
  Outcome Results() const;
  void AppendSpans(ir::Timeline& timeline) const;
  absl::Status BlockedEntities() const;
  std::string Blockage(std::uint32_t entity, unsigned stream, bool root_causes) const;

  // A step of the compute stream whose end has changed since leaves the event of its old end
  // behind.
  bool IsStale(std::uint32_t entity, unsigned stream) const {
    return overlap_counts_ && stream == static_cast<unsigned>(ir::Stream::kCompute) &&
           entities_[entity].compute_end != now_;
  }
  const Step& Head(const Entity& entity, unsigned stream) const {
    return programs_[entity.program].steps[stream][entity.done[stream]];
  }
  bool Received(std::uint32_t entity, std::int32_t receive) const {
    return (received_[entity * receive_words_ + receive / 64] >> (receive % 64) & 1U) != 0;
  }

  const ir::Schedule& schedule_;
  const Options& options_;
  const Fidelity fidelity_;
  simgrid::s4u::Engine& engine_;
  const Pricing pricing_;
  const OverlapRates rates_;
  const bool overlap_counts_;
  const Layout layout_;
  const ProgramCompiler compiler_;
  const std::vector<CompiledProgram> programs_;  // by stage and lane
  std::vector<std::vector<Durations>> slowed_;   // by slowness and program
  std::vector<Meeting> meetings_;                // by group; the last one: sends, by port
  std::vector<std::vector<std::vector<SendPath>>> send_paths_;  // program, peer, place
  std::vector<Entity> entities_;
  std::vector<ComputeState> compute_;    // by entity, where overlap counts
  std::vector<std::uint64_t> received_;  // bit sets: messages that arrived, by entity
  std::size_t receive_words_ = 0;        // per entity
  std::vector<Recording> recordings_;    // by program; empty unless asked for

  FlowNetwork network_;
  simgrid_compat::Alarm alarm_;
  EventQueue queue_;
  std::vector<TimedEvent> events_;  // of the instant being processed
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_;
  std::int64_t now_ = 0;       // picoseconds
  std::int64_t step_end_ = 0;  // when the last stream so far was over
  bool too_late_ = false;      // later than ir::kLongestStep: the run is given up
  std::size_t live_entities_ = 0;
  std::int64_t event_count_ = 0;
  std::int64_t instants_ = 0;
  std::chrono::steady_clock::time_point last_progress_;
};

}  // namespace optimus::sim
