#pragma once
// The cluster's links and the routes over them.
//
// Every port (a GPU, or a lane in lockstep) has an NVLink and a NIC, each full
// duplex: an up and a down link. Rails are separate networks; GPU t of a node is on rail t. Uplinks
// of the leaf switches are modelled only where they are oversubscribed, as one trunk per rail, leaf
// and direction (the spine's static routes are taken as perfectly spread).

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/cost_model.h"
#include "schedule/ir/schedule.h"
#include "sim/flow_network.h"
#include "sim/layout.h"
#include "sim/simgrid_runner.h"

namespace optimus::sim {

class Fabric {
 public:
  Fabric(const ir::Schedule& schedule, const Layout& layout, const MemberSets& ports,
         const CostModel& costs, const Options& options, FlowNetwork& network);

  // `scope` is kNvlink or kNic.
  RouteId SendRoute(std::uint32_t from_port, std::uint32_t to_port, LinkScope scope);
  // A synchronous ring loads every member's links in both directions all the time, and runs at the
  // pace of the slowest: one flow over all of them. Members in ring order.
  RouteId CollectiveRoute(absl::Span<const std::uint32_t> entities, LinkScope scope);

 private:
  struct Place {
    int rail = 0, leaf = 0;
  };
  struct Duplex {
    LinkId up = -1, down = -1;
  };
  Duplex AddDuplex(double bytes_per_s);
  const Duplex& PortLinks(std::uint32_t port, LinkScope scope);
  const Duplex& Trunk(Place place);
  void CrossLeaves(std::uint32_t from_port, std::uint32_t to_port, std::vector<LinkId>& links);

  const MemberSets& ports_;
  const CostModel& costs_;
  FlowNetwork& network_;
  double trunk_bytes_per_s_ = 0;                   // 0: trunks cannot bind
  std::vector<Place> places_;                      // by port: of its first GPU
  std::array<std::vector<Duplex>, 2> port_links_;  // NVLink, NIC; by port, made when first used
  std::map<std::pair<int, int>, Duplex> trunks_;   // by (rail, leaf)
};

}  // namespace optimus::sim
