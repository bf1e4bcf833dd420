#include "tools/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;

// A step of 100 ms of which a GPU computes 60.
Emulation OnTime() {
  Emulation e;
  e.step_s = e.measured_step_s = 0.1;
  e.compute_s = e.measured_compute_s = 0.06;
  return e;
}

TEST(EmulationTest, TwoPercentOfTheStepIsAllowed) {
  EXPECT_TRUE(OnTime().kept_time());
  Emulation late = OnTime();
  late.late_s = 0.0019;
  EXPECT_TRUE(late.kept_time());
  late.late_s = 0.0021;
  EXPECT_FALSE(late.kept_time());
  Emulation shortened = OnTime();
  shortened.measured_compute_s = 0.0581;
  EXPECT_NEAR(shortened.short_s(), 0.0019, 1e-12);
  EXPECT_TRUE(shortened.kept_time());
  shortened.measured_compute_s = 0.0579;
  EXPECT_FALSE(shortened.kept_time());
}

// What launching takes belongs to computing, so it may also read long.
TEST(EmulationTest, ComputingThatReadsLongIsNotShort) {
  Emulation e = OnTime();
  e.measured_compute_s = 0.07;
  EXPECT_EQ(e.short_s(), 0);
  EXPECT_TRUE(e.kept_time());
}

TEST(EmulationTest, ABetterScaleIsOneTwoOrFiveTimesAPowerOfTen) {
  Emulation busy = OnTime();  // cannot keep up: 2 x 9
  busy.measured_step_s = 0.2;
  busy.late_s = 0.1;
  EXPECT_DOUBLE_EQ(busy.better_time_scale(), 20);
  busy.time_scale = 0.5;
  EXPECT_DOUBLE_EQ(busy.better_time_scale(), 10);
  busy.time_scale = 20;
  EXPECT_DOUBLE_EQ(busy.better_time_scale(), 500);
  Emulation shortened = OnTime();  // nine times what is allowed: 3 x 1.4
  shortened.measured_compute_s = 0.06 - 9 * 0.002;
  EXPECT_DOUBLE_EQ(shortened.better_time_scale(), 5);
  shortened.time_scale = 0.1;
  EXPECT_DOUBLE_EQ(shortened.better_time_scale(), 0.5);
  Emulation on_time = OnTime();
  on_time.time_scale = 3;
  EXPECT_EQ(on_time.better_time_scale(), 3);
  EXPECT_EQ(Emulation().better_time_scale(), 1);
}

TEST(EmulationTest, TakesItsFiguresFromARun) {
  ir::Timeline timeline;
  timeline.step = FromSeconds(0.2);
  timeline.entities.resize(2);
  timeline.entities[0].gpus = 1;
  timeline.entities[0].account.compute = FromSeconds(0.03);
  timeline.entities[0].account.optimizer = FromSeconds(0.01);
  timeline.entities[1].gpus = 3;
  timeline.entities[1].account.compute = FromSeconds(0.08);
  executor::Lateness lateness;  // in real time: ten times as long
  lateness.step = FromSeconds(1);
  lateness.late = FromSeconds(0.7);
  lateness.compute = FromSeconds(0.9);
  const Emulation e = EmulationOf(lateness, timeline, 10);
  EXPECT_EQ(e.time_scale, 10);
  EXPECT_DOUBLE_EQ(e.step_s, 0.1);
  EXPECT_DOUBLE_EQ(e.measured_step_s, 0.2);
  EXPECT_DOUBLE_EQ(e.late_s, 0.07);
  EXPECT_DOUBLE_EQ(e.compute_s, 0.09);
  EXPECT_DOUBLE_EQ(e.measured_compute_s, 0.07);
  EXPECT_NEAR(e.short_s(), 0.02, 1e-12);
  const std::string text = LateText(e);
  EXPECT_THAT(text, HasSubstr("up to 70.000 ms after their time"));
  EXPECT_THAT(text, HasSubstr("computing reads 20.000 ms short"));
  EXPECT_THAT(text, HasSubstr("should have taken 100.000 ms; give --time-scale=200"));
}

}  // namespace
}  // namespace optimus::tools
