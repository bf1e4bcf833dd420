#pragma once
// Problems for the tests of the automatic zero-bubble schedules, and what every result must be.

#include <gtest/gtest.h>

#include <random>

#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// Uniform times, `limit` on every stage; two chunks are placed in a V.
inline ZbProblem UniformProblem(int stages, int chunks, int micro_batches, int f, int b, int w,
                                int communication, double limit) {
  ZbProblem problem;
  problem.stages = stages;
  problem.chunks = chunks;
  problem.micro_batches = micro_batches;
  if (chunks == 2) problem.placement = Placement::kV;
  problem.times = UniformTimes(Order{stages, chunks, micro_batches, {}}, Picoseconds(f),
                               Picoseconds(b), Picoseconds(w), Picoseconds(communication));
  problem.memory_limit.assign(stages, limit);
  return problem;
}

// Other times on every stage and chunk, 0 to 10; any limit that is allowed, share and objective.
inline ZbProblem RandomProblem(std::mt19937& random, int stages, int chunks, int micro_batches) {
  const auto draw = [&random](int most) { return static_cast<int>(random() % (most + 1)); };
  ZbProblem problem =
      UniformProblem(stages, chunks, micro_batches, draw(10), draw(10), draw(10), draw(3), chunks);
  const bool uniform = draw(1) == 0;
  for (int s = 0; s < stages; ++s) {
    for (int c = 0; c < chunks && !uniform; ++c) {
      problem.times.forward[s][c] = Picoseconds(draw(10));
      problem.times.backward_data[s][c] = Picoseconds(draw(10));
      problem.times.backward_weight[s][c] = Picoseconds(draw(10));
    }
    problem.memory_limit[s] += draw(2 * stages * chunks) / 2.0;
  }
  problem.shares.weight_share = draw(2) / 2.0;
  problem.objective = draw(1) == 0 ? ZbObjective::kSpan : ZbObjective::kStageSpan;
  return problem;
}

// The score of an order that must be valid, without deadlock, and within memory.
inline ZbScore CheckedScore(const ZbProblem& problem, const Order& order) {
  const auto span = EvaluateOrder(order, problem.times);
  const auto peaks = PeakActivations(order, problem.shares);
  EXPECT_TRUE(span.ok()) << span.status();
  EXPECT_TRUE(peaks.ok()) << peaks.status();
  if (!span.ok() || !peaks.ok()) return {};
  for (int s = 0; s < problem.stages; ++s) {
    EXPECT_LE((*peaks)[s], problem.memory_limit[s] + 1e-6) << "stage " << s;
  }
  return ScoreOf(span->first_start, span->last_end, problem.objective);
}

}  // namespace optimus::pipeline
