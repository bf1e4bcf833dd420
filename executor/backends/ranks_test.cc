// Started by mpirun: what JoinWorld and MakeBackend give its ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "executor/backends/parts.h"
#include "executor/backends/testing.h"

namespace optimus::executor {
namespace {

std::unique_ptr<World> world;

TEST(RanksTest, MpiIsTheLauncher) {
  EXPECT_EQ(world->launcher(), "mpi");
  EXPECT_EQ(std::to_string(world->size()), getenv("OMPI_COMM_WORLD_SIZE"));
}

TEST(RanksTest, EmulatedRanks) {
  const FixedCosts costs;
  BackendOptions options;
  options.costs = &costs;
  auto backend = MakeBackend(BackendKind::kEmulated, *world, options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ(backend->ranks->size(), world->size());
  RunKernelAndCollective(*backend);
  ASSERT_TRUE(world->Barrier().ok());
}

TEST(RanksTest, CpuRanks) {
  if (!CpuPart().has_value()) {
    GTEST_SKIP() << "not in this build";
  }
  auto backend = MakeBackend(BackendKind::kCpu, *world, {});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ(backend->ranks->size(), world->size());
  RunKernelAndCollective(*backend);
  ASSERT_TRUE(world->Barrier().ok());
}

}  // namespace
}  // namespace optimus::executor

int main(int argc, char** argv) {
  using optimus::executor::world;
  testing::InitGoogleTest(&argc, argv);
  auto joined = optimus::executor::JoinWorld(optimus::executor::BackendKind::kEmulated, argc, argv);
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", std::string(joined.status().message()).c_str());
    return 1;
  }
  world = *std::move(joined);
  world->SetPatience(absl::Seconds(120), nullptr);
  const int result = RUN_ALL_TESTS();
  if (result != 0) world->Abort(1);
  world.reset();
  return 0;
}
