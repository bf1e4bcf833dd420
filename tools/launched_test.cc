#include "tools/launched.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace optimus::tools {
namespace {

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_RANK",  "PMI_SIZE",   "PMIX_RANK",        "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS", "RANK",      "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
    "TORCHELASTIC_RUN_ID",  "LOCAL_RANK"};

class LaunchedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) unsetenv(name);
  }
  Arguments Given(const std::vector<std::string>& words) {
    words_ = words;
    words_.insert(words_.begin(), "optimus");
    pointers_.clear();
    for (std::string& word : words_) pointers_.push_back(word.data());
    return {static_cast<int>(pointers_.size()), pointers_.data()};
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

TEST_F(LaunchedTest, MoreRanksThanCoresMustBeAllowed) {
  const Arguments arguments = Given({"run", "e.textproto", "--backend=cpu"});
  EXPECT_EQ(LaunchCommand(8, arguments, 8), "mpirun -np 8 optimus run e.textproto --backend=cpu");
  EXPECT_EQ(LaunchCommand(8, arguments, 2),
            "mpirun --oversubscribe -np 8 optimus run e.textproto --backend=cpu");
  EXPECT_EQ(LaunchCommand(8, arguments, 0), LaunchCommand(8, arguments, 8));  // not known
}

// Ranks with a GPU each are on several hosts.
TEST_F(LaunchedTest, CoresOfThisHostSayNothingOfGpus) {
  EXPECT_EQ(LaunchCommand(64, Given({"run", "--backend=cuda"}), 2),
            "mpirun -np 64 optimus run --backend=cuda");
  EXPECT_EQ(LaunchCommand(64, Given({"run", "--backend", "cuda"}), 2),
            "mpirun -np 64 optimus run --backend cuda");
}

TEST_F(LaunchedTest, TheLauncherAtHandIsNamed) {
  const Arguments arguments = Given({"run", "--backend=cuda"});
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(LaunchCommand(16, arguments, 2), "srun -n 16 optimus run --backend=cuda");
  SetUp();
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "8", 1);
  EXPECT_EQ(LaunchCommand(16, arguments, 2),
            "torchrun --no-python --nproc-per-node 16 optimus run --backend=cuda");
  setenv("LOCAL_WORLD_SIZE", "8", 1);
  EXPECT_EQ(LaunchCommand(16, arguments, 2),
            "torchrun --no-python --nnodes 2 --nproc-per-node 8 optimus run --backend=cuda");
  EXPECT_EQ(LaunchCommand(4, arguments, 2),
            "torchrun --no-python --nproc-per-node 4 optimus run --backend=cuda");
}

TEST_F(LaunchedTest, ThisHostHasACore) { EXPECT_GE(HostCores(), 1); }

TEST_F(LaunchedTest, FlagsThatAreGiven) {
  EXPECT_TRUE(IsGiven("--timeout", Given({"run", "--timeout=5s"})));
  EXPECT_TRUE(IsGiven("--timeout", Given({"run", "--timeout", "5s"})));
  EXPECT_FALSE(IsGiven("--timeout", Given({"run", "--timeouts=5s", "timeout"})));
  EXPECT_FALSE(IsGiven("--timeout", Given({})));
}

TEST_F(LaunchedTest, TorchrunsVariablesMakeARank) {
  EXPECT_FALSE(IsLaunched());
  EXPECT_FALSE(IsByTorchrun());
  setenv("RANK", "1", 1);
  EXPECT_FALSE(IsLaunched());
  EXPECT_EQ(LaunchedRank(), 0);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_TRUE(IsByTorchrun());
  EXPECT_EQ(LaunchedRank(), 1);
}

}  // namespace
}  // namespace optimus::tools
