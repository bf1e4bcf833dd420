#pragma once
// Writes the small Schedules that measuring runs.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/ir/schedule.h"

namespace optimus::executor {

// One program per stage, operation by operation. Every Add returns the operation's id in its
// program. Tags say in which repetition an operation is (as its micro-batch), so that errors tell.
class ScheduleWriter {
 public:
  ScheduleWriter(const std::string& name, ir::Parallelism world, int ranks_per_node);

  // Entries of the work tables; each call adds one.
  std::int32_t AddWork(const Kernel& kernel);
  std::int32_t AddWork(const CollectiveWork& work, std::int32_t group);
  std::int32_t AddTransfer(Bytes bytes);
  std::int32_t AddGroup(const ir::Group& group);
  // A kernel that does nothing: a moment of the compute stream at which something can be waited for
  // and go on.
  std::int32_t moment() const { return 0; }

  void SetRepetition(int repetition) { repetition_ = repetition; }
  using Ids = std::vector<std::uint32_t>;
  std::uint32_t AddKernel(int stage, std::int32_t work, const Ids& after = {});
  std::uint32_t AddCollective(int stage, std::int32_t work, const Ids& after = {});
  // `backward`: on the backward streams. A receive has no dependencies.
  std::uint32_t AddSend(int stage, int peer, std::int32_t message, std::int32_t transfer,
                        bool backward, const Ids& after);
  std::uint32_t AddReceive(int stage, int peer, std::int32_t message, std::int32_t transfer,
                           bool backward);

  ir::Schedule Take() { return std::move(schedule_); }

 private:
  std::uint32_t Add(int stage, ir::Operation op, const Ids& after);

  ir::Schedule schedule_;
  int repetition_ = 0;
};

}  // namespace optimus::executor
