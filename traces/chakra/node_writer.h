#pragma once
// Operations of a rank as nodes.

#include <cstdint>
#include <vector>

#include "traces/chakra/et_subset.pb.h"
#include "traces/chakra/message_tags.h"
#include "traces/chakra/own_format.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

class NodeWriter {
 public:
  // All outlive it. `recording` passes CheckRecording; `tags` as MessageTags says.
  NodeWriter(const Recording& recording, const RecordedRank& rank,
             const std::vector<std::int32_t>& tags);
  // Of the operations one after another, from 0 on.
  void Write(std::size_t op, ::optimus::chakra::Node& node);

 private:
  // Where a lane's number stands as an attribute: a thread's or stream's own one, if no other has
  // the same, else its place.
  void NumberLanes();
  // Whether the order of tables follows from that of the operations: what need not be said then.
  void FindGaps();
  void AddTimes(const RecordedOp& op, ::optimus::chakra::Node& node) const;
  void AddLane(const RecordedOp& op, ::optimus::chakra::Node& node) const;
  void AddWork(const RecordedOp& op, ::optimus::chakra::Node& node) const;
  void AddCommunication(const RecordedOp& op, ::optimus::chakra::Node& node);
  void AddCollective(const Communication& communication, ::optimus::chakra::Node& node) const;
  void AddMessage(const Communication& communication, std::int32_t tag,
                  ::optimus::chakra::Node& node) const;
  void AddSize(const Communication& communication, ::optimus::chakra::Node& node) const;
  void AddDependencies(std::size_t op, ::optimus::chakra::Node& node);
  void AddEndAfter(std::size_t op);
  void AddId(std::size_t op, std::size_t id);
  void AddOwn(const RecordedOp& op, ::optimus::chakra::Node& node);

  const Recording& recording_;
  const RecordedRank& rank_;
  const std::vector<std::int32_t>& tags_;
  std::vector<std::int64_t> lane_numbers_;
  std::vector<std::int64_t> last_of_lane_;  // -1: none yet
  std::vector<std::size_t> ids_;            // what the operation at hand comes after
  std::vector<std::size_t> seen_;           // the operation at which it came into ids_, + 1
  std::size_t next_tag_ = 0;
  bool communications_have_gaps_ = false, works_have_gaps_ = false, dependencies_have_gaps_ = false;
  std::int64_t next_communication_ = 0, next_work_ = 0, next_dependency_ = 0;
};

// Whether a group has all ranks of the job: ASTRA-sim's default group.
bool IsWorldGroup(const Recording& recording, const CommunicatorGroup& group);

}  // namespace optimus::traces::chakra
