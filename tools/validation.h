#pragma once
// What `optimus validate` found: simulation beside measurement.

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "tools/emulation.h"
#include "tools/spread.h"
#include "validation/compare_timelines.h"

namespace optimus::tools {

// |error| of the step is at most `tolerance`; what is no number is outside.
bool Within(const validation::Comparison& comparison, double tolerance);

struct ValidatedExperiment {
  std::string name, file;
  std::string strategy;  // "OPTIMUS", "BALANCED layout", ...
  // Steps, seconds. The median is comparison.measured_step: one figure for one thing.
  Spread measured;
  int steps = 0;
  validation::Comparison comparison;   // with the step of median length
  std::optional<Emulation> emulation;  // of that step
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
  std::string few_samples;                      // a line where medians are of few; may be empty
  MachineNoise noise;                           // no samples: emulated
  std::vector<validation::RankedPair> ranking;  // pairs that differ measurably
  int close_pairs = 0;                          // that train the same and do not
  double wall_s = 0;

  double MedianError() const;                // of |step error|
  const ValidatedExperiment* Worst() const;  // whose |step error| is the largest; null: of none
  bool within() const;  // all steps within the tolerance, all pairs ranked the same
  // The machine itself moves times by more than the tolerance: half of all samples of a kernel that
  // never changes lie further apart. Unlike the drift, that does not grow with the number of
  // visits.
  bool drowns_in_noise() const;
  bool late() const;        // an emulated experiment was
  bool conclusive() const;  // neither: then what is said about errors means something
};

}  // namespace optimus::tools
