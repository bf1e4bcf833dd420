#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "schedule/bubble/list_slots.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

using testing::RandomProblem;
using testing::RandomShape;

RandomShape ShapeOf(std::uint64_t seed) {
  RandomShape shape;
  shape.seed = seed;
  shape.stages = 1 + static_cast<std::int32_t>(seed % 4);
  shape.tensor_parallel = 1 << (seed / 4 % 3);
  shape.encoders = 1 + static_cast<std::int32_t>(seed / 12 % 2);
  shape.micro_batches = 1 + static_cast<std::int32_t>(seed / 24 % 5);
  shape.encoder_scale = seed % 3 == 0 ? 40 : 9;
  return shape;
}

TEST(Capacity, CountsLikeAClock) {
  const Slots slots = {{Picoseconds(-kForever), Picoseconds(3)},
                       {Picoseconds(5), Picoseconds(6)},
                       {Picoseconds(10), Picoseconds(14)},
                       {Picoseconds(20), Picoseconds(kForever)}};
  const auto idle_at = [&](Ps t) {
    return std::any_of(slots.begin(), slots.end(), [&](Interval slot) {
      return slot.start.value() <= t && t < slot.end.value();
    });
  };
  const Capacity capacity(slots);
  Ps count = -5;
  for (Ps t = -5; t < 30; ++t) {
    EXPECT_EQ(capacity.Before(t), count) << t;
    if (idle_at(t)) {
      ++count;
      EXPECT_EQ(capacity.Reach(count), t + 1);
      EXPECT_EQ(capacity.Reach(10 * count - 4, 10), 10 * t + 6);
    }
  }
}

TEST(Capacity, ZeroMayLieInABusyTime) {
  const Slots slots = {{Picoseconds(-kForever), Picoseconds(-4)},
                       {Picoseconds(2), Picoseconds(kForever)}};
  const Capacity capacity(slots);
  EXPECT_EQ(capacity.Before(-1), 0);
  EXPECT_EQ(capacity.Before(-6), -2);
  EXPECT_EQ(capacity.Before(5), 3);
}

// The fluid bound once more, picosecond by picosecond and for every shift and end: the least sum
// for which the three conditions of bounds.cc hold. One encoder, without data-parallel
// communication.
class CountedFluid {
 public:
  explicit CountedFluid(const Problem& problem) : problem_(problem) {}

  Ps Step() const {
    Ps least = kForever;
    const Ps done = problem_.llm.step.value() - problem_.llm.after_reduction.value();
    for (Ps end = done; end < done + 400; ++end) {
      for (Ps shift = 0; shift < 400 && shift + end < least; ++shift) {
        if (Holds(shift, end)) least = shift + end;
      }
    }
    return least + problem_.llm.after_reduction.value();
  }

 private:
  const EncoderWork& encoder() const { return problem_.encoders[0]; }

  static bool IdleAt(const LlmStage& stage, Ps t) {
    if (t < stage.first_start.value() || t >= stage.last_end.value()) return true;
    return std::any_of(stage.compute_idle.begin(), stage.compute_idle.end(), [&](Interval slot) {
      return slot.start.value() <= t && t < slot.end.value();
    });
  }
  Ps Idle(Ps from, Ps to) const {
    Ps idle = 0;
    for (const LlmStage& stage : problem_.llm.stages) {
      for (Ps t = from; t < to; ++t) idle += IdleAt(stage, t) ? problem_.lanes : 0;
    }
    return idle;
  }
  Ps Work(const std::vector<StageWork>& works) const {
    Ps sum = 0;
    for (const StageWork& work : works) {
      for (const WorkOp& op : work.ops) {
        if (op.resource == Resource::kCompute) sum += op.duration.value();
      }
    }
    return sum * PlaceOf(problem_, encoder(), 0, 0).lane_count;
  }

  bool Holds(Ps shift, Ps end) const {
    const Ps forward = Work(encoder().forward), backward = Work(encoder().backward);
    const std::vector<std::int32_t>& owned = encoder().micro_batches;
    const auto count = static_cast<Ps>(owned.size());
    for (Ps k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(owned[static_cast<std::size_t>(k)]);
      const Ps deadline = problem_.llm.forward_needed[i].value();
      Ps due = 0, late = 0;
      for (const std::int32_t other : owned) {
        const auto o = static_cast<std::size_t>(other);
        if (problem_.llm.forward_needed[o].value() <= deadline) due += forward;
        if (problem_.llm.backward_made[o] >= problem_.llm.backward_made[i]) late += backward;
      }
      if (forward > 0 && due > Idle(-shift, deadline)) return false;
      if (late > Idle(problem_.llm.backward_made[i].value(), end)) return false;
    }
    return count * (forward + backward) <= Idle(-shift, end);
  }

  const Problem& problem_;
};

TEST(Bounds, FluidIsWhatCountingGives) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomShape shape = ShapeOf(seed);
    shape.encoders = 1;
    shape.micro_batches = std::min(shape.micro_batches, 3);
    shape.encoder_scale = 6;
    shape.llm_scale = 8;
    shape.sync = shape.transfers = false;
    const Problem problem = RandomProblem(shape);
    EXPECT_EQ(LowerBounds(problem).fluid.value(), CountedFluid(problem).Step()) << "seed " << seed;
  }
}

TEST(Bounds, NoScheduleIsFaster) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Problem problem = RandomProblem(ShapeOf(seed));
    const Bounds bounds = LowerBounds(problem);
    EXPECT_GE(bounds.work, problem.llm.step);
    EXPECT_GE(bounds.fluid, problem.llm.step);
    SearchOptions options;
    options.paper_fallback = false;
    const auto list = ScheduleList(problem, options);
    const auto paper = SchedulePaper(problem, {});
    ASSERT_TRUE(list.ok() && paper.ok());
    for (const Picoseconds latency : {list->latency, paper->latency}) {
      EXPECT_GE(latency, bounds.work) << "seed " << seed;
      EXPECT_GE(latency, bounds.fluid) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace optimus::bubble
