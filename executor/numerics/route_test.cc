#include "executor/numerics/route.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"

namespace optimus::executor::numerics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Forwards of one micro-batch along `stops`: a message wherever the stage changes.
class Ways {
 public:
  explicit Ways(int stages) : builder_({1, stages, 1}) {
    builder_.schedule().modules = {{"llm", 1}};
    builder_.schedule().transfers = {{"activations", Bytes(1), Picoseconds(0)}};
  }
  Ways& Go(const std::vector<Stop>& stops) {
    for (std::size_t i = 0; i < stops.size(); ++i) {
      const auto tag = ir::testing::MakeTag(0, 0, 0, Phase::kForward, -1, stops[i].chunk);
      const std::uint32_t kernel = builder_.AddKernel(stops[i].stage, tag, 1);
      if (i + 1 == stops.size() || stops[i].stage == stops[i + 1].stage) continue;
      Send(stops[i], stops[i + 1], kernel);
    }
    return *this;
  }
  ir::Schedule& schedule() { return builder_.schedule(); }
  absl::StatusOr<Route> Find() { return Route::Of(builder_.schedule()); }

 private:
  void Send(const Stop& from, const Stop& to, std::uint32_t kernel) {
    const auto send =
        builder_.AddSend(from.stage, ir::Stream::kForwardSend, to.stage, messages_, 0, {kernel});
    const auto receive =
        builder_.AddReceive(to.stage, ir::Stream::kForwardReceive, from.stage, messages_, 0);
    ++messages_;
    Tag(from, send);
    Tag(to, receive);
  }
  void Tag(const Stop& stop, std::uint32_t id) {
    builder_.schedule().programs[stop.stage].operations[id].tag =
        ir::testing::MakeTag(ir::kNoModule, -1, 0, Phase::kForward, -1, stop.chunk);
  }
  ir::testing::ScheduleBuilder builder_;
  int messages_ = 0;
};

void ExpectInOrder(Ways ways, const std::vector<Stop>& stops) {
  const auto route = ways.Find();
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->virtual_stages(), static_cast<int>(stops.size()));
  for (std::size_t i = 0; i < stops.size(); ++i) {
    EXPECT_EQ(route->VirtualStageOf(stops[i]), static_cast<int>(i));
  }
}

TEST(Route, FollowsLoopsAndVs) {
  for (const std::vector<Stop>& stops :
       std::vector<std::vector<Stop>>{{{0, 0}},
                                      {{0, 0}, {0, 1}, {0, 2}},
                                      {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}},
                                      {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {1, 1}, {0, 1}},
                                      {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {1, 2}}}) {
    ExpectInOrder(Ways(3).Go(stops), stops);
  }
}

TEST(Route, KnowsNoOtherChunks) {
  const auto route = Ways(2).Go({{0, 0}, {1, 0}}).Find();
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->VirtualStageOf({1, 1}), -1);
  EXPECT_EQ(route->VirtualStageOf({2, 0}), -1);
}

// The messages are those of a V: what the modules say makes the difference.
TEST(Route, FollowsTwoDirections) {
  Ways ways(2);
  ways.Go({{0, 0}, {1, 0}}).Go({{1, 1}, {0, 1}});
  ways.schedule().modules[0].both_directions = true;
  const auto route = ways.Find();
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->virtual_stages(), 2);
  EXPECT_EQ(route->VirtualStageOf({1, 0}), 1);
  EXPECT_EQ(route->VirtualStageOf({1, 1}), 0);
  EXPECT_EQ(route->VirtualStageOf({0, 1}), 1);
}

TEST(Route, RefusesAnythingElseInOneLine) {
  const auto forked = Ways(3).Go({{0, 0}, {1, 0}}).Go({{0, 0}, {2, 0}}).Find();
  EXPECT_EQ(forked.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(forked.status().message()),
              AllOf(HasSubstr("stage 0, operation 3"), HasSubstr("beside another way"),
                    HasSubstr("run without --numerics")));
  const auto apart = Ways(4).Go({{0, 0}, {1, 0}}).Go({{2, 0}, {3, 0}}).Find();
  EXPECT_EQ(apart.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(apart.status().message()),
              AllOf(HasSubstr("stage 2, operation 0"), HasSubstr("nothing leads to")));
}

}  // namespace
}  // namespace optimus::executor::numerics
