#include "tools/fitted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw_profiles/profile.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const hw::HardwareProfile& profile, const std::string& constant) {
  const absl::Status status = CheckFitted(profile, constant);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << constant;
  return std::string(status.message());
}

TEST(FittedTest, KnowsTheConstantsOfTheProfile) {
  const hw::HardwareProfile profile = *hw::LoadProfile("h100-80gb");
  for (const char* constant :
       {"gpu.gemm_efficiency", "nvlink.all_gather.efficiency", "nic.reduce_scatter.efficiency"}) {
    EXPECT_TRUE(CheckFitted(profile, constant).ok()) << constant;
  }
  EXPECT_THAT(ErrorOf(profile, "nic.all_gather.latency_us"), HasSubstr("is not fitted in profile"));
  EXPECT_THAT(ErrorOf(profile, "gpu.speed"), HasSubstr("is no constant of profile"));
  EXPECT_THAT(ErrorOf(profile, "gpu"), HasSubstr("is no constant of profile"));
  EXPECT_THAT(ErrorOf(profile, ""), HasSubstr("is no constant of profile"));
}

TEST(FittedTest, TheOriginDecides) {
  hw::HardwareProfile profile;
  profile.set_name("mine");
  profile.mutable_gpu()->mutable_attention_efficiency()->set_origin(hw::Number::ASSUMED);
  EXPECT_THAT(ErrorOf(profile, "gpu.attention_efficiency"),
              AllOf(HasSubstr("profile mine"), HasSubstr("fitted are none")));
  profile.mutable_gpu()->mutable_gemm_efficiency()->set_origin(hw::Number::FITTED);
  EXPECT_TRUE(CheckFitted(profile, "gpu.gemm_efficiency").ok());
  EXPECT_THAT(ErrorOf(profile, "gpu.attention_efficiency"),
              AllOf(HasSubstr("fitted are gpu.gemm_efficiency"), Not(HasSubstr("none"))));
}

}  // namespace
}  // namespace optimus::tools
