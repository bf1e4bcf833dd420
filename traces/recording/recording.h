#pragma once
// What a trace of a real or simulated run says, before anything is concluded from it: operations of
// every recorded rank with their times, the lanes they ran on, what each waited for as far as the
// file says, and the communicator groups. Importers make one, exporters write one, traces/replay
// finds out the rest (who waited for whom) and runs it again.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/units.h"

namespace optimus::traces {

enum class OpKind : std::uint8_t {
  kHost,           // a call on a CPU thread: a launch, a synchronisation, CPU work
  kCompute,        // a kernel
  kCopy,           // memcpy, memset
  kCommunication,  // Communication says which
};
const char* ToString(OpKind kind);  // "host", "compute", "copy", "communication"

enum class CommunicationKind : std::uint8_t {
  kUnknown,  // the file does not say: never taken for one of the others
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kReceive,
  kSendReceive,  // point-to-point, but the file does not say in which direction
};
inline constexpr int kCommunicationKindCount = 13;
const char* ToString(CommunicationKind kind);  // "all_reduce", "send_receive", "unknown", ...
bool IsPointToPoint(CommunicationKind kind);   // send, receive, send_receive

struct Communication {
  CommunicationKind kind = CommunicationKind::kUnknown;
  std::int32_t group = -1;     // index into Recording::groups; -1: the file does not say
  std::int32_t peer = -1;      // point-to-point: global rank of the other side; -1: not said
  std::int64_t sequence = -1;  // number within the group (collectives); -1: the order of start
  std::int64_t tag = -1;       // point-to-point: pairs a send with its receive; -1: order of start
  // As nccl-tests count them (base/kernel.h), point-to-point: of the message; -1: not said.
  Bytes bytes{-1};
  friend bool operator==(const Communication&, const Communication&) = default;
};

struct Work {
  double flops = 0;  // 0: not said
  Bytes bytes{0};    // HBM traffic; 0: not said
  friend bool operator==(const Work&, const Work&) = default;
};

// Times of an operation of a file without times.
inline constexpr Picoseconds kUntimed{-1};

struct RecordedOp {
  // On the clock of its rank, from RecordedRank::clock_origin_ns, not negative; end >= start.
  // kUntimed both, where the file has no times.
  Picoseconds start = kUntimed, end = kUntimed;
  std::int32_t lane = 0;               // index into RecordedRank::lanes
  std::int32_t name = 0;               // index into Recording::names
  std::int32_t communication = -1;     // index into RecordedRank::communications
  std::int32_t work = -1;              // index into RecordedRank::works
  std::uint32_t first_dependency = 0;  // range in RecordedRank::dependencies
  std::uint32_t dependency_count = 0;
  OpKind kind = OpKind::kCompute;
  bool timed() const { return start != kUntimed; }
  Picoseconds duration() const { return end - start; }
  friend bool operator==(const RecordedOp&, const RecordedOp&) = default;
};

enum class DependencyKind : std::uint8_t {
  kAfter,     // the operation starts after the other one has ended
  kLaunch,    // the same: a host call that launched it
  kEvent,     // the same: a stream waited for an event that was recorded behind it
  kEndAfter,  // the operation may start, but does not end before the other one has (a host call
              // that synchronises with a stream)
};
const char* ToString(DependencyKind kind);

struct Dependency {
  std::uint32_t op = 0;  // of the same rank; any position
  DependencyKind kind = DependencyKind::kAfter;
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

enum class LaneKind : std::uint8_t { kHostThread, kStream };

struct Lane {
  std::string name;  // "stream 7", "thread 1234", "tensor parallel"
  LaneKind kind = LaneKind::kStream;
  // Its operations run one after another in the order of RecordedRank::ops. False: the file does
  // not say in which order, only dependencies hold.
  bool in_order = true;
  std::int64_t id = 0;  // of the file: stream or thread
  friend bool operator==(const Lane&, const Lane&) = default;
};

struct RecordedRank {
  std::int32_t rank = 0;  // global
  // GPUs that behave as this one and were not recorded, with it (a folded simulation); 1: itself.
  std::int32_t stands_for = 1;
  std::string source;  // file
  // Where the times of its operations count from, on the clock of its host.
  std::int64_t clock_origin_ns = 0;
  // The step: what was asked for, or all that the file has. Operations may end behind it.
  Picoseconds step_start, step_end;
  std::vector<Lane> lanes;
  std::vector<RecordedOp> ops;  // the operations of a lane in the order in which they were issued
  std::vector<Dependency> dependencies;
  std::vector<Communication> communications;
  std::vector<Work> works;
  absl::Span<const Dependency> DependenciesOf(const RecordedOp& op) const {
    return absl::MakeConstSpan(dependencies).subspan(op.first_dependency, op.dependency_count);
  }
  const Communication* CommunicationOf(const RecordedOp& op) const {
    return op.communication < 0 ? nullptr : &communications[op.communication];
  }
  friend bool operator==(const RecordedRank&, const RecordedRank&) = default;
};

struct CommunicatorGroup {
  std::string name;                 // as the file names it: "0", "17", "tp"
  std::string description;          // "default_pg", "TENSOR_MODEL_PARALLEL_GROUP"; may be empty
  std::string role;                 // "dp", "tp", "pp", "ep", "cp", "world", or empty: not known
  std::vector<std::int32_t> ranks;  // global, ascending; empty: the file does not say
  std::int32_t size = 0;            // 0: not known
  friend bool operator==(const CommunicatorGroup&, const CommunicatorGroup&) = default;
};

// "dp" of "DATA_PARALLEL_GROUP", "mesh_dp", ...; "" where the words say nothing.
std::string RoleOf(absl::string_view name, absl::string_view description);

// A step of the file: of the profiler's annotations ("ProfilerStep#551"), 0 where there are none.
struct StepMark {
  std::int64_t number = 0;
  std::int32_t rank = 0;
  Picoseconds start, end;  // on the rank's clock
  friend bool operator==(const StepMark&, const StepMark&) = default;
};

// Something that the file does not say or says wrongly, and what became of it. Equal remarks of a
// rank are counted, not repeated: the first one's name and time stand for all.
struct Remark {
  std::string what;    // "kernel without a launching call"
  std::string effect;  // "starts when its stream is free"
  std::int32_t rank = -1;
  std::string name;  // of the first such operation; may be empty
  Picoseconds time;  // of the first, on the rank's clock
  std::int64_t count = 1;
  friend bool operator==(const Remark&, const Remark&) = default;
};

// When a point-to-point message moves.
enum class MessageRule : std::uint8_t {
  kEager,       // a send needs no posted receive (schedule/ir)
  kRendezvous,  // both sides have to be there (NCCL)
};

struct Recording {
  std::string format;      // "kineto", "chakra", "optimus timeline", "optimus chrome json"
  std::int32_t world = 0;  // ranks of the job; 0: not known
  MessageRule messages = MessageRule::kRendezvous;
  // True: an operation of a collective starts when it is issued and waits inside for the others
  // (NCCL kernels). False: it starts when all are there (schedule/ir).
  bool waits_inside = true;
  // True: clocks of the ranks are one clock (a simulation); nothing is to be aligned.
  bool one_clock = false;
  // True: the recorded ranks stand for all others of their groups (a folded simulation says so).
  bool folded = false;
  std::vector<RecordedRank> ranks;  // ascending by rank
  std::vector<CommunicatorGroup> groups;
  std::vector<std::string> names;
  std::vector<StepMark> steps;  // all that the files have, also those that were not read
  std::vector<Remark> remarks;
  friend bool operator==(const Recording&, const Recording&) = default;
};

// Adds names, groups and remarks to a Recording, each once.
class RecordingTables {
 public:
  // `recording` outlives it. What is already in its tables is kept.
  explicit RecordingTables(Recording& recording);
  std::int32_t Name(absl::string_view name);
  // One group for each (name, ranks). `group.ranks` is sorted; size and role are filled in where
  // they are not given.
  std::int32_t Group(CommunicatorGroup group);
  // Counts equal (what, rank).
  void Note(Remark remark);

 private:
  Recording& recording_;
  absl::flat_hash_map<std::string, std::int32_t> names_;
  absl::flat_hash_map<std::pair<std::string, std::vector<std::int32_t>>, std::int32_t> groups_;
  absl::flat_hash_map<std::pair<std::string, std::int32_t>, std::size_t> remarks_;
};

// Where a group has no ranks and exactly one other of its name has some: it is that one.
void ResolveGroups(Recording& recording);

// One Recording of those of single files: tables joined, ranks in order. INVALID_ARGUMENT naming
// both files (RecordedRank::source) where two have the same rank, or their formats, rules or worlds
// differ. `parts` is not empty.
absl::StatusOr<Recording> Join(std::vector<Recording> parts);

// INVALID_ARGUMENT naming rank, operation and field where an index or a time of `recording` is out
// of the bounds said above. What importers and Join return passes.
absl::Status CheckRecording(const Recording& recording);

}  // namespace optimus::traces
