#include "executor/backends/launcher.h"

#include <optional>

#include "absl/strings/numbers.h"

namespace optimus::executor {
namespace {

// 0 where it is not set, or is no number.
int NumberOf(const EnvironmentReader& read, const std::string& name) {
  const std::optional<std::string> text = read(name);
  int number = 0;
  return text.has_value() && absl::SimpleAtoi(*text, &number) ? number : 0;
}

}  // namespace

Launcher FindLauncher(const EnvironmentReader& read) {
  const auto is_set = [&read](const char* name) { return read(name).has_value(); };
  if (is_set("TORCHELASTIC_RUN_ID") && UnderTorchrun(read)) {
    return {Launcher::Kind::kTorchrun, "torchrun", 0};
  }
  if (is_set("OMPI_COMM_WORLD_SIZE")) {
    return {Launcher::Kind::kMpi, "mpirun", NumberOf(read, "OMPI_COMM_WORLD_SIZE")};
  }
  // Slurm sets PMI's and PMIx' variables too, so it comes before them.
  const int tasks = NumberOf(read, "SLURM_STEP_NUM_TASKS");
  if (is_set("SLURM_PROCID") && tasks > 1) {
    return {Launcher::Kind::kMpi, "srun", tasks};
  }
  if (is_set("PMI_RANK") || is_set("PMI_SIZE") || is_set("PMIX_RANK")) {
    return {Launcher::Kind::kMpi, "mpirun", NumberOf(read, "PMI_SIZE")};
  }
  if (MeantAsTorchrun(read) || UnderTorchrun(read)) {
    return {Launcher::Kind::kTorchrun, "torchrun", 0};
  }
  return {};
}

}  // namespace optimus::executor
