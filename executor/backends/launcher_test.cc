#include "executor/backends/launcher.h"

#include <gtest/gtest.h>

#include <map>

namespace optimus::executor {
namespace {

using Variables = std::map<std::string, std::string>;

Launcher Find(const Variables& variables) {
  return FindLauncher([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables With(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "0"}};
const Variables kHydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}};
const Variables kSrun = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "16"},
                         {"SLURM_STEP_NUM_TASKS", "16"},
                         {"PMIX_RANK", "3"}};
const Variables kBatchScript = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}};
const Variables kSetByHand = {
    {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Variables kTorchrun = With(kSetByHand, {{"TORCHELASTIC_RUN_ID", "none"}});

void ExpectLauncher(const Launcher& found, Launcher::Kind kind, const std::string& name,
                    int ranks) {
  EXPECT_EQ(found.kind, kind);
  EXPECT_EQ(found.name, name);
  EXPECT_EQ(found.ranks, ranks);
}

TEST(FindLauncherTest, FindsEach) {
  ExpectLauncher(Find({}), Launcher::Kind::kNone, "", 0);
  ExpectLauncher(Find(kOpenMpi), Launcher::Kind::kMpi, "mpirun", 4);
  ExpectLauncher(Find(kHydra), Launcher::Kind::kMpi, "mpirun", 8);
  ExpectLauncher(Find(kSrun), Launcher::Kind::kMpi, "srun", 16);
  ExpectLauncher(Find(kTorchrun), Launcher::Kind::kTorchrun, "torchrun", 0);
  ExpectLauncher(Find(kSetByHand), Launcher::Kind::kTorchrun, "torchrun", 0);
  ExpectLauncher(Find({{"PMIX_RANK", "0"}}), Launcher::Kind::kMpi, "mpirun", 0);
}

TEST(FindLauncherTest, ABatchScriptOfSlurmIsNone) {
  EXPECT_EQ(Find(kBatchScript).kind, Launcher::Kind::kNone);
  EXPECT_EQ(Find(With(kBatchScript, kOpenMpi)).name, "mpirun");
}

// What is missing is said when ranks join, so it is the launcher all the same; what may be set by
// chance is none, and is nothing to MPI's ranks.
TEST(FindLauncherTest, TorchrunsVariablesMayBeIncomplete) {
  const Variables partial = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  ExpectLauncher(Find(partial), Launcher::Kind::kTorchrun, "torchrun", 0);
  EXPECT_EQ(Find(With(partial, kOpenMpi)).name, "mpirun");
  EXPECT_EQ(Find(With(partial, kSrun)).name, "srun");
  EXPECT_EQ(Find({{"RANK", "0"}}).kind, Launcher::Kind::kNone);
  EXPECT_EQ(Find(With(kBatchScript, {{"WORLD_SIZE", "16"}, {"MASTER_ADDR", "node1"}})).kind,
            Launcher::Kind::kNone);
}

// torchrun below srun or mpirun is the launcher; variables that a script derived from MPI's are not
// torchrun.
TEST(FindLauncherTest, TheInnermostCounts) {
  EXPECT_EQ(Find(With(kTorchrun, kSrun)).name, "torchrun");
  EXPECT_EQ(Find(With(kTorchrun, kOpenMpi)).name, "torchrun");
  EXPECT_EQ(Find(With(kSetByHand, kOpenMpi)).name, "mpirun");
}

}  // namespace
}  // namespace optimus::executor
