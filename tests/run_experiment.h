#pragma once
// Builds and runs one experiment the way the command does, for tests.

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "hw_profiles/profile.h"
#include "schedule/colocate/optimus.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/validate.h"
#include "schedule/step/step.h"
#include "sim/simgrid_runner.h"

namespace optimus::testing {

struct Built {
  std::shared_ptr<hw::ProfileCostModel> costs;
  step::Step step;
};

inline absl::StatusOr<Built> Build(const step::Experiment& experiment) {
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(experiment));
  Built built{std::make_shared<hw::ProfileCostModel>(std::move(profile)), {}};
  if (experiment.plan().strategy() == step::Plan::OPTIMUS) {
    OPTIMUS_ASSIGN_OR_RETURN(colocate::OptimusStep optimus,
                             colocate::BuildOptimusStep(experiment, *built.costs, {}));
    built.step = std::move(optimus.step);
  } else {
    OPTIMUS_ASSIGN_OR_RETURN(built.step, step::BuildStep(experiment, *built.costs));
  }
  OPTIMUS_RETURN_IF_ERROR(ir::Validate(built.step.schedule));
  return built;
}

inline absl::StatusOr<Built> BuildFile(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, step::LoadExperiment(path));
  return Build(experiment);
}

// `interference`: kernels and collectives of one GPU slow each other as the profile says. Without
// it only shared links make the step longer than the contention-free one.
inline absl::StatusOr<ir::Timeline> Simulate(const Built& built, sim::Fidelity fidelity,
                                             bool spans = false, bool interference = true) {
  sim::Options options;
  options.fidelity = fidelity;
  options.record_spans = spans;
  options.interference = interference;
  return sim::SimGridRunner(*built.costs, options).Run(built.step.schedule);
}

}  // namespace optimus::testing
