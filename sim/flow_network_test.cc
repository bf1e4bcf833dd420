#include "sim/flow_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "sim/child_process.h"

namespace optimus::sim {
namespace {

struct TestFlow {
  std::int64_t start = 0;  // ps
  std::int64_t bytes = 0;
  std::vector<int> links;
};

struct Case {
  std::vector<double> bandwidths;  // bytes per second
  std::vector<TestFlow> flows;
};

// Plays the flows on SimGrid; the ends in picoseconds, then the number of communications.
std::vector<std::int64_t> Play(const Case& test_case) {
  const auto result = RunInChild([&]() -> absl::StatusOr<std::string> {
    std::string name = "test";
    std::string quiet = "--log=root.thres:critical";
    std::array<char*, 3> arguments{name.data(), quiet.data(), nullptr};
    int count = 2;
    auto* engine = new simgrid::s4u::Engine(&count, arguments.data());
    simgrid_compat::ConfigureExactSharing();
    std::vector<std::int64_t> ends(test_case.flows.size(), -1);
    FlowNetwork network(*engine, [&](std::uint32_t flow) {
      ends[flow] = FromSeconds(simgrid::s4u::Engine::get_clock()).value();
    });
    for (const double bandwidth : test_case.bandwidths) network.AddLink(BytesPerSecond(bandwidth));
    std::vector<RouteId> routes;
    for (const TestFlow& flow : test_case.flows) routes.push_back(network.AddRoute(flow.links));
    network.Seal();
    // An action at a time: start of a flow, or the known end of one (with its generation).
    std::multimap<std::int64_t, std::pair<std::uint32_t, std::int64_t>> actions;
    for (std::uint32_t f = 0; f < test_case.flows.size(); ++f) {
      actions.insert({test_case.flows[f].start, {f, -1}});
    }
    simgrid_compat::Alarm* alarm_address = nullptr;
    auto act = [&] {
      while (!actions.empty() && static_cast<double>(actions.begin()->first) * 1e-12 <=
                                     simgrid::s4u::Engine::get_clock()) {
        const auto [now, action] = *actions.begin();
        const auto [f, generation] = action;
        actions.erase(actions.begin());
        if (generation >= 0) {
          if (network.EndAlone(f, static_cast<std::uint32_t>(generation))) ends[f] = now;
          continue;
        }
        const auto end = network.Start(f, routes[f], Bytes(test_case.flows[f].bytes), now);
        if (end.has_value()) actions.insert({end->time, {f, end->generation}});
      }
      if (!actions.empty()) {
        alarm_address->SetNoLaterThan(static_cast<double>(actions.begin()->first) * 1e-12);
      }
    };
    simgrid_compat::Alarm alarm(act);
    alarm_address = &alarm;
    alarm.SetNoLaterThan(0);
    engine->run();
    ends.push_back(network.communications());
    return std::string(reinterpret_cast<const char*>(ends.data()), ends.size() * sizeof ends[0]);
  });
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<std::int64_t> ends(result->bytes.size() / sizeof(std::int64_t));
  std::memcpy(ends.data(), result->bytes.data(), result->bytes.size());
  return ends;
}

// The twin: progressive filling (max-min fairness) from its definition, step by step in time.
class FluidTwin {
 public:
  explicit FluidTwin(const Case& test_case) : case_(test_case) {
    for (const TestFlow& flow : case_.flows) rest_.push_back(static_cast<double>(flow.bytes));
    ends_.assign(case_.flows.size(), -1);
  }

  std::vector<double> Ends() {
    double now = 0;
    while (std::count(ends_.begin(), ends_.end(), -1.0) > 0) {
      const std::vector<double> rates = Rates(now);
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t f = 0; f < rest_.size(); ++f) {
        if (Start(f) > now) next = std::min(next, Start(f));
        if (rates[f] > 0) next = std::min(next, now + rest_[f] / rates[f]);
      }
      for (std::size_t f = 0; f < rest_.size(); ++f) {
        if (rates[f] <= 0) continue;
        rest_[f] -= rates[f] * (next - now);
        if (rest_[f] < 1e-6) ends_[f] = next;
      }
      now = next;
    }
    return ends_;
  }

