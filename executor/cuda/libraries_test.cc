// Loads the real libraries, where they are (no GPU is needed for that), so that a function that
// NCCL or cuBLAS renames is found out here.
#include "executor/cuda/libraries.h"

#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

TEST(Libraries, AreLoadedOnce) {
  const auto first = LoadLibraries();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, LoadLibraries().value());
}

TEST(Libraries, AreThoseOfTheBuild) {
  const auto libraries = LoadLibraries();
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  int version = 0;
  ASSERT_EQ((*libraries)->nccl.GetVersion(&version), ncclSuccess);
  EXPECT_GE(version, NCCL_VERSION_CODE);
  EXPECT_EQ((*libraries)->blas.GetVersion() / 10000,
            static_cast<std::size_t>(CUDART_VERSION) / 1000);
  EXPECT_STREQ((*libraries)->nccl.GetErrorString(ncclInProgress), "NCCL operation in progress");
}

TEST(Libraries, VersionsAreReadable) {
  EXPECT_EQ(NcclVersion(22809), "2.28.9");
  EXPECT_EQ(NcclVersion(23000), "2.30.0");
}

}  // namespace
}  // namespace optimus::executor::cuda
