#pragma once
// The Schedule: ordered operations per stream and explicit dependencies. It says WHAT in WHICH
// ORDER after WHAT, so it stays correct when durations differ. Operations carry work, not time: a
// simulator prices them, an executor launches them.
//
// SPMD: one Program per pipeline stage and lane; every rank (dp, stage, tp) runs the program of its
// stage and lane. A lane is a block of tp / lanes neighbouring tensor-parallel ranks: where an
// encoder uses less tensor parallelism than the LLM, the blocks of a stage work for different
// encoder pipelines. Without that there is one lane, and one program per stage.
// Physical placement: rank = (stage * dp + d) * tp + t, node = rank / gpus_per_node,
// lane = t / (tp / lanes).
//
// Semantics (the same for every Runner):
//   - an operation starts when the previous operation of its stream and all its dependencies have
//   ended;
//   - a collective starts when it is at that point on every member of its group; members match
//     collectives of one group by order of issue; it ends for all at once;
//   - a send starts by itself (it needs no posted receive) and ends when the message has arrived;
//   - a receive takes no time of its own: it ends when its message has arrived.
// Dependencies are listed in the order in which an idle compute stream is accounted to them
// (schedule/ir/bubbles.h): data-parallel first, then tensor-parallel, then pipeline.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/kernel.h"
#include "base/phase.h"

