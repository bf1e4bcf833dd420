#pragma once
// The nodes of one file as operations, before their dependencies, order and lanes are worked out.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "traces/chakra/et_subset.pb.h"
#include "traces/chakra/groups.h"
#include "traces/chakra/node_facts.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

// What an operation runs on. A thread or a stream has a number, the others are one each.
enum class LaneClass : std::uint8_t {
  kThread,
  kHost,  // host calls without a thread
  kStream,
  kCompute,
  kCopy,
  kCommunication,
  kSend,
  kReceive,
};

// Whether a lane is one thread or stream, whose operations run one after another.
inline bool IsSerial(LaneClass lane) {
  return lane == LaneClass::kThread || lane == LaneClass::kStream;
}

struct DraftOp {
  std::uint64_t id = 0;
  std::uint64_t start_us = 0, duration_us = 0;   // as the node says; 0: not said, or 0
  std::int64_t start_ps = -1, duration_ps = -1;  // exact, where they are there
  std::int64_t lane_id = 0;
  std::int32_t name = 0, communication = -1, work = -1;
  OpKind kind = OpKind::kCompute;
  LaneClass lane = LaneClass::kCompute;
};

// Ids of those that a node depends on: `data` and then `control` ones from `first` of
// Draft::parents.
struct Parents {
  std::uint32_t first = 0, data = 0, control = 0;
};

// Communication as the node says it. Its group and size are known when the whole file is read.
struct DraftCommunication {
  Communication communication;  // bytes: comm_size as it is
  std::string group;            // pg_name
  bool has_group = false;       // a collective, or a message with pg_name
};

struct Draft {
  std::vector<DraftOp> ops;
  std::vector<Parents> op_parents, skipped_parents;
  std::vector<std::uint64_t> parents;
  // Node id to index: of `ops`, or (kSkipped set) of `skipped_parents`.
  absl::flat_hash_map<std::uint64_t, std::uint32_t> index;
  static constexpr std::uint32_t kSkipped = std::uint32_t{1} << 31;
  std::vector<DraftCommunication> communications;
  std::vector<Work> works;
  GroupTable groups;  // of metadata nodes
};

// Adds the nodes of a file to a Draft.
class DraftBuilder {
 public:
  // Both outlive it.
  DraftBuilder(Draft& draft, RecordingTables& tables, std::int32_t rank);
  // INVALID_ARGUMENT "node N: ...".
  absl::Status Add(const ::optimus::chakra::Node& node);

 private:
  absl::Status AddId(std::uint64_t id, std::uint32_t index);
  absl::Status AddParents(const ::optimus::chakra::Node& node, std::vector<Parents>& to);
  absl::Status AddOp(const ::optimus::chakra::Node& node);
  absl::Status AddCommunication(const ::optimus::chakra::Node& node, const NodeFacts& facts,
                                DraftOp& op);
  Communication Collective(const ::optimus::chakra::Node& node, const NodeFacts& facts);
  absl::StatusOr<Communication> Message(const ::optimus::chakra::Node& node,
                                        const NodeFacts& facts);
  void Note(const char* what, const char* effect, const ::optimus::chakra::Node& node);

  Draft& draft_;
  RecordingTables& tables_;
  std::int32_t rank_;
};

}  // namespace optimus::traces::chakra
