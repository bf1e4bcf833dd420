#include "hw_profiles/changed_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

using ::testing::HasSubstr;

HardwareProfile Base() { return *LoadProfile("h100-80gb"); }

Picoseconds SendTime(const HardwareProfile& profile, bool same_node) {
  const ProfileCostModel costs(profile);
  return UncontendedTime(costs, costs.SendCost(Bytes(1'000'000'000), same_node));
}

TEST(WithBandwidth, ChangesOneLink) {
  const HardwareProfile base = Base();
  const double nic = base.nic().bandwidth_gb_per_s().value();
  const auto changed = WithBandwidth(base, LinkScope::kNic, BytesPerSecond(2e9 * nic));
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(SendTime(*changed, true), SendTime(base, true));
  const double latency_s = base.nic().send().latency_us().value() / 1e6;
  EXPECT_NEAR(ToSeconds(SendTime(*changed, false)) - latency_s,
              (ToSeconds(SendTime(base, false)) - latency_s) / 2, 1e-9);
}

TEST(WithBandwidth, RefusesWhatNoLinkIs) {
  const auto changed = WithBandwidth(Base(), LinkScope::kNvlink, BytesPerSecond(1e30));
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(changed.status().message(), HasSubstr("nvlink.bandwidth_gb_per_s"));
}

TEST(WithBandwidth, ForgetsWhatWasMeasuredOverTheLink) {
  HardwareProfile base = Base();
  for (const bool between : {false, true}) {
    MeasuredTransfer& transfer = *base.add_measured_transfers();
    transfer.set_kind(MeasuredTransfer::SEND);
    transfer.set_between_nodes(between);
  }
  const HardwareProfile kept = WithoutMeasuredTransfers(base, LinkScope::kNic);
  ASSERT_EQ(kept.measured_transfers_size(), 1);
  EXPECT_FALSE(kept.measured_transfers(0).between_nodes());
}

TEST(ClusterGpus, IsOptionalWholeAndChecked) {
  HardwareProfile profile = Base();
  EXPECT_TRUE(ValidateProfile(profile).ok());
  Number& gpus = *profile.mutable_cluster_gpus();
  gpus = profile.gpus_per_node();
  gpus.set_value(3072);
  EXPECT_TRUE(ValidateProfile(profile).ok()) << ValidateProfile(profile);
  gpus.set_value(3072.5);
  EXPECT_THAT(ValidateProfile(profile).message(), HasSubstr("cluster_gpus.value"));
  gpus.set_value(0);
  EXPECT_THAT(ValidateProfile(profile).message(), HasSubstr("cluster_gpus.value"));
}

}  // namespace
}  // namespace optimus::hw
