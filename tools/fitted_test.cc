#include "tools/fitted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw_profiles/profile.h"

namespace optimus::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

hw::HardwareProfile H100() { return *hw::LoadProfile("h100-80gb"); }

// What the profile's own comments say was used to fit it.
TEST(FittedTest, KnowsTheFiguresOfTheProfile) {
  EXPECT_THAT(FittedConstants(H100(), "1.4", "ms"),
              ElementsAre("gpu.gemm_efficiency", "gpu.attention_efficiency"));
  EXPECT_THAT(FittedConstants(H100(), "300", "us"),
              ElementsAre("nvlink.all_gather.efficiency", "nvlink.reduce_scatter.efficiency"));
  EXPECT_THAT(FittedConstants(H100(), "0.167", "s"), ElementsAre("nic.all_gather.efficiency"));
  EXPECT_THAT(FittedConstants(H100(), "0.458", "s"), ElementsAre("nic.reduce_scatter.efficiency"));
}

TEST(FittedTest, NoStepTimeIsAmongThem) {
  for (const char* seconds : {"5.91", "5.87", "4.87"}) {
    EXPECT_THAT(FittedConstants(H100(), seconds, "s"), IsEmpty()) << seconds;
  }
}

TEST(FittedTest, ANumberIsQuotedAsAWhole) {
  hw::HardwareProfile profile;
  hw::Number& number = *profile.mutable_gpu()->mutable_gemm_efficiency();
  number.set_origin(hw::Number::FITTED);
  number.set_source("11.4 ms; 2 seconds; 0.5 s");
  EXPECT_THAT(FittedConstants(profile, "1.4", "ms"), IsEmpty());
  EXPECT_THAT(FittedConstants(profile, "2", "s"), IsEmpty());
  EXPECT_THAT(FittedConstants(profile, "5", "s"), IsEmpty());
  EXPECT_THAT(FittedConstants(profile, "0.5", "s"), ElementsAre("gpu.gemm_efficiency"));
  EXPECT_THAT(FittedConstants(profile, "", "s"), IsEmpty());
  number.set_origin(hw::Number::ASSUMED);
  EXPECT_THAT(FittedConstants(profile, "0.5", "s"), IsEmpty());
}

}  // namespace
}  // namespace optimus::tools
