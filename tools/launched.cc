#include "tools/launched.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "executor/backends/pinning.h"
#include "executor/torchrun/environment.h"
#include "tools/run_launcher.h"

namespace optimus::tools {
namespace {

using executor::Launcher;

// Where a launcher says which rank this is; the first that is set counts.
std::vector<const char*> RankVariables(const Launcher& launcher) {
  if (launcher.kind == Launcher::Kind::kTorchrun) return {"RANK"};
  if (launcher.name == "srun") return {"SLURM_PROCID"};
  return {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
}

// Ranks with a GPU each are spread over hosts; the cores of this one say nothing.
bool UsesGpus(const Arguments& arguments) {
  return std::any_of(arguments.values + 1, arguments.values + arguments.count,
                     [](absl::string_view argument) {
                       return argument == "cuda" || argument == "--backend=cuda";
                     });
}

// On nodes of as many ranks as this one, where that is possible.
std::string TorchrunSize(int ranks, const executor::EnvironmentReader& read) {
  int here = 0;
  if (!absl::SimpleAtoi(read("LOCAL_WORLD_SIZE").value_or(""), &here) || here < 1 ||
      ranks <= here || ranks % here != 0) {
    return absl::StrCat("--nproc-per-node ", ranks);
  }
  return absl::StrCat("--nnodes ", ranks / here, " --nproc-per-node ", here);
}

}  // namespace

Launcher ThisLauncher() { return executor::FindLauncher(executor::ProcessEnvironment()); }

std::string RankVariable() {
  const executor::EnvironmentReader read = executor::ProcessEnvironment();
  const Launcher launcher = ThisLauncher();
  if (launcher.kind == Launcher::Kind::kNone) return "";
  for (const char* name : RankVariables(launcher)) {
    int rank = 0;
    if (absl::SimpleAtoi(read(name).value_or(""), &rank)) return name;
  }
  return "";
}

int LaunchedRank() {
  int rank = 0;
  const bool known =
      absl::SimpleAtoi(executor::ProcessEnvironment()(RankVariable()).value_or(""), &rank);
  return known ? rank : 0;
}

bool IsLaunched() { return ThisLauncher().kind != Launcher::Kind::kNone; }

bool IsByTorchrun() { return ThisLauncher().kind == Launcher::Kind::kTorchrun; }

int HostCores() {
  std::vector<int> cpus = executor::AllowedCpus();
  if (cpus.size() == 1 && IsLaunched()) {  // bound to one by the launcher, which saw all
    cpus.resize(static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
    std::iota(cpus.begin(), cpus.end(), 0);
  }
  std::set<int> cores;
  for (const auto& [cpu, core] : executor::CoresOf(cpus)) cores.insert(core);
  return static_cast<int>(cores.size());
}

std::string LaunchCommand(int ranks, const Arguments& arguments, int cores) {
  const Launcher launcher = ThisLauncher();
  std::string text;
  if (launcher.kind == Launcher::Kind::kTorchrun) {
    text =
        absl::StrCat("torchrun --no-python ", TorchrunSize(ranks, executor::ProcessEnvironment()));
  } else if (launcher.name == "srun") {
    text = absl::StrCat("srun -n ", ranks);
  } else {
    const bool crowded = cores > 0 && ranks > cores && !UsesGpus(arguments);
    text = absl::StrCat("mpirun ", crowded ? "--oversubscribe " : "", "-np ", ranks);
  }
  text += " optimus";
  for (int i = 1; i < arguments.count; ++i) absl::StrAppend(&text, " ", arguments.values[i]);
  return text;
}

bool IsGiven(const std::string& flag, const Arguments& arguments) {
  return std::any_of(arguments.values + 1, arguments.values + arguments.count,
                     [&flag](absl::string_view argument) {
                       return absl::ConsumePrefix(&argument, flag) &&
                              (argument.empty() || argument.front() == '=');
                     });
}

absl::StatusOr<int> RelaunchOnRanks(int ranks, const Arguments& arguments) {
  std::error_code failed;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed) return absl::InternalError(absl::StrCat("/proc/self/exe: ", failed.message()));
  if (geteuid() == 0) {  // Open MPI asks for both
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  // Ranks pin themselves, a container may show one slot where there are two cores, and we say
  // ourselves why ranks ended.
  std::vector<std::string> words = {
      "mpirun", "--quiet",         "-np", absl::StrCat(ranks), "--bind-to",
      "none",   "--oversubscribe", self};
  words.insert(words.end(), arguments.values + 1, arguments.values + arguments.count);
  absl::StatusOr<int> code = RunLauncher(std::move(words));
  if (!absl::IsNotFound(code.status())) return code;
  return absl::FailedPreconditionError(absl::StrCat(
      code.status().message(), ", and ", ranks,
      " ranks are needed; install Open MPI, or start this command by the launcher that there is, ",
      "on ", ranks, " ranks"));
}

}  // namespace optimus::tools
