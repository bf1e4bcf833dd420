// The table of a measured profile, from measurements that are made up.

#include "tools/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/testing_kernels.h"
#include "hw_profiles/from_measurements.h"
#include "tools/measuring.h"
#include "tools/profile_gaps.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kCore[] = "examples/cpu/core.textproto";

MeasuredTime Time(double us, int repetitions = 20) {
  return {FromSeconds(us * 1e-6), FromSeconds(us * 1e-7), repetitions};
}

// Two ranks in a node: a GEMM of 100 GFLOP/s without its launch, a stream of 10 GB/s, two kinds of
// transfer.
HardwareMeasurements TwoRanks() {
  HardwareMeasurements measured;
  measured.backend = "cpu";
  measured.device = "Some CPU, one core a rank";
  measured.host = "node7";
  measured.date = "2026-03-04";
  measured.ranks = measured.ranks_per_node = 2;
  measured.memory = Bytes(std::int64_t{4} << 30);
  Kernel gemm = GemmKernel("fc1", {100, 100, 100});
  gemm.flops = Flops(2e6);
  measured.kernels = {{gemm, Time(20.2)}, {MemoryBoundKernel(500'000), Time(50)}};
  measured.transfers = {
      {false,
       CollectiveKind::kAllReduce,
       LinkScope::kNvlink,
       {2, 2},
       {{Bytes(8), Time(10.004)}, {Bytes(64'000), Time(42)}, {Bytes(1'000'000), Time(510)}}},
      {true, {}, LinkScope::kNvlink, {2, 2}, {{Bytes(8), Time(5)}}}};
  measured.launch = Time(0.2);
  measured.interference = {1.25, 1, 1.5};
  measured.interference_repetitions = {20, 0, 19};
  return measured;
}

ProfileReport ReportOf(const HardwareMeasurements& measured, const std::string& base = kCore) {
  ProfileReport report;
  report.measured = measured;
  report.base = *hw::LoadProfile(base);
  report.base_from = "--base";
  const auto profile = hw::MakeProfile("mine", measured, report.base, &report.not_measured);
  EXPECT_TRUE(profile.ok()) << profile.status();
  report.profile = *profile;
  return report;
}

TEST(ProfileText, SaysUnitsAndConditions) {
  const std::string text = ProfileText(ReportOf(TwoRanks()));
  EXPECT_THAT(text, StartsWith("profile     mine\n"
                               "backend     cpu: Some CPU, one core a rank\n"
                               "measured    2026-03-04, 2 ranks, 2 a node, rank 0 on node7\n"));
  EXPECT_THAT(text, HasSubstr("median  spread  repetitions  computes  memory\n"));
  EXPECT_THAT(text, HasSubstr("us       %                GFLOP/s    GB/s\n"));
  EXPECT_THAT(text, HasSubstr("20.2    10.0           20      99.0       -\n"));
  EXPECT_THAT(text, HasSubstr("50.0    10.0           20         -    10.0\n"));
  EXPECT_THAT(text, HasSubstr("a kernel under a collective in a node x1.25 (median of 20), between "
                              "nodes: not measured;\n            a collective under a kernel x1.5 "
                              "(median of 19)\n"));
  EXPECT_THAT(text, Not(HasSubstr("few samples")));
}

// all_reduce of two ranks: 10 us and 2 GB/s; a message of one size tells no bandwidth.
TEST(ProfileText, AFitOfOneSizeHasNoBandwidth) {
  const std::string text = ProfileText(ReportOf(TwoRanks()));
  EXPECT_THAT(text, HasSubstr("510.0     10.0           20   10.0       2.00\n"));
  EXPECT_THAT(text, HasSubstr("5.0     10.0           20    5.0          -\n"));
}

TEST(ProfileText, SaysWhatWasNotMeasured) {
  EXPECT_THAT(
      ProfileText(ReportOf(TwoRanks())),
      HasSubstr("\nNot measured, kept from core (--base)\n"
                "  - fixed part of the optimizer step: 1 ms (ASSUMED)\n"
                "  - efficiency of attention: 0.4 of the peak (ASSUMED)\n"
                "  - transfers in a node: all_gather, reduce_scatter, broadcast, all_to_all\n"
                "  - efficiency in a node, where one size was measured: send\n"
                "  - transfers between nodes: all; bandwidth 8 GB/s (ASSUMED)\n"
                "  - slow-down of a kernel under a collective between nodes: none\n"
                "\nwall "));
}

TEST(ProfileText, ARankAloneMeasuresKernelsOnly) {
  HardwareMeasurements measured = TwoRanks();
  measured.ranks = measured.ranks_per_node = 1;
  measured.transfers.clear();
  measured.interference_repetitions = {};
  const ProfileReport report = ReportOf(measured, "h100-80gb");
  EXPECT_THAT(ProfileText(report),
              AllOf(HasSubstr("2026-03-04, 1 rank alone, on node7\n"),
                    HasSubstr("transfers   not measured: one rank alone moves no data\n"),
                    HasSubstr("not measured, it takes 2 ranks\n"),
                    HasSubstr("  - ranks a node: 8 (DATASHEET)\n"),
                    HasSubstr("  - transfers in a node: all; bandwidth 450 GB/s (DATASHEET)"),
                    HasSubstr("  - slow-down of a kernel under a collective between nodes: x1.06 "
                              "(ASSUMED)\n"),
                    HasSubstr("  ! h100-80gb is another kind of machine")));
}

TEST(OtherMachineText, OnlyForAnotherKind) {
  const ProfileReport alike = ReportOf(TwoRanks());
  EXPECT_EQ(OtherMachineText(alike.profile, alike.base, alike.not_measured), "");
  ProfileReport other = ReportOf(TwoRanks(), "h100-80gb");
  // 989 TFLOP/s, of which 0.1 were measured.
  EXPECT_THAT(OtherMachineText(other.profile, other.base, other.not_measured),
              StartsWith("h100-80gb is another kind of machine: its peak is 9890 times"));
  other.base.mutable_gpu()->mutable_peak_dense_bf16_tflop_per_s()->set_value(0.005);
  EXPECT_THAT(OtherMachineText(other.profile, other.base, other.not_measured),
              HasSubstr("its peak is 0.05 times the measured one"));
  // Where the peak is the base's too, there is nothing to compare.
  HardwareMeasurements streams = TwoRanks();
  streams.kernels.erase(streams.kernels.begin());
  const ProfileReport none = ReportOf(streams, "h100-80gb");
  EXPECT_EQ(OtherMachineText(none.profile, none.base, none.not_measured), "");
}

TEST(FewSamplesText, CountsKernelsAndSizes) {
  HardwareMeasurements measured = TwoRanks();
  EXPECT_EQ(FewSamplesText(measured), "");
  measured.transfers[0].points[1].time.repetitions = 5;
  EXPECT_EQ(FewSamplesText(measured), "");
  measured.transfers[0].points[1].time.repetitions = 4;
  measured.kernels[0].time.repetitions = 2;
  EXPECT_THAT(FewSamplesText(measured),
              StartsWith("2 of 6 kernels and sizes of transfers were measured fewer than 5 times "
                         "(the fewest: 2)"));
  EXPECT_THAT(ProfileText(ReportOf(measured)), HasSubstr("\nfew samples 2 of 6 kernels"));
}

TEST(ProfileJson, BaseAndWhatWasNotMeasured) {
  const auto json = nlohmann::json::parse(ProfileJson(ReportOf(TwoRanks())));
  EXPECT_EQ(json["base"], "core");
  EXPECT_THAT(json["not_measured"].get<std::vector<std::string>>(),
              ElementsAre("gpu.attention_efficiency", "nvlink.all_gather", "nvlink.reduce_scatter",
                          "nvlink.broadcast", "nvlink.all_to_all", "nvlink.send.efficiency", "nic",
                          "interference.kernel_under_nic_factor", "gpu.optimizer_step_ms"));
  EXPECT_EQ(json["interference"].size(), 2);
  EXPECT_EQ(json["interference"]["collective_under_kernel_factor"], 1.5);
  EXPECT_EQ(json["ranks"], 2);
}

}  // namespace
}  // namespace optimus::tools
