#pragma once
// How long the transfers of an emulated run take. A communicator with a pacing exchanges its
// headers over MPI as always, moves no payload, and ends every operation at its nominal end.

#include <cstdint>

#include "absl/types/span.h"
#include "base/kernel.h"
#include "base/units.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

class Pacing {
 public:
  virtual ~Pacing() = default;
  // Before the first step of a schedule; Communicator::Connect of the world calls it.
  virtual void Connect(const ir::Schedule& schedule) = 0;
  // Nominal end of a collective between these global ranks (ascending), the last of which was
  // ready at `ready_ns`. Never asked for a group of one rank.
  virtual std::int64_t CollectiveEndNs(const CollectiveWork& work,
                                       absl::Span<const std::int32_t> ranks,
                                       std::int64_t ready_ns) const = 0;
  // Nominal arrival of a message (`message` as Operation::message) from one global rank to another,
  // sent at `ready_ns`.
  virtual std::int64_t MessageEndNs(std::int32_t message, Bytes bytes, std::int32_t source,
                                    std::int32_t destination, std::int64_t ready_ns) const = 0;
};

}  // namespace optimus::executor