 private:
  // Bytes per picosecond. Again and again the link with the least share per flow is filled.
  std::vector<double> Rates(double now) const {
    std::vector<double> left;
    for (const double bandwidth : case_.bandwidths) left.push_back(bandwidth * 1e-12);
    std::vector<double> rates(rest_.size(), 0);
    std::vector<bool> open(rest_.size());
    for (std::size_t f = 0; f < rest_.size(); ++f) {
      open[f] = Start(f) <= now && ends_[f] < 0;
    }
    while (std::count(open.begin(), open.end(), true) > 0) {
      int tightest = -1;
      double share = std::numeric_limits<double>::infinity();
      for (int link = 0; link < static_cast<int>(left.size()); ++link) {
        const int users = Users(link, open);
        if (users > 0 && left[link] / users < share) {
          share = left[link] / users;
          tightest = link;
        }
      }
      for (std::size_t f = 0; f < rest_.size(); ++f) {
        const std::vector<int>& links = case_.flows[f].links;
        if (!open[f] || std::find(links.begin(), links.end(), tightest) == links.end()) continue;
        open[f] = false;
        rates[f] = share;
        for (const int link : links) left[link] -= share;
      }
    }
    return rates;
  }
  double Start(std::size_t f) const { return static_cast<double>(case_.flows[f].start); }
  int Users(int link, const std::vector<bool>& open) const {
    int users = 0;
    for (std::size_t f = 0; f < open.size(); ++f) {
      const std::vector<int>& links = case_.flows[f].links;
      if (open[f] && std::find(links.begin(), links.end(), link) != links.end()) ++users;
    }
    return users;
  }

  const Case& case_;
  std::vector<double> rest_;
  std::vector<double> ends_;
};

TEST(FlowNetworkTest, FlowsThatNeverMeetNeedNoCommunication) {
  const Case test_case{{1e11, 1e11}, {{0, 1000, {0}}, {0, 500, {1}}, {10000, 100, {0}}}};
  EXPECT_EQ(Play(test_case), (std::vector<std::int64_t>{10000, 5000, 11000, 0}));
}

TEST(FlowNetworkTest, TwoEqualFlowsTakeTwiceAsLong) {
  const Case test_case{{1e11}, {{0, 1000, {0}}, {0, 1000, {0}}}};
  EXPECT_EQ(Play(test_case), (std::vector<std::int64_t>{20000, 20000, 2}));
}

TEST(FlowNetworkTest, ALateFlowSharesOnlyTheRest) {
  // Alone for 4 ns (400 bytes), shared until the other 600 bytes are through, alone again.
  const Case test_case{{1e11}, {{0, 1000, {0}}, {4000, 1000, {0}}}};
  EXPECT_EQ(Play(test_case), (std::vector<std::int64_t>{16000, 20000, 2}));
}

TEST(FlowNetworkTest, ManyLinksCountAsTheTightest) {
  // Flow 0 crosses both links; flow 1 shares the narrow one, flow 2 the wide one.
  const Case test_case{{1e11, 3e11}, {{0, 1000, {0, 1}}, {0, 1000, {0}}, {0, 5000, {1}}}};
  EXPECT_EQ(Play(test_case), (std::vector<std::int64_t>{20000, 20000, 20000, 3}));
}

TEST(FlowNetworkTest, SizeOfTheRouteDoesNotChangeTheShare) {
  const Case test_case{{1e11, 1e11, 1e11, 1e11, 1e11},
                       {{0, 1000, {0, 1, 2, 3, 4}}, {0, 1000, {2}}}};
  EXPECT_EQ(Play(test_case), (std::vector<std::int64_t>{20000, 20000, 2}));
}

TEST(FlowNetworkTest, EqualsProgressiveFilling) {
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    std::mt19937 random(seed);
    Case test_case;
    for (int link = 0; link < 6; ++link)
      test_case.bandwidths.push_back(1e10 * static_cast<double>(1 + random() % 9));
    for (int f = 0; f < 30; ++f) {
      TestFlow flow{static_cast<std::int64_t>(random() % 2000000),
                    static_cast<std::int64_t>(1 + random() % 20000),
                    {}};
      for (int link = 0; link < 6; ++link) {
        if (random() % 3 == 0) flow.links.push_back(link);
      }
      if (flow.links.empty()) flow.links.push_back(static_cast<int>(random() % 6));
      test_case.flows.push_back(flow);
    }
    const std::vector<double> expected = FluidTwin(test_case).Ends();
    const std::vector<std::int64_t> ends = Play(test_case);
    EXPECT_GT(ends.back(), 2) << "nothing was shared, seed " << seed;
    for (std::size_t f = 0; f < expected.size(); ++f) {
      // Each of some ten conversions to whole picoseconds may be half a picosecond off.
      EXPECT_NEAR(static_cast<double>(ends[f]), expected[f], 4.0) << "seed " << seed << " " << f;
    }
  }
}

}  // namespace
}  // namespace optimus::sim
