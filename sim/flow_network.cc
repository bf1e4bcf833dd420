#include "sim/flow_network.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace optimus::sim {
namespace {

namespace s4u = simgrid::s4u;

// SimGrid wants whole bytes. Sizes and bandwidths are given to it in 1/1024 byte, so that the rest
// of a flow that becomes shared halfway is exact to a fraction of a picosecond.
constexpr double kUnitsPerByte = 1024.0;
constexpr std::size_t kKeepEnded = 1024;

}  // namespace

FlowNetwork::FlowNetwork(s4u::Engine& engine, std::function<void(std::uint32_t)> flow_ended)
    : flow_ended_(std::move(flow_ended)),
      root_(simgrid_compat::RootZone(engine)),
      zone_(simgrid_compat::AddStarZone(root_, "network")),
      sink_(simgrid_compat::AddHost(zone_, "sink")) {
  sink_->seal();
  simgrid_compat::SetStarRoutes(zone_, sink_, {}, {});
  simgrid_compat::OnCommEnd([this](simgrid_compat::CommReference comm) { OnCommEnd(comm); });
}

LinkId FlowNetwork::AddLink(BytesPerSecond bandwidth) {
  Link link;
  link.bandwidth = bandwidth.value();
  link.simgrid = simgrid_compat::AddLink(zone_, "link" + std::to_string(links_.size()),
                                         bandwidth.value() * kUnitsPerByte);
  link.simgrid->set_latency(0)->seal();
  links_.push_back(link);
  return static_cast<LinkId>(links_.size() - 1);
}

// In a star zone a route is what leads up from its source: every route gets a source of its own,
// and they all end in one sink.
RouteId FlowNetwork::AddRoute(std::vector<LinkId> links) {
  Route route;
  std::vector<s4u::Link*> up;
  route.bandwidth = links_[links.front()].bandwidth;
  for (const LinkId link : links) {
    route.bandwidth = std::min(route.bandwidth, links_[link].bandwidth);
    up.push_back(links_[link].simgrid);
  }
  route.host = simgrid_compat::AddHost(zone_, "route" + std::to_string(routes_.size()));
  route.host->seal();
  simgrid_compat::SetStarRoutes(zone_, route.host, up, {});
  route.links = std::move(links);
  routes_.push_back(std::move(route));
  return static_cast<RouteId>(routes_.size() - 1);
}

void FlowNetwork::Seal() {
  zone_->seal();
  simgrid_compat::SealRoot(root_);
}

std::optional<FlowNetwork::KnownEnd> FlowNetwork::Start(std::uint32_t flow, RouteId route,
                                                        Bytes bytes, std::int64_t now) {
  ++flows_;
  if (flow >= slots_.size()) slots_.resize(flow + 1);
  Flow& slot = slots_[flow];
  Route& its_route = routes_[route];
  slot.route = route;
  slot.generation = (slot.generation + 1) % kGenerations;
  slot.bytes = bytes.value();
  slot.start = now;
  slot.end = now + TransferTime(bytes, BytesPerSecond(its_route.bandwidth)).value();
  if (HasCompany(its_route, now)) {
    for (const std::uint32_t other : company_) Share(other, now);
    Share(flow, now);
    return std::nullopt;
  }
  for (const LinkId link : its_route.links) links_[link].alone = static_cast<std::int32_t>(flow);
  return KnownEnd{slot.end, slot.generation};
}

// Also collects in company_ those flows that had a link to themselves so far. One that ends at this
// very instant is no company.
bool FlowNetwork::HasCompany(const Route& route, std::int64_t now) {
  company_.clear();
  bool shared = false;
  for (const LinkId id : route.links) {
    const Link& link = links_[id];
    if (link.shared > 0) shared = true;
    if (link.alone < 0 || slots_[link.alone].end <= now) continue;
    company_.push_back(static_cast<std::uint32_t>(link.alone));
  }
  std::sort(company_.begin(), company_.end());
  company_.erase(std::unique(company_.begin(), company_.end()), company_.end());
  return shared || !company_.empty();
}

void FlowNetwork::Share(std::uint32_t flow, std::int64_t now) {
  Flow& slot = slots_[flow];
  const Route& route = routes_[slot.route];
  for (const LinkId id : route.links) {
    if (links_[id].alone == static_cast<std::int32_t>(flow)) links_[id].alone = -1;
    ++links_[id].shared;
  }
  const double moved = ToSeconds(Picoseconds(now - slot.start)) * route.bandwidth;
  const double rest = (static_cast<double>(slot.bytes) - moved) * kUnitsPerByte;
  slot.generation = (slot.generation + 1) % kGenerations;
  slot.communication = s4u::Comm::sendto_init(route.host, sink_);
  slot.communication->set_payload_size(
      static_cast<std::uint64_t>(std::max<long long>(std::llround(rest), 1)));
  // Numbered from 1: activities that are not ours carry no number.
  slot.communication->set_data(
      reinterpret_cast<void*>(static_cast<std::uintptr_t>(flow) + 1));  // NOLINT
  ++communications_;
  ++running_;
  slot.communication->start();
}

bool FlowNetwork::EndAlone(std::uint32_t flow, std::uint32_t generation) {
  Flow& slot = slots_[flow];
  if (slot.generation != generation) return false;
  for (const LinkId link : routes_[slot.route].links) {
    if (links_[link].alone == static_cast<std::int32_t>(flow)) links_[link].alone = -1;
  }
  slot.generation = (slot.generation + 1) % kGenerations;
  return true;
}

void FlowNetwork::OnCommEnd(simgrid_compat::CommReference comm) {
  const auto number = reinterpret_cast<std::uintptr_t>(comm.get_data<void>());  // NOLINT
  if (number == 0) return;
  const auto flow = static_cast<std::uint32_t>(number - 1);
  Flow& slot = slots_[flow];
  --running_;
  for (const LinkId link : routes_[slot.route].links) --links_[link].shared;
  ended_.push_back(std::move(slot.communication));
  if (ended_.size() >= kKeepEnded) ended_.erase(ended_.begin(), ended_.end() - kKeepEnded / 2);
  flow_ended_(flow);
}

}  // namespace optimus::sim
