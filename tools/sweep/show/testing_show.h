#pragma once
// A sweep with the shape of real ones, by a formula: strategies, GPUs, tp, pp and V. Plans that do
// not fit, are impossible, or failed are among it.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/sweep/store/testing_sweep.h"

namespace optimus::sweep {

// Seconds. Communication grows with tp, bubbles with pp, and V shrinks them.
inline double TestingTime(int strategy, double gpus, double tp, double pp, double v) {
  const double micro_batches = 1536 / (gpus / tp / pp);
  const double work = 14000 / gpus * (1 + 0.04 * (tp - 1));
  const double bubble = (pp - 1) / (micro_batches * v);
  const double exposed = 0.35 * std::sqrt(gpus / 512) * (3 - strategy) / 3;
  return work * (1 + bubble * (1.25 - 0.25 * strategy)) + exposed;
}

inline double TestingMemoryGib(double tp, double pp, double v) {
  return 2 + 1240 / (tp * pp) + 6 * (1 + (v - 1) / pp) * 8 / tp;
}

inline TestingPoint TestingPlan(int strategy, int gpus, int tp, int pp, int v) {
  static constexpr const char* kStrategies[] = {"MEGATRON_LM", "MEGATRON_BALANCED", "OPTIMUS"};
  TestingPoint point;
  point.axes = {std::string(kStrategies[strategy]), std::int64_t{gpus}, std::int64_t{tp},
                std::int64_t{pp}, std::int64_t{v}};
  if (pp == 1 && v > 1) {
    point.status = std::string(kStatusImpossible);
    point.error = absl::StrCat("plan.virtual_stages: ", v, ", but a pipeline of 1 stage has no V");
    return point;
  }
  if (strategy == 2 && gpus == 3072 && tp == 1 && v == 12) {
    point.status = std::string(kStatusFailed);
    point.error = std::string("the engine stopped");
    return point;
  }
  const double memory = TestingMemoryGib(tp, pp, v);
  const double time = TestingTime(strategy, gpus, tp, pp, v);
  point.metrics = {{"iteration_time_s", time},
                   {"mfu_percent", std::floor(1400000.0 / gpus) / time * 0.6},
                   {"memory_gib", memory},
                   {"fits", std::int64_t{memory <= 80 ? 1 : 0}},
                   {"world_gpus", std::int64_t{gpus}}};
  return point;
}

inline std::vector<Column> TestingAxes() {
  std::vector<Column> axes = {TestingAxis("strategy", "TEXT"),
                              TestingAxis("gpus", "INTEGER", "GPUs"), TestingAxis("tp", "INTEGER"),
                              TestingAxis("pp", "INTEGER"), TestingAxis("v", "INTEGER")};
  axes[1].title = "GPUs";
  axes[2].title = "tensor parallelism";
  axes[3].title = "pipeline parallelism";
  axes[4].title = "model chunks V";
  return axes;
}

// The plans of `gpus`, for every strategy, tp, pp and V.
inline absl::StatusOr<Database> MakeTestingPlans(const std::string& path,
                                                 const std::vector<int>& gpus) {
  std::vector<TestingPoint> points;
  for (const int strategy : {0, 1, 2}) {
    for (const int n : gpus) {
      for (const int tp : {1, 2, 4, 8}) {
        for (const int pp : {1, 2, 4, 8, 16}) {
          for (const int v : {1, 2, 6, 12}) points.push_back(TestingPlan(strategy, n, tp, pp, v));
        }
      }
    }
  }
  return MakeTestingSweep(path, TestingAxes(), points);
}

}  // namespace optimus::sweep
