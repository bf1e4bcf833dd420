#pragma once
// The one header that knows SimGrid's versions: everything here compiles from 3.32 to 4.1. The rest
// of this folder uses SimGrid only through it and through calls that never changed.

#include <simgrid/s4u.hpp>  // before version.h, which is not self-contained in 3.32
//
#include <simgrid/version.h>

#include <algorithm>
#include <functional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optimus::sim::simgrid_compat {

namespace s4u = simgrid::s4u;

#if SIMGRID_VERSION_MAJOR >= 4
inline s4u::NetZone* RootZone(s4u::Engine& engine) { return engine.get_netzone_root(); }
inline s4u::NetZone* AddStarZone(s4u::NetZone* parent, const std::string& name) {
  return parent->add_netzone_star(name);
}
inline s4u::Host* AddHost(s4u::NetZone* zone, const std::string& name) {
  return zone->add_host(name, 1.0);
}
inline s4u::Link* AddLink(s4u::NetZone* zone, const std::string& name, double bytes_per_s) {
  return zone->add_link(name, bytes_per_s);
}
inline void SealRoot(s4u::NetZone*) {}  // the engine seals its own root
#else
// The first zone without a parent becomes the root.
inline s4u::NetZone* RootZone(s4u::Engine&) { return s4u::create_full_zone("root"); }
inline s4u::NetZone* AddStarZone(s4u::NetZone* parent, const std::string& name) {
  return s4u::create_star_zone(name)->set_parent(parent);
}
inline s4u::Host* AddHost(s4u::NetZone* zone, const std::string& name) {
  return zone->create_host(name, 1.0);
}
inline s4u::Link* AddLink(s4u::NetZone* zone, const std::string& name, double bytes_per_s) {
  return zone->create_link(name, bytes_per_s);
}
inline void SealRoot(s4u::NetZone* root) { root->seal(); }
#endif

// In a star zone: the links from a host to everyone (`up`), and from everyone to it (`down`).
inline void SetStarRoutes(s4u::NetZone* zone, s4u::Host* host, const std::vector<s4u::Link*>& up,
                          const std::vector<s4u::Link*>& down) {
  std::vector<s4u::LinkInRoute> up_route;
  std::vector<s4u::LinkInRoute> down_route;
  for (const s4u::Link* link : up) up_route.emplace_back(link);
  for (const s4u::Link* link : down) down_route.emplace_back(link);
#if SIMGRID_VERSION_MAJOR > 3 || SIMGRID_VERSION_MINOR >= 36
  zone->add_route(host, nullptr, up_route, false);
  zone->add_route(nullptr, host, down_route, false);
#else
  zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up_route, false);
  zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, down_route, false);
#endif
}

#if SIMGRID_VERSION_MAJOR > 3 || SIMGRID_VERSION_MINOR >= 34
using CommReference = const s4u::Comm&;
inline void OnCommEnd(const std::function<void(CommReference)>& callback) {
  s4u::Comm::on_completion_cb(callback);
}
inline constexpr char kTimingPrecision[] = "precision/timing";
#else
using CommReference = const s4u::Activity&;  // 3.32 has one signal for activities of every kind
inline void OnCommEnd(const std::function<void(CommReference)>& callback) {
  s4u::Activity::on_completion_cb(callback);
}
inline constexpr char kTimingPrecision[] = "surf/precision";
#endif

// Plain fair sharing: no TCP corrections, no coupling of the two directions, no window bound, and
// events that are a picosecond apart stay apart.
inline void ConfigureExactSharing() {
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:no");
  s4u::Engine::set_config("network/TCP-gamma:1e30");  // 0 means "off" only from 3.34 on
  s4u::Engine::set_config(absl::StrCat(kTimingPrecision, ":1e-12"));
}

// One alarm on SimGrid's clock. kernel::timer::Timer is an installed header but not documented as
// user API: this is its only use.
class Alarm {
 public:
  explicit Alarm(std::function<void()> ring) : ring_(std::move(ring)) {}
  // Rings at `date` (seconds), or earlier if it is already set to an earlier date; at once where
  // the clock is a rounding past the date (a timer in the past aborts SimGrid).
  void SetNoLaterThan(double date) {
    date = std::max(date, s4u::Engine::get_clock());
    if (timer_ != nullptr) {
      if (timer_->get_date() <= date) return;
      timer_->remove();
    }
    timer_ = simgrid::kernel::timer::Timer::set(date, [this] {
      timer_ = nullptr;
      ring_();
    });
  }

 private:
  std::function<void()> ring_;
  simgrid::kernel::timer::Timer* timer_ = nullptr;
};

}  // namespace optimus::sim::simgrid_compat
