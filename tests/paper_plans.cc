// Every OPTIMUS experiment of the paper, by both schedulers: the prediction is the simulated step
// to 0.5 % where kernels and collectives do not slow each other, list is never slower than paper
// with everything on, and neither goes below its bounds. Prints one line per experiment; exits 1
// otherwise. Published step: Feng et al., USENIX ATC 2025, strong scaling at 3072 GPUs, 4.87 s.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/run_experiment.h"

namespace optimus {
namespace {

constexpr double kPrediction = 0.005, kSharedLinks = 0.01;
constexpr double kPublished3072 = 4.87, kPublishedTolerance = 0.03;
constexpr double kMostOverFluid = 1.10;

struct Outcome {
  double predicted = 0, alone = 0, shared = 0, simulated = 0, fluid = 0, work = 0;  // seconds
};

std::vector<std::string> Experiments() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("examples/paper")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() == ".textproto" && path.find("_optimus") != std::string::npos) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<Outcome> Run(const std::string& file, step::Optimus::Scheduler scheduler) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, step::LoadExperiment(file));
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(experiment));
  testing::Built built{std::make_shared<hw::ProfileCostModel>(std::move(profile)), {}};
  colocate::PlanOptions options;
  options.scheduler = scheduler;
  options.judge = [&](const ir::Schedule& schedule) -> absl::StatusOr<Picoseconds> {
    OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline,
                             sim::SimGridRunner(*built.costs, {}).Run(schedule));
    return timeline.step;
  };
  OPTIMUS_ASSIGN_OR_RETURN(colocate::OptimusStep step,
                           colocate::BuildOptimusStep(experiment, *built.costs, options));
  built.step = std::move(step.step);
  OPTIMUS_RETURN_IF_ERROR(ir::Validate(built.step.schedule));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline alone,
                           ir::CriticalPathRunner(*built.costs).Run(built.step.schedule));
  OPTIMUS_ASSIGN_OR_RETURN(
      const ir::Timeline shared,
      testing::Simulate(built, sim::Fidelity::kAuto, /*spans=*/false, /*interference=*/false));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline simulated,
                           testing::Simulate(built, sim::Fidelity::kAuto));
  const colocate::RankedPlan& best = step.plan.ranked.front();
  return Outcome{ToSeconds(best.predicted),    ToSeconds(alone.step),
                 ToSeconds(shared.step),       ToSeconds(simulated.step),
                 ToSeconds(best.bounds.fluid), ToSeconds(best.bounds.work)};
}

bool Near(double value, double expected, double tolerance) {
  return std::abs(value / expected - 1) <= tolerance;
}

bool Check(const std::string& file, const char* scheduler, const absl::StatusOr<Outcome>& run) {
  if (!run.ok()) {
    std::printf("%s %s: %s\n", file.c_str(), scheduler, run.status().ToString().c_str());
    return false;
  }
  const bool good = Near(run->alone, run->predicted, kPrediction) &&
                    Near(run->shared, run->alone, kSharedLinks) && run->simulated >= run->work &&
                    run->predicted >= run->fluid;
  std::printf(
      "%-48s %-5s predicted %.6f s, alone %+.3f %%, shared links %+.3f %%, interference "
      "%+.3f %%; %.3f x fluid%s\n",
      file.c_str(), scheduler, run->predicted, 100 * (run->alone / run->predicted - 1),
      100 * (run->shared / run->alone - 1), 100 * (run->simulated / run->shared - 1),
      run->simulated / run->fluid, good ? "" : "  WRONG");
  return good;
}

bool CheckBoth(const std::string& file) {
  const auto paper = Run(file, step::Optimus::PAPER);
  const auto list = Run(file, step::Optimus::LIST);
  bool good = Check(file, "paper", paper);
  good = Check(file, "list", list) && good;
  if (!good) return false;
  if (list->simulated > paper->simulated) {
    std::printf("  list takes %.6f s, paper %.6f s\n", list->simulated, paper->simulated);
    return false;
  }
  if (file.find("strong_3072_optimus.") == std::string::npos) return true;
  return Near(paper->simulated, kPublished3072, kPublishedTolerance) &&
         list->simulated <= kMostOverFluid * list->fluid;
}

}  // namespace
}  // namespace optimus

int main() {
  const std::vector<std::string> files = optimus::Experiments();
  int failed = files.empty() ? 1 : 0;
  for (const std::string& file : files) {
    failed += optimus::CheckBoth(file) ? 0 : 1;
    std::fflush(stdout);
  }
  std::printf("%zu passed, %d failed\n", files.size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}
