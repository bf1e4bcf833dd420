// Which ways messages go, and that on each of them they arrive in the order in which they leave.

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor {
namespace {

// A route between programs: what one is of all ranks that run them.
struct ProgramRoute {
  std::int32_t source = 0, destination = 0;  // indices into Schedule::programs
  ir::Stream send_stream = ir::Stream::kForwardSend, receive_stream = ir::Stream::kForwardReceive;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const ProgramRoute&, const ProgramRoute&) = default;
};

struct Receipt {
  std::int32_t program = -1;
  std::uint32_t operation = 0;
};

using Receipts = absl::flat_hash_map<std::int32_t, Receipt>;  // by message

Receipts FindReceives(const ir::Schedule& schedule) {
  Receipts receipts;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const std::vector<ir::Operation>& operations = schedule.programs[p].operations;
    for (std::uint32_t id = 0; id < operations.size(); ++id) {
      if (operations[id].kind != ir::OperationKind::kReceive) continue;
      receipts[operations[id].message] = {static_cast<std::int32_t>(p), id};
    }
  }
  return receipts;
}

absl::Status OvertakesError(const ir::Schedule& schedule, const Receipt& earlier,
                            const Receipt& later) {
  const ir::Program& program = schedule.programs[later.program];
  return absl::UnimplementedError(absl::StrCat(
      "schedule '", schedule.name, "': rank ", ir::FirstRankOf(schedule, program), " has ",
      ir::Describe(schedule, program, later.operation), " (operation ", later.operation,
      ") before ", ir::Describe(schedule, program, earlier.operation), " (operation ",
      earlier.operation,
      "), but the messages are sent in the other order; hint: a backend that matches messages by "
      "order needs one order on both sides"));
}

// The last receive of a route so far; the next one must come after it in the receiver's program.
using Routes = std::map<ProgramRoute, Receipt>;

absl::Status AddSends(const ir::Schedule& schedule, std::int32_t source, const Receipts& receipts,
                      Routes& routes) {
  for (const ir::Operation& op : schedule.programs[source].operations) {
    if (op.kind != ir::OperationKind::kSend) continue;
    const Receipt& receive = receipts.at(op.message);
    const ir::Stream receive_stream =
        schedule.programs[receive.program].operations[receive.operation].stream;
    const auto [entry, added] =
        routes.try_emplace({source, receive.program, op.stream, receive_stream}, receive);
    if (added) continue;
    if (receive.operation < entry->second.operation) {
      return OvertakesError(schedule, entry->second, receive);
    }
    entry->second = receive;
  }
  return absl::OkStatus();
}

void AddRanks(const ir::Schedule& schedule, const ProgramRoute& route, std::vector<Route>& out) {
  const ir::Program& source = schedule.programs[route.source];
  const ir::Program& destination = schedule.programs[route.destination];
  const std::int32_t width = ir::LaneWidth(schedule);
  for (std::int32_t d = 0; d < schedule.world.dp; ++d) {
    for (std::int32_t i = 0; i < width; ++i) {
      out.push_back({ir::RankOf(schedule.world, source.stage, d, source.lane * width + i),
                     ir::RankOf(schedule.world, destination.stage, d, destination.lane * width + i),
                     route.send_stream, route.receive_stream});
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Route>> RoutesOf(const ir::Schedule& schedule) {
  const Receipts receipts = FindReceives(schedule);
  Routes routes;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    OPTIMUS_RETURN_IF_ERROR(AddSends(schedule, static_cast<std::int32_t>(p), receipts, routes));
  }
  std::vector<Route> out;
  for (const auto& [route, last] : routes) AddRanks(schedule, route, out);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace optimus::executor
