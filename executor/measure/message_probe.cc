#include <algorithm>

#include "absl/strings/str_cat.h"
#include "executor/measure/probes.h"
#include "executor/measure/schedule_writer.h"

namespace optimus::executor {
namespace {

// Operations of one size in one repetition, after one moment at the start of the program.
//   First stage: send, receive, the moment when it can go on.
//   The next one: receive, the moment when it can go on, send.
constexpr std::uint32_t kOperations = 3;
constexpr std::uint32_t kFirstGoesOn = 2, kNextGoesOn = 1;

// Pairs of neighbouring stages that are in one node, or those that are not; where there is none,
// any. A stage is in one pair.
std::vector<std::int32_t> Pairs(int stages, int per_node, bool same_node) {
  std::vector<std::int32_t> pairs;
  for (int stage = 0; stage + 1 < stages; ++stage) {
    const bool together = stage / per_node == (stage + 1) / per_node;
    if (together == same_node) pairs.push_back(stage++);
  }
  for (int stage = 0; pairs.empty() && stage + 1 < stages; stage += 2) pairs.push_back(stage);
  return pairs;
}

// A stage is a rank, or between nodes a whole one: rank i of a node talks to rank i of the next.
ir::Parallelism StagesOf(const TransferCase& transfer, ProbeWorld world) {
  ir::Parallelism stages;
  const int node = world.ranks_per_node;
  const bool nodes =
      transfer.scope == LinkScope::kNic && world.ranks > node && world.ranks % node == 0;
  stages.dp = nodes ? node : 1;
  stages.pp = world.ranks / stages.dp;
  return stages;
}

struct Message {
  std::int32_t id = 0, transfer = 0;
};

class Pair {
 public:
  Pair(ScheduleWriter& writer, int stage) : writer_(writer), stage_(stage) {}

  void ThereAndBack(Message there, Message back) {
    writer_.AddSend(stage_, stage_ + 1, there.id, there.transfer, false, {first_});
    const std::uint32_t returned =
        writer_.AddReceive(stage_, stage_ + 1, back.id, back.transfer, true);
    first_ = writer_.AddKernel(stage_, writer_.moment(), {returned});
    const std::uint32_t arrived =
        writer_.AddReceive(stage_ + 1, stage_, there.id, there.transfer, false);
    next_ = writer_.AddKernel(stage_ + 1, writer_.moment(), {arrived});
    writer_.AddSend(stage_ + 1, stage_, back.id, back.transfer, true, {next_});
  }

 private:
  ScheduleWriter& writer_;
  int stage_;
  std::uint32_t first_ = 0, next_ = 0;  // the last moments; at first, the programs' first one
};

}  // namespace

absl::StatusOr<MessageProbe> MakeMessageProbe(const TransferCase& transfer, int repetitions,
                                              ProbeWorld world) {
  if (world.ranks < 2) {
    return absl::InvalidArgumentError(
        "messages cannot be measured by one rank; hint: start as many "
        "ranks as the schedule has");
  }
  const ir::Parallelism stages = StagesOf(transfer, world);
  ScheduleWriter writer("measure messages", stages, world.ranks_per_node);
  std::vector<std::int32_t> transfers;
  for (const Bytes size : transfer.sizes) transfers.push_back(writer.AddTransfer(size));
  MessageProbe probe;
  probe.sizes = static_cast<int>(transfers.size());
  probe.repetitions = repetitions;
  probe.first_stages = Pairs(stages.pp, stages.dp == 1 ? world.ranks_per_node : 1,
                             transfer.scope != LinkScope::kNic);
  for (int stage = 0; stage < stages.pp; ++stage) writer.AddKernel(stage, writer.moment());
  std::int32_t message = 0;
  for (const std::int32_t stage : probe.first_stages) {
    Pair pair(writer, stage);
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      writer.SetRepetition(repetition);
      for (const std::int32_t size : transfers) {
        pair.ThereAndBack({message, size}, {message + 1, size});
        message += 2;
      }
    }
  }
  probe.schedule = writer.Take();
  return probe;
}

// What the other side's moment takes is not on the way.
Series ReadMessages(const MessageProbe& probe, const StepTimes& times) {
  const ir::Parallelism& world = probe.schedule.world;
  Series series(static_cast<std::size_t>(probe.sizes));
  std::uint32_t first = 1 + static_cast<std::uint32_t>(probe.sizes) * kOperations;
  for (int repetition = 1; repetition <= probe.repetitions; ++repetition) {
    for (std::vector<double>& samples : series) {
      double sum = 0;
      for (const std::int32_t stage : probe.first_stages) {
        for (int d = 0; d < world.dp; ++d) {
          const auto& one = times[ir::RankOf(world, stage, d, 0)];
          const OperationTime& turn =
              times[ir::RankOf(world, stage + 1, d, 0)][first + kNextGoesOn];
          const std::int64_t start = one[first + kFirstGoesOn - kOperations].end_ns;
          const std::int64_t there_and_back =
              one[first + kFirstGoesOn].begin_ns - start - (turn.end_ns - turn.begin_ns);
          sum += static_cast<double>(there_and_back) / 2;
        }
      }
      samples.push_back(sum / static_cast<double>(probe.first_stages.size() * world.dp));
      first += kOperations;
    }
  }
  return series;
}

}  // namespace optimus::executor
