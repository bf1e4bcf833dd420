#include "tools/launched.h"

#include <unistd.h>

#include <array>
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

namespace optimus::tools {
namespace {

// By Open MPI, MPICH and Intel MPI, other PMIx launchers, Slurm, torchrun.
constexpr std::array<const char*, 5> kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                                       "PMIX_RANK", "SLURM_PROCID", "RANK"};

// Slurm sets SLURM_PROCID in a batch script as well, where nothing was launched yet.
bool IsSlurmBatch() {
  const char* step = std::getenv("SLURM_STEP_ID");
  return step == nullptr || std::strcmp(step, "4294967291") == 0;  // SLURM_BATCH_SCRIPT
}

// The value of the first of them that counts, or null.
const char* RankText() {
  for (const char* name : kRankVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (std::strcmp(name, "SLURM_PROCID") == 0 && IsSlurmBatch()) continue;
    // A variable of so common a name counts together with its sister only.
    if (std::strcmp(name, "RANK") == 0 && std::getenv("WORLD_SIZE") == nullptr) continue;
    return value;
  }
  return nullptr;
}

}  // namespace

int LaunchedRank() {
  const char* text = RankText();
  int rank = 0;
  return text != nullptr && absl::SimpleAtoi(text, &rank) ? rank : 0;
}

bool IsLaunched() { return RankText() != nullptr; }

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
  // Ranks pin themselves, and a container may show one slot where there are two cores.
  std::vector<std::string> words = {
      "mpirun", "-np", absl::StrCat(ranks), "--bind-to", "none", "--oversubscribe", self};
  for (int i = 1; i < arguments.count; ++i) words.emplace_back(arguments.values[i]);
  std::vector<char*> pointers;
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
