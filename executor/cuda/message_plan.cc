#include "executor/cuda/message_plan.h"

#include <utility>

#include "executor/runtime/runtime.h"

namespace optimus::executor::cuda {
namespace {

// The streams on which each message of the schedule is sent and received.
std::map<std::int32_t, std::pair<ir::Stream, ir::Stream>> StreamsOf(const ir::Schedule& schedule) {
  std::map<std::int32_t, std::pair<ir::Stream, ir::Stream>> streams;
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind == ir::OperationKind::kSend) streams[op.message].first = op.stream;
      if (op.kind == ir::OperationKind::kReceive) streams[op.message].second = op.stream;
    }
  }
  return streams;
}

}  // namespace

std::map<std::int32_t, Route> RoutesOfMessages(const ir::Schedule& schedule, int rank) {
  const auto streams = StreamsOf(schedule);
  const RankPlace place = PlaceOf(schedule, rank);
  const ir::Program& program = schedule.programs[static_cast<std::size_t>(place.program)];
  const std::int32_t width = ir::LaneWidth(schedule);
  std::map<std::int32_t, Route> routes;
  for (const ir::Operation& op : program.operations) {
    if (op.kind != ir::OperationKind::kSend && op.kind != ir::OperationKind::kReceive) continue;
    // Rank i of a lane talks to rank i of the peer's lane.
    const std::int32_t lane = op.peer_lane < 0 ? program.lane : op.peer_lane;
    const std::int32_t peer =
        ir::RankOf(schedule.world, op.peer_stage, place.d, lane * width + place.t % width);
    const auto& [send, receive] = streams.at(op.message);
    const bool sends = op.kind == ir::OperationKind::kSend;
    routes[op.message] = {sends ? rank : peer, sends ? peer : rank, send, receive};
  }
  return routes;
}

}  // namespace optimus::executor::cuda
