#include "sim/fabric.h"

#include <algorithm>

namespace optimus::sim {

Fabric::Fabric(const ir::Schedule& schedule, const Layout& layout, const MemberSets& ports,
               const CostModel& costs, const Options& options, FlowNetwork& network)
    : ports_(ports), costs_(costs), network_(network) {
  if (options.oversubscription > 1.0) {
    trunk_bytes_per_s_ = options.nodes_per_leaf * costs.LinkBandwidth(LinkScope::kNic).value() /
                         options.oversubscription;
  }
  const auto count = static_cast<std::uint32_t>(ports.instances());
  for (std::uint32_t port = 0; port < count; ++port) {
    const int rank = layout.FirstRank(ports.Members(port).front());
    const int node = rank / schedule.gpus_per_node;
    places_.push_back({rank % schedule.gpus_per_node, node / options.nodes_per_leaf});
  }
  port_links_.fill(std::vector<Duplex>(count));
}

Fabric::Duplex Fabric::AddDuplex(double bytes_per_s) {
  const BytesPerSecond bandwidth(bytes_per_s);
  return {network_.AddLink(bandwidth), network_.AddLink(bandwidth)};
}

const Fabric::Duplex& Fabric::PortLinks(std::uint32_t port, LinkScope scope) {
  Duplex& links = port_links_[scope == LinkScope::kNic ? 1 : 0][port];
  if (links.up < 0) links = AddDuplex(costs_.LinkBandwidth(scope).value());
  return links;
}

const Fabric::Duplex& Fabric::Trunk(Place place) {
  const auto [found, inserted] = trunks_.try_emplace({place.rail, place.leaf});
  if (inserted) found->second = AddDuplex(trunk_bytes_per_s_);
  return found->second;
}

void Fabric::CrossLeaves(std::uint32_t from_port, std::uint32_t to_port,
                         std::vector<LinkId>& links) {
  if (trunk_bytes_per_s_ == 0 || places_[from_port].leaf == places_[to_port].leaf) return;
  links.push_back(Trunk(places_[from_port]).up);
  links.push_back(Trunk(places_[to_port]).down);
}

RouteId Fabric::SendRoute(std::uint32_t from_port, std::uint32_t to_port, LinkScope scope) {
  std::vector<LinkId> links{PortLinks(from_port, scope).up, PortLinks(to_port, scope).down};
  if (scope == LinkScope::kNic) CrossLeaves(from_port, to_port, links);
  return network_.AddRoute(std::move(links));
}

RouteId Fabric::CollectiveRoute(absl::Span<const std::uint32_t> entities, LinkScope scope) {
  std::vector<std::uint32_t> ring;
  for (const std::uint32_t entity : entities) {
    const std::uint32_t port = ports_.InstanceOf(entity);
    if (ring.empty() || ring.back() != port) ring.push_back(port);
  }
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Duplex& own = PortLinks(ring[i], scope);
    links.push_back(own.up);
    links.push_back(own.down);
    if (scope == LinkScope::kNic) CrossLeaves(ring[i], ring[(i + 1) % ring.size()], links);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return network_.AddRoute(std::move(links));
}

}  // namespace optimus::sim
