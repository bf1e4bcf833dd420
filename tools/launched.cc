#include "tools/launched.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "executor/backends/launcher.h"
#include "executor/torchrun/environment.h"

namespace optimus::tools {
namespace {

using executor::FindLauncher;
using executor::Launcher;

// Where a launcher says which rank this is; the first that is set counts.
std::vector<const char*> RankVariables(const Launcher& launcher) {
  if (launcher.kind == Launcher::Kind::kTorchrun) return {"RANK"};
  if (launcher.name == "srun") return {"SLURM_PROCID"};
  return {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
}

}  // namespace

int LaunchedRank() {
  const executor::EnvironmentReader read = executor::ProcessEnvironment();
  const Launcher launcher = FindLauncher(read);
  if (launcher.kind == Launcher::Kind::kNone) return 0;
  for (const char* name : RankVariables(launcher)) {
    int rank = 0;
    if (absl::SimpleAtoi(read(name).value_or(""), &rank)) return rank;
  }
  return 0;
}

bool IsLaunched() {
  return FindLauncher(executor::ProcessEnvironment()).kind != Launcher::Kind::kNone;
}

void WaitForFirstRank() { absl::SleepFor(absl::Seconds(1)); }

std::string LaunchCommand(int ranks, const Arguments& arguments) {
  std::string text = absl::StrCat("mpirun -np ", ranks, " optimus");
  for (int i = 1; i < arguments.count; ++i) absl::StrAppend(&text, " ", arguments.values[i]);
  return text;
}

absl::Status RelaunchOnRanks(int ranks, const Arguments& arguments) {
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
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  const int error = errno;
  return absl::FailedPreconditionError(absl::StrCat(
      "mpirun cannot be started (", std::strerror(error), "), and ", ranks,
      " ranks are needed; install Open MPI, or start this command by the launcher that there is, ",
      "on ", ranks, " ranks"));
}

}  // namespace optimus::tools
