// One process that no launcher started. What several ranks do: ranks_test.cc.

#include "executor/backends/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/backends/parts.h"
#include "executor/backends/testing.h"

namespace optimus::executor {
namespace {

using testing::HasSubstr;

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_RANK",   "PMI_SIZE",   "PMIX_RANK",  "SLURM_PROCID",
    "TORCHELASTIC_RUN_ID",  "RANK",       "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",          "MASTER_PORT"};

class BackendTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) unsetenv(name);
  }
  static absl::StatusOr<std::unique_ptr<World>> Join(BackendKind kind) {
    int argc = 0;
    char** argv = nullptr;
    return JoinWorld(kind, argc, argv);
  }
};

TEST_F(BackendTest, NamesGoBothWays) {
  for (const BackendKind kind : {BackendKind::kCpu, BackendKind::kCuda, BackendKind::kEmulated}) {
    const auto parsed = ParseBackend(ToString(kind));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, kind);
  }
  EXPECT_EQ(ParseBackend("gpu").status(),
            absl::InvalidArgumentError("backend 'gpu': must be cpu, cuda or emulated"));
}

TEST_F(BackendTest, DescribesWhatIsBuilt) {
  const std::vector<std::string> lines = DescribeBackends();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], CpuPart().has_value() ? HasSubstr("cpu (oneDNN 2.")
                                              : HasSubstr("cpu: not in this build (OPTIMUS_ONE"));
  EXPECT_THAT(lines[1], CudaPart().has_value() ? HasSubstr("cuda (CUDA ")
                                               : HasSubstr("cuda: not in this build (OPTIMUS_CU"));
  EXPECT_THAT(lines[2], MpiPart().has_value()
                            ? HasSubstr("emulated (")
                            : HasSubstr("emulated: not in this build (OPTIMUS_MPI)"));
}

TEST_F(BackendTest, AloneWithoutALauncher) {
  for (const BackendKind kind : {BackendKind::kCpu, BackendKind::kCuda, BackendKind::kEmulated}) {
    const auto world = Join(kind);
    ASSERT_TRUE(world.ok());
    EXPECT_EQ((*world)->launcher(), "alone");
    EXPECT_EQ((*world)->size(), 1);
  }
}

TEST_F(BackendTest, TorchrunIsForCudaOnly) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "localhost", 1);
  setenv("MASTER_PORT", "1", 1);
  const auto world = Join(BackendKind::kCpu);
  EXPECT_EQ(world.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(world.status().message()),
              HasSubstr("the cpu backend talk over MPI; hint: start them by mpirun"));
  setenv("WORLD_SIZE", "1", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
  EXPECT_TRUE(Join(BackendKind::kCpu).ok());
}

TEST_F(BackendTest, CpuOfOneRank) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  auto backend = MakeBackend(BackendKind::kCpu, *world, {});
  if (!CpuPart().has_value()) {
    EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(backend.status().message()), HasSubstr("OPTIMUS_ONEDNN"));
    return;
  }
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_THAT(backend->device->Description(), HasSubstr("oneDNN"));
  RunKernelAndCollective(*backend);
  EXPECT_EQ(backend->device->NominalNs(0), 0);  // its times are real
}

TEST_F(BackendTest, EmulatedOfOneRank) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  const FixedCosts costs;
  BackendOptions options;
  options.costs = &costs;
  auto backend = MakeBackend(BackendKind::kEmulated, *world, options);
  if (!MpiPart().has_value()) {
    EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(backend.status().message()), HasSubstr("OPTIMUS_MPI"));
    return;
  }
  ASSERT_TRUE(backend.ok()) << backend.status();
  RunKernelAndCollective(*backend);
  // A kernel and a collective of one rank, which is nothing: a millisecond, however late it was.
  const Device& device = *backend->device;
  EXPECT_GE(device.TimeNs(0), device.NominalNs(0));
  EXPECT_GT(device.NominalNs(0), 0);
  EXPECT_EQ(device.NominalNs(1), device.NominalNs(0));
  EXPECT_EQ(device.Description(), "every operation only takes its time by the profile");
  options.costs = nullptr;
  EXPECT_EQ(MakeBackend(BackendKind::kEmulated, *world, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A machine may have a GPU; this test needs none.
TEST_F(BackendTest, CudaSaysWhatIsMissing) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  const auto backend = MakeBackend(BackendKind::kCuda, *world, {});
  if (!CudaPart().has_value()) {
    EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(backend.status().message()), HasSubstr("OPTIMUS_CUDA"));
  } else if (!backend.ok()) {
    EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable) << backend.status();
  }
}

// As several ranks do it that MPI did not start.
class TwoRanks : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 2; }
  std::string host() const override { return "here"; }
  std::string launcher() const override { return "torchrun"; }
  void SetPatience(absl::Duration /*patience*/, std::function<absl::Status()> /*tick*/) override {}
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    return std::vector<std::string>{mine, mine};
  }
  absl::StatusOr<std::string> Broadcast(const std::string& text) override { return text; }
  std::int64_t clock_offset_ns() const override { return 0; }
  void Post(int /*to*/, const std::string& /*text*/) override {}
  std::optional<Note> Poll() override { return std::nullopt; }
  void Abort(int exit_code) override { std::exit(exit_code); }
};

TEST_F(BackendTest, RanksWithoutMpiAreRefused) {
  TwoRanks world;
  for (const BackendKind kind : {BackendKind::kCpu, BackendKind::kEmulated}) {
    const auto backend = MakeBackend(kind, world, {});
    EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(backend.status().message()), HasSubstr("torchrun"));
  }
}

}  // namespace
}  // namespace optimus::executor
