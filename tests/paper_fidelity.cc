// Every experiment of the paper at the three granularities: the same iteration time to 1e-12
// relative, and as many entities as the granularity promises. Prints one line per experiment; exits
// 1 on a difference.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/run_experiment.h"

namespace optimus {
namespace {

std::vector<std::string> PaperExperiments() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("examples/paper")) {
    if (entry.path().extension() == ".textproto") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool EntitiesAsPromised(const ir::Schedule& schedule, sim::Fidelity fidelity,
                        std::size_t entities) {
  const ir::Parallelism& world = schedule.world;
  const int lanes = world.pp * schedule.lanes;
  const int expected = fidelity == sim::Fidelity::kFolded  ? lanes
                       : fidelity == sim::Fidelity::kGroup ? lanes * world.dp
                                                           : world.gpus();
  return entities == static_cast<std::size_t>(expected);
}

bool Check(const std::string& file) {
  const auto built = testing::BuildFile(file);
  if (!built.ok()) {
    std::printf("%s: %s\n", file.c_str(), built.status().ToString().c_str());
    return false;
  }
  double first = 0;
  bool good = true;
  std::printf("%-48s", file.c_str());
  for (const auto fidelity : {sim::Fidelity::kFolded, sim::Fidelity::kGroup, sim::Fidelity::kGpu}) {
    const auto timeline = testing::Simulate(*built, fidelity);
    if (!timeline.ok()) {
      std::printf(" %s\n", timeline.status().ToString().c_str());
      return false;
    }
    const double step = ToSeconds(timeline->step);
    first = first == 0 ? step : first;
    const double relative = std::abs(step - first) / first;
    good = good && relative <= 1e-12 &&
           EntitiesAsPromised(built->step.schedule, fidelity, timeline->entities.size());
    std::printf("  %s %.12f s (%zu entities, %.1e)", sim::ToString(fidelity), step,
                timeline->entities.size(), relative);
  }
  std::printf("%s\n", good ? "" : "  DIFFERENT");
  return good;
}

}  // namespace
}  // namespace optimus

int main() {
  const std::vector<std::string> files = optimus::PaperExperiments();
  int failed = files.empty() ? 1 : 0;
  for (const std::string& file : files) {
    failed += optimus::Check(file) ? 0 : 1;
    std::fflush(stdout);
  }
  std::printf("%zu passed, %d failed\n", files.size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}
