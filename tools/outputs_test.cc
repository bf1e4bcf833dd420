#include "tools/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::tools {
namespace {

std::string Captured(absl::Duration log_every) {
  ::testing::internal::CaptureStderr();  // a file
  {
    Progress progress(log_every);
    progress.Show("1 of 2");
    progress.Show("2 of 2\n");
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(ProgressTest, ALogGetsALineNowAndThenAndAFileNothing) {
  EXPECT_EQ(Captured(absl::InfiniteDuration()), "");
  EXPECT_EQ(Captured(absl::Hours(1)), "");
  EXPECT_THAT(Captured(absl::ZeroDuration()), ::testing::StartsWith("1 of 2\n2 of 2"));
}

}  // namespace
}  // namespace optimus::tools
