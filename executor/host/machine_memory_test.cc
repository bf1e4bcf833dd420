#include "executor/host/machine_memory.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/testing_folder.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(MachineMemory, IsSomeAndNotMoreThanTheMachineHas) {
  EXPECT_GT(MachineMemory(), Bytes(64 << 20));
  EXPECT_EQ(LimitedMemory(Bytes(1000), "/no/such/root"), Bytes(1000));
}

TEST(MachineMemory, IsTheSmallestLimitOfTheGroupAndThoseAbove) {
  const TestingFolder folder;
  const std::string root = folder.path();
  WriteFile(root + "/proc/self/cgroup", "0::/slurm/job1\n");
  WriteFile(root + "/sys/fs/cgroup/slurm/job1/memory.max", "max\n");
  EXPECT_EQ(LimitedMemory(Bytes(1000), root), Bytes(1000));
  WriteFile(root + "/sys/fs/cgroup/slurm/memory.max", "700\n");
  EXPECT_EQ(LimitedMemory(Bytes(1000), root), Bytes(700));
  EXPECT_EQ(LimitedMemory(Bytes(600), root), Bytes(600));
  WriteFile(root + "/sys/fs/cgroup/slurm/job1/memory.max", "500\n");
  EXPECT_EQ(LimitedMemory(Bytes(1000), root), Bytes(500));
}

TEST(MachineMemory, KnowsTheFirstVersionOfControlGroups) {
  const TestingFolder folder;
  const std::string root = folder.path();
  WriteFile(root + "/proc/self/cgroup", "5:cpuset:/\n4:memory:/docker/abc\n0::/\n");
  WriteFile(root + "/sys/fs/cgroup/memory/memory.limit_in_bytes", "300\n");  // seen from inside
  EXPECT_EQ(LimitedMemory(Bytes(1000), root), Bytes(300));
  WriteFile(root + "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "200\n");
  EXPECT_EQ(LimitedMemory(Bytes(1000), root), Bytes(200));
}

TEST(MemoryShare, IsDividedByTheRanksOfTheMachine) {
  const Bytes gib(std::int64_t{1} << 30);
  const MemoryShare alone = ShareOf(24 * gib, 1, std::nullopt);
  EXPECT_EQ(alone.bytes, 24 * gib);
  EXPECT_EQ(alone.text, "of memory");
  const MemoryShare shared = ShareOf(24 * gib, 64, std::nullopt);
  EXPECT_EQ(shared.bytes, Bytes(384 << 20));
  EXPECT_EQ(shared.text, "of 24 GiB for 64 ranks");
  EXPECT_EQ(GibText(shared.bytes), "0.375 GiB");
}

// Its own limit is not shared.
TEST(MemoryShare, IsNoMoreThanTheAddressSpace) {
  EXPECT_EQ(ShareOf(Bytes(1000), 4, Bytes(251)).bytes, Bytes(250));
  const MemoryShare limited = ShareOf(Bytes(1000), 4, Bytes(249));
  EXPECT_EQ(limited.bytes, Bytes(249));
  EXPECT_EQ(limited.text, "that ulimit -v leaves");
  EXPECT_LE(ShareOfMemory(3).bytes, Bytes(MachineMemory().value() / 3));
}

}  // namespace
}  // namespace optimus::executor
