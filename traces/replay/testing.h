#pragma once
// Recordings for tests, written operation by operation.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "traces/recording/recording.h"

namespace optimus::traces {

class RecordingBuilder {
 public:
  RecordingBuilder() : tables_(recording_) { recording_.format = "test"; }

  int Rank(std::int32_t rank, std::vector<std::string> lanes) {
    RecordedRank recorded;
    recorded.rank = rank;
    recorded.source = "rank" + std::to_string(rank) + ".json";
    for (std::string& lane : lanes) {
      const bool host = lane.rfind("thread", 0) == 0;
      recorded.lanes.push_back(
          {std::move(lane), host ? LaneKind::kHostThread : LaneKind::kStream, true, 0});
    }
    recording_.ranks.push_back(std::move(recorded));
    return static_cast<int>(recording_.ranks.size()) - 1;
  }
  std::int32_t Group(const std::string& name, std::vector<std::int32_t> ranks,
                     const std::string& role = "") {
    return tables_.Group({name, "", role, std::move(ranks), 0});
  }

  // Adds an operation of rank index `rank`; returns its id.
  std::uint32_t Op(int rank, int lane, const std::string& name, std::int64_t start,
                   std::int64_t end, OpKind kind = OpKind::kCompute,
                   const std::vector<std::uint32_t>& after = {}) {
    RecordedRank& recorded = recording_.ranks[static_cast<std::size_t>(rank)];
    RecordedOp op;
    op.start = Picoseconds(start);
    op.end = Picoseconds(end);
    op.lane = lane;
    op.name = tables_.Name(name);
    op.kind = kind;
    op.first_dependency = static_cast<std::uint32_t>(recorded.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(after.size());
    for (const std::uint32_t id : after) {
      recorded.dependencies.push_back({id, DependencyKind::kAfter});
    }
    recorded.ops.push_back(op);
    recorded.step_end = std::max(recorded.step_end, op.end);
    return static_cast<std::uint32_t>(recorded.ops.size()) - 1;
  }
  std::uint32_t Communicate(int rank, int lane, CommunicationKind kind, std::int32_t group,
                            std::int64_t start, std::int64_t end, std::int32_t peer = -1,
                            const std::vector<std::uint32_t>& after = {}) {
    const std::uint32_t id =
        Op(rank, lane, ToString(kind), start, end, OpKind::kCommunication, after);
    RecordedRank& recorded = recording_.ranks[static_cast<std::size_t>(rank)];
    recorded.ops.back().communication = static_cast<std::int32_t>(recorded.communications.size());
    Communication communication;
    communication.kind = kind;
    communication.group = group;
    communication.peer = peer;
    communication.bytes = Bytes(1'000'000);
    recorded.communications.push_back(communication);
    return id;
  }
  Communication& LastCommunication(int rank) {
    return recording_.ranks[static_cast<std::size_t>(rank)].communications.back();
  }
  // Of the operation added last.
  void DependsOn(int rank, std::uint32_t op, DependencyKind kind) {
    RecordedRank& recorded = recording_.ranks[static_cast<std::size_t>(rank)];
    recorded.dependencies.push_back({op, kind});
    ++recorded.ops.back().dependency_count;
  }
  Recording& recording() { return recording_; }

 private:
  Recording recording_;
  RecordingTables tables_;
};

}  // namespace optimus::traces
