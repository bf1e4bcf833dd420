// Spans of pipeline schedules with F = 1 and B = 2 per chunk and free communication, by SimGrid.
// Closed forms: 1F1B (m + p - 1)(F + B); interleaved with p | m: m v (f + b) + (p - 1)(f + b)
// (Narayanan et al., SC 2021, section 2.2; shared calibration notes, invariants 1 and 2).

#include <ostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/profiled_experiment.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

using ::testing::HasSubstr;

struct Shape {
  int stages, chunks, micro_batches, group;
  int span;  // in units of one chunk's forward
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << "p" << s.stages << "v" << s.chunks << "m" << s.micro_batches << "g" << s.group;
}

class Shapes : public ::testing::TestWithParam<Shape> {};

TEST_P(Shapes, SpanBySimGrid) {
  const Shape& shape = GetParam();
  // ProfiledStages gives times of a whole stage, split evenly over its chunks.
  const auto built =
      testing::Build(testing::ProfiledExperiment({.stages = shape.stages,
                                                  .chunks = shape.chunks,
                                                  .micro_batches = shape.micro_batches,
                                                  .group = shape.group,
                                                  .forward_ms = 1.0 * shape.chunks,
                                                  .backward_ms = 2.0 * shape.chunks}));
  ASSERT_TRUE(built.ok()) << built.status();
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kAuto);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step, Picoseconds(shape.span * 1'000'000'000LL));
}

INSTANTIATE_TEST_SUITE_P(Literature, Shapes,
                         ::testing::Values(Shape{4, 1, 1, 0, 12}, Shape{4, 1, 2, 0, 15},
                                           Shape{2, 1, 2, 0, 9}, Shape{4, 2, 8, 0, 57},
                                           Shape{2, 2, 4, 0, 27}, Shape{4, 2, 6, 6, 45},
                                           Shape{4, 2, 10, 5, 69}, Shape{4, 2, 10, 6, 69}));

TEST(RefusedShapes, LastGroupShorterThanThePipeline) {
  const auto built = testing::Build(
      testing::ProfiledExperiment({.stages = 4, .chunks = 2, .micro_batches = 10, .group = 4}));
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument) << built.status();
}

TEST(RefusedShapes, GroupBelowStagesNamesTheAllowedRange) {
  const auto built = testing::Build(
      testing::ProfiledExperiment({.stages = 4, .chunks = 2, .micro_batches = 8, .group = 3}));
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument) << built.status();
  EXPECT_THAT(std::string(built.status().message()), HasSubstr("4"));
  EXPECT_THAT(std::string(built.status().message()), HasSubstr("8"));
}

}  // namespace
}  // namespace optimus
