// Joins the ranks, runs all cases on each of them, and fails everywhere if one failed anywhere.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "executor/mpi/ranks_test.h"

namespace optimus::executor {
namespace {
std::unique_ptr<MpiWorld> world;
}  // namespace

MpiWorld& TestWorld() { return *world; }

}  // namespace optimus::executor

int main(int argc, char** argv) {
  using optimus::executor::world;
  testing::InitGoogleTest(&argc, argv);
  auto joined = optimus::executor::MpiWorld::Create(argc, argv, /*measure_all_clocks=*/true);
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", std::string(joined.status().message()).c_str());
    return 1;
  }
  world = *std::move(joined);
  world->SetPatience(absl::Seconds(120), nullptr);
  if (world->rank() != 0) {
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  const int result = RUN_ALL_TESTS();
  if (result != 0) {
    std::fprintf(stderr, "rank %d: some cases failed\n", world->rank());
    world->Abort(1);
  }
  world.reset();
  return 0;
}
