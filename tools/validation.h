#pragma once
// What `optimus validate` found: simulation beside measurement.

#include <string>
#include <vector>

#include "base/units.h"
#include "tools/spread.h"
#include "validation/compare_timelines.h"

namespace optimus::tools {

// |error| of the step is at most `tolerance`; what is no number is outside.
bool Within(const validation::Comparison& comparison, double tolerance);

struct ValidatedExperiment {
  std::string name, file;
  std::string strategy;  // "OPTIMUS", "BALANCED layout", ...
  Spread measured;       // steps, seconds
  int steps = 0;
  validation::Comparison comparison;  // with the step of median length
};

// The machine's own noise: one kernel that stays the same, timed again and again over the whole
// run.
struct MachineNoise {
  std::string kernel;
  Spread time;  // seconds, all samples
  int samples = 0;
  double drift = 0;  // greatest distance of a visit's median from the median of all, relative
};

struct Validation {
  std::string backend, device, hosts, simulator;
  std::string profile, profile_hash;  // that was simulated with
  int rounds = 0, warm_up = 0;
  double tolerance = 0, least_difference = 0;
  std::vector<ValidatedExperiment> experiments;
  MachineNoise noise;                           // no samples: emulated
  std::vector<validation::RankedPair> ranking;  // pairs that differ measurably
  double wall_s = 0;

  double MedianError() const;  // of |step error|
  bool within() const;         // all steps within the tolerance, all pairs ranked the same
};

}  // namespace optimus::tools
