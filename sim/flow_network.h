#pragma once
// Bandwidth sharing. A flow moves bytes over a set of links at the least fair share of any of them,
// as SimGrid computes it.
//
// SimGrid is asked only where links are shared: a flow that has all its links to itself has a known
// end, and the caller is told that end. When a second flow comes to one of the links, the first
// becomes a SimGrid communication of what is left of it, and so does the second. The result is the
// same; most flows never meet another one, and a communication costs fifty times more than an
// event.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "sim/simgrid_compat.hpp"

namespace optimus::sim {

using LinkId = std::int32_t;
using RouteId = std::int32_t;

class FlowNetwork {
 public:
  // `flow_ended` is called, on SimGrid's clock, when a flow that shared a link has ended.
  FlowNetwork(simgrid::s4u::Engine& engine, std::function<void(std::uint32_t flow)> flow_ended);

  LinkId AddLink(BytesPerSecond bandwidth);
  RouteId AddRoute(std::vector<LinkId> links);  // each link once; not empty
  void Seal();                                  // no more links and routes

  struct KnownEnd {
    std::int64_t time = 0;  // picoseconds
    std::uint32_t generation = 0;
  };
  // Starts flow `flow` (a number of the caller's, free again once the flow has ended) at `now`,
  // which is SimGrid's clock in picoseconds. If its end is known, the caller has to call EndAlone
  // then; otherwise flow_ended will be called.
  std::optional<KnownEnd> Start(std::uint32_t flow, RouteId route, Bytes bytes, std::int64_t now);
  // False if the flow got company since: its end is another one.
  bool EndAlone(std::uint32_t flow, std::uint32_t generation);

  static constexpr std::uint32_t kGenerations = 1U << 25;
  std::int64_t flows() const { return flows_; }
  std::int64_t communications() const { return communications_; }  // flows that SimGrid ran
  bool idle() const { return running_ == 0; }                      // SimGrid runs none now

 private:
  struct Link {
    double bandwidth = 0;     // bytes per second
    std::int32_t alone = -1;  // flow that has the link to itself, or -1
    std::int32_t shared = 0;  // communications on it
    simgrid::s4u::Link* simgrid = nullptr;
  };
  struct Route {
    std::vector<LinkId> links;
    double bandwidth = 0;  // of the narrowest link
    simgrid::s4u::Host* host = nullptr;
  };
  struct Flow {
    RouteId route = -1;
    std::uint32_t generation = 0;
    std::int64_t start = 0, end = 0;  // picoseconds, as if alone
    std::int64_t bytes = 0;
    simgrid::s4u::CommPtr communication;
  };

  bool HasCompany(const Route& route, std::int64_t now);
  void Share(std::uint32_t flow, std::int64_t now);
  void OnCommEnd(simgrid_compat::CommReference comm);

  std::function<void(std::uint32_t)> flow_ended_;
  simgrid::s4u::NetZone* root_;
  simgrid::s4u::NetZone* zone_;
  simgrid::s4u::Host* sink_;
  std::vector<Link> links_;
  std::vector<Route> routes_;
  std::vector<Flow> slots_;             // by the caller's number
  std::vector<std::uint32_t> company_;  // scratch: flows met on a route
  // Ended communications: SimGrid 3.32 still uses one after its own callback.
  std::vector<simgrid::s4u::CommPtr> ended_;
  std::int64_t flows_ = 0;
  std::int64_t communications_ = 0;
  std::int64_t running_ = 0;  // of them
};

}  // namespace optimus::sim