namespace optimus::ir {

enum class Stream : std::uint8_t {
  kCompute,
  kTensorParallel,
  kEncoderCommunication,  // encoder collectives that run under LLM compute
  kForwardSend,  // four pipeline streams: activations and gradients never wait for each other
  kForwardReceive,
  kBackwardSend,
  kBackwardReceive,
  kDataParallel,
  kEncoderSend,  // messages of encoder pipelines that run beside the LLM, either direction
  kEncoderReceive,
};
inline constexpr int kStreamCount = 10;
const char* ToString(Stream stream);

inline constexpr std::int16_t kNoModule = -1;
inline constexpr std::int16_t kLlmModule =
    0;  // encoder k is module k + 1 (index into Schedule::modules)

// Names an operation. -1: not applicable.
struct Tag {
  std::int16_t module = kNoModule;  // index into Schedule::modules
  std::int16_t layer = -1;  // layer of the module, counted from 0; kEmbeddingLayer..: not a layer
  std::int16_t chunk = -1;  // model chunk (virtual stage on this rank)
  std::int16_t slice = -1;  // part of a micro-batch (encoder batches)
  std::int32_t micro_batch = -1;
  Phase phase = Phase::kForward;
  friend bool operator==(const Tag&, const Tag&) = default;
};
inline constexpr std::int16_t kEmbeddingLayer = -2;
inline constexpr std::int16_t kHeadLayer = -3;
inline constexpr std::int16_t kProjectorLayer = -4;

enum class OperationKind : std::uint8_t { kKernel, kCollective, kSend, kReceive };
const char* ToString(OperationKind kind);

struct Operation {
  OperationKind kind = OperationKind::kKernel;
  Stream stream = Stream::kCompute;
  Tag tag;
  std::int32_t work = -1;        // index into Schedule::kernels, collectives or transfers
  std::int32_t peer_stage = -1;  // kSend, kReceive: the other side, at the same dp coordinate
  // kSend, kReceive: lane of the other side; -1: the same lane. Rank i of a lane talks to rank i of
  // the peer's lane.
  std::int32_t peer_lane = -1;
  std::int32_t message = -1;           // kSend, kReceive: pairs the two; unique in the Schedule
  std::uint32_t first_dependency = 0;  // range in Program::dependencies
  std::uint32_t dependency_count = 0;
  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Program {
  std::int32_t stage = 0;
  std::int32_t lane = 0;
  std::vector<Operation> operations;        // issue order; an index is the operation's id
  std::vector<std::uint32_t> dependencies;  // ids of operations of this program
  absl::Span<const std::uint32_t> DependenciesOf(const Operation& op) const {
    return absl::MakeConstSpan(dependencies).subspan(op.first_dependency, op.dependency_count);
  }
  // The same operations with the same dependencies; where those lie in the table does not matter.
  friend bool operator==(const Program& a, const Program& b);
};

// The ranks that agree on every axis that is false form one group. An axis that is true can be
// narrowed (0: it is not):
//   pp_stride p: of the stages, those that agree modulo p (that hold the same encoder layers);
//   pp_pair {a, b}: of the stages, a and b alone (that hold the same parameters: a tied embedding
//     and the head, the two copies of a layer). Ranks of other stages are in no such group and
//     issue none of its collectives;
//   tp_block b: of the tensor-parallel ranks, a block of b neighbours (an encoder's own tensor
//     parallelism);
//   tp_stride b: of them, those that agree modulo b (the same shard of several encoder pipelines).
// A block or tensor stride is a multiple of the lane's width and divides tp; a stage stride divides
// pp; of a pair a < b < pp. At most one of tp_block and tp_stride is set, and of pp_stride and
// pp_pair.
struct Group {
  std::string name;
  bool over_dp = false, over_pp = false, over_tp = false;
  std::int32_t pp_stride = 0, tp_block = 0, tp_stride = 0;
  std::array<std::int32_t, 2> pp_pair = {0, 0};  // {0, 0}: all stages
  bool paired() const { return pp_pair != std::array<std::int32_t, 2>{0, 0}; }
  friend bool operator==(const Group&, const Group&) = default;
};

// The upper bounds that Validate puts on work, so that sums and products of a few sizes fit 64 bits
// (and a double holds each of them exactly):
//   kLargestSize: 2^53. Bytes of a kernel, collective or transfer; every dimension of a shape;
//     elements of each matrix of a GEMM (m k, k n, m n), of attention's Q (sequences heads
//     sequence_length head_dim) and of the scores of one head (sequence_length squared);
//   kMostFlops: of a kernel, more than any shape within kLargestSize needs;
//   kLongestFixed: of a kernel or transfer; no step may last longer (kLongestStep).
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 53;
inline constexpr double kMostFlops = 1e25;
inline constexpr Picoseconds kLongestFixed{1'000'000'000'000'000'000};

struct Collective {
  CollectiveWork work;  // bytes per rank as nccl-tests define them
  std::int32_t group = -1;
  friend bool operator==(const Collective&, const Collective&) = default;
};

// A pipeline message; `fixed` > 0 replaces the link model by a measured duration (profiled
// schedules). Neither bytes nor a fixed duration: free, an edge between stages that takes no time.
struct Transfer {
  std::string name;
  Bytes bytes;  // per GPU
  Picoseconds fixed;
  bool free() const { return bytes == Bytes(0) && fixed == Picoseconds(0); }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct ModuleInfo {
  std::string name;  // "llm", "vit-22b"
  std::int32_t layers = 0;
  bool frozen = false;  // no backward expected
  // Encoder pipelines that share the micro-batches of one LLM pipeline: each holds every layer, and
  // a micro-batch passes through one of them. 0: no such pipelines; a layer has one stage and
  // chunk.
  std::int32_t pipelines = 0;
  // Tensor parallelism of this module: its work is on so many neighbouring ranks. 0: on all of tp.
  std::int32_t tensor_parallel = 0;
  std::vector<std::int32_t> skipped_micro_batches = {};  // it has no input there; ascending
  // Two copies of it, one in each direction: chunk 0 of stage s and chunk 1 of stage pp - 1 - s
  // hold the same layers, and a micro-batch passes one of the copies (DualPipe).
  bool both_directions = false;
  friend bool operator==(const ModuleInfo&, const ModuleInfo&) = default;
};

struct Parallelism {
  std::int32_t dp = 1, pp = 1, tp = 1;
  std::int32_t gpus() const { return dp * pp * tp; }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

struct Schedule {
  std::string name;
  Parallelism world;
  std::int32_t gpus_per_node = 8;
  std::int32_t lanes = 1;           // blocks of tensor-parallel ranks with a program of their own
  std::int32_t micro_batches = 0;   // per pipeline
  std::vector<ModuleInfo> modules;  // what must be there: every layer x micro-batch x slice
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
  std::vector<Group> groups;
  std::vector<Program> programs;  // by (stage, lane): programs[stage * lanes + lane]
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

inline std::int32_t RankOf(const Parallelism& w, int stage, int d, int t) {
  return (stage * w.dp + d) * w.tp + t;
}

// Tensor-parallel ranks of one lane, the lane that rank t is in, and the index of a program.
inline std::int32_t LaneWidth(const Schedule& schedule) {
  return schedule.world.tp / schedule.lanes;
}
inline std::int32_t LaneOf(const Schedule& schedule, int t) { return t / LaneWidth(schedule); }
inline std::int32_t ProgramIndex(const Schedule& schedule, int stage, int lane) {
  return stage * schedule.lanes + lane;
}
// kSend, kReceive: index of the program at the other side of `op`, an operation of `program`.
inline std::int32_t PeerProgram(const Schedule& schedule, const Program& program,
                                const Operation& op) {
  return ProgramIndex(schedule, op.peer_stage, op.peer_lane < 0 ? program.lane : op.peer_lane);
}
// First rank that runs the program (stage, lane): d = 0, and the first tensor-parallel rank of it.
inline std::int32_t FirstRankOf(const Schedule& schedule, const Program& program) {
  return RankOf(schedule.world, program.stage, 0, program.lane * LaneWidth(schedule));
}

// "llm layer 3 micro-batch 5 chunk 1 backward fc1": for messages and traces.
std::string Describe(const Schedule& schedule, const Program& program, std::uint32_t op);

}  // namespace optimus::ir
