// Measurements made from a known machine: the profile must be that machine again.

#include "hw_profiles/from_measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/testing_folder.h"

namespace optimus::hw {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                        CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                        CollectiveKind::kAllToAll};

HardwareProfile Base() { return *LoadProfile("h100-80gb"); }

// A CPU as a profile: the machine that the measurements are made from.
HardwareProfile Machine() {
  HardwareProfile machine = Base();
  machine.clear_nvls();
  Gpu& gpu = *machine.mutable_gpu();
  gpu.mutable_peak_dense_bf16_tflop_per_s()->set_value(0.05);
  gpu.mutable_gemm_efficiency()->set_value(0.8);
  gpu.mutable_attention_efficiency()->set_value(0.3);
  gpu.mutable_hbm_bandwidth_tb_per_s()->set_value(0.01);
  gpu.mutable_hbm_efficiency()->set_value(0.9);
  gpu.mutable_kernel_launch_us()->set_value(50);
  machine.mutable_gpus_per_node()->set_value(4);
  double latency = 100, efficiency = 0.9;
  for (Link* link : {machine.mutable_nvlink(), machine.mutable_nic()}) {
    link->mutable_bandwidth_gb_per_s()->set_value(link == machine.mutable_nic() ? 0.1 : 5);
    for (RingCost* row :
         {link->mutable_all_gather(), link->mutable_reduce_scatter(), link->mutable_all_reduce(),
          link->mutable_broadcast(), link->mutable_all_to_all(), link->mutable_send()}) {
      row->mutable_latency_us()->set_value(latency += 10);
      row->mutable_efficiency()->set_value(efficiency -= 0.05);
    }
  }
  return machine;
}

// Times of the machine, each off by up to `noise`, a share.
class Bench {
 public:
  explicit Bench(double noise) : noise_(-noise, noise) {
    result_.backend = "cpu";
    result_.device = "Some CPU, 1 core";
    result_.host = "node7";
    result_.date = "2026-03-04";
    result_.ranks = 8;
    result_.ranks_per_node = 4;
    result_.memory = Bytes(std::int64_t{3} << 29);
    result_.launch = Time(FromSeconds(50e-6));
    result_.interference = {1.25, 1.5, 1.75};
    result_.interference_repetitions = {6, 6, 6};
  }
  void AddKernels() {
    for (std::int64_t n = 64; n <= 2048; n *= 2) {
      Kernel gemm{KernelKind::kGemm, "fc1", {n, n, n}, {}, {}, {}, {}};
      gemm.flops = Flops(2.0 * static_cast<double>(n * n * n));
      gemm.bytes = Bytes(12 * n * n);
      Add(gemm);
      gemm.gemm.k = 1;  // as slow as the memory
      gemm.flops = Flops(2.0 * static_cast<double>(n * n));
      Add(gemm);
      Kernel attention{KernelKind::kAttention, "attention", {}, {}, {}, {}, {}};
      attention.attention = {1, 8, 8, n, 64, true, false};
      attention.flops = Flops(4.0 * 8 * 64 * static_cast<double>(n * n));
      attention.bytes = Bytes(std::int64_t{8} * 64 * 8 * n);
      Add(attention);
      Kernel norm{KernelKind::kMemoryBound, "norm", {}, {}, {}, {}, {}};
      norm.bytes = Bytes(8192 * n);
      Add(norm);
    }
  }
  void AddCollectives(LinkScope scope, GroupShape group) {
    for (const CollectiveKind kind : kAllKinds) Add({false, kind, scope, group, {}});
  }
  void Add(TransferMeasurement transfer) {
    for (std::int64_t size = 1024; size <= std::int64_t{64} << 20; size *= 4) {
      const TransferCost cost =
          transfer.send ? model_.SendCost(Bytes(size), transfer.scope == LinkScope::kNvlink)
                        : model_.CollectiveCost({transfer.kind, "", Bytes(size)}, transfer.group);
      transfer.points.push_back({Bytes(size), Time(UncontendedTime(model_, cost))});
    }
    result_.transfers.push_back(transfer);
  }
  void AddAll() {
    AddKernels();
    AddCollectives(LinkScope::kNvlink, {2, 2});
    AddCollectives(LinkScope::kNvlink, {4, 4});
    AddCollectives(LinkScope::kNic, {2, 1});
    Add({true, {}, LinkScope::kNvlink, {2, 2}, {}});
    Add({true, {}, LinkScope::kNic, {2, 1}, {}});
  }
  HardwareMeasurements& result() { return result_; }

 private:
  void Add(const Kernel& kernel) {
    result_.kernels.push_back({kernel, Time(model_.KernelTime(kernel))});
  }
  ::optimus::MeasuredTime Time(Picoseconds time) {
    return {FromSeconds(ToSeconds(time) * (1 + noise_(random_))), Picoseconds(7), 5};
  }

  const ProfileCostModel model_{Machine()};
  std::mt19937 random_{11};
  std::uniform_real_distribution<double> noise_;
  HardwareMeasurements result_;
};

HardwareProfile Made(const HardwareMeasurements& measured) {
  const auto profile = MakeProfile("mine", measured, Base());
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.value_or(HardwareProfile());
}

HardwareProfile WithoutTables(HardwareProfile profile) {
  profile.clear_measured_kernels();
  profile.clear_measured_transfers();
  return profile;
}

// Of any work, in or out of the tables: how far the model's price is from the machine's.
void ExpectPricesNear(const CostModel& model, double tolerance) {
  const ProfileCostModel machine(Machine());
  const auto expect = [&](Picoseconds a, Picoseconds b, const std::string& what) {
    EXPECT_NEAR(ToSeconds(a) / ToSeconds(b), 1, tolerance) << what;
  };
  for (const std::int64_t n : {50, 333, 4096}) {
    Kernel kernel;
    kernel.flops = Flops(2.0 * static_cast<double>(n * n * n));
    kernel.bytes = Bytes(12 * n * n);
    for (const KernelKind kind :
         {KernelKind::kGemm, KernelKind::kAttention, KernelKind::kMemoryBound}) {
      kernel.kind = kind;
      expect(model.KernelTime(kernel), machine.KernelTime(kernel), ToString(kind));
    }
  }
  for (const std::int64_t size : {500, 100'000, 300'000'000}) {
    for (const GroupShape group : {GroupShape{3, 3}, GroupShape{4, 4}, GroupShape{5, 1}}) {
      for (const CollectiveKind kind : kAllKinds) {
        const CollectiveWork work{kind, "", Bytes(size)};
        expect(UncontendedTime(model, model.CollectiveCost(work, group)),
               UncontendedTime(machine, machine.CollectiveCost(work, group)),
               absl::StrCat(ToString(kind), " ", size, " ", group.ranks));
      }
    }
    for (const bool same_node : {true, false}) {
      expect(UncontendedTime(model, model.SendCost(Bytes(size), same_node)),
             UncontendedTime(machine, machine.SendCost(Bytes(size), same_node)), "send");
    }
  }
}

TEST(MakeProfile, ExactTimesGiveTheMachineBack) {
  Bench bench(0);
  bench.AddAll();
  const HardwareProfile profile = Made(bench.result());
  ExpectPricesNear(ProfileCostModel(WithoutTables(profile)), 1e-4);
  const Interference factors = ProfileCostModel(profile).interference();
  EXPECT_EQ(factors.kernel_under_nvlink, 1.25);
  EXPECT_EQ(factors.kernel_under_nic, 1.5);
  EXPECT_EQ(factors.collective_under_kernel, 1.75);
  EXPECT_EQ(ProfileCostModel(profile).gpus_per_node(), 4);
  EXPECT_EQ(ProfileCostModel(profile).memory_capacity(), Bytes(std::int64_t{3} << 29));
}

// What is fitted to all shapes and sizes has tiles and protocols in it: the base's would count
// twice.
TEST(MakeProfile, TilesAndProtocolsOfTheBaseAreDroppedWhereMeasured) {
  const HardwareProfile base = *LoadProfile("a100-80gb");
  ASSERT_TRUE(base.has_protocols() && base.gpu().has_tiles());
  Bench bench(0);
  bench.AddAll();
  const HardwareProfile profile = *MakeProfile("made", bench.result(), base);
  EXPECT_FALSE(profile.has_protocols());
  EXPECT_FALSE(profile.gpu().has_tiles());
  ExpectPricesNear(ProfileCostModel(WithoutTables(profile)), 1e-4);
  HardwareMeasurements kernels_only = bench.result();
  kernels_only.transfers.clear();
  const HardwareProfile kept = *MakeProfile("made", kernels_only, base);
  EXPECT_TRUE(kept.has_protocols());
  EXPECT_FALSE(kept.gpu().has_tiles());
}

TEST(MakeProfile, NoiseStaysNoise) {
  Bench bench(0.05);
  bench.AddAll();
  const HardwareProfile profile = Made(bench.result());
  // An error of 5 % in single times is not much more in a fit through all of them.
  ExpectPricesNear(ProfileCostModel(WithoutTables(profile)), 0.1);
  for (const double value :
       {profile.gpu().gemm_efficiency().value(), profile.gpu().attention_efficiency().value(),
        profile.gpu().hbm_efficiency().value()}) {
    EXPECT_LE(value, 1);
    EXPECT_GT(value, 0.2);
  }
}

TEST(MakeProfile, WhatWasMeasuredIsPricedAsMeasured) {
  Bench bench(0.3);
  bench.AddAll();
  const ProfileCostModel model(Made(bench.result()));
  for (const KernelMeasurement& kernel : bench.result().kernels) {
    EXPECT_EQ(model.KernelTime(kernel.kernel), kernel.time.median) << kernel.kernel.name;
  }
}

TEST(MakeProfile, EveryNumberSaysWhereItIsFrom) {
  Bench bench(0.01);
  bench.AddAll();
  const HardwareProfile profile = Made(bench.result());
  const Gpu& gpu = profile.gpu();
  EXPECT_EQ(profile.name(), "mine");
  EXPECT_EQ(profile.measured_on(), "cpu on Some CPU, 1 core, node7, 2026-03-04");
  EXPECT_THAT(
      profile.description(),
      AllOf(StartsWith("Measured: 24 kernels, 17 transfers. Not measured, from h100-80gb: "),
            HasSubstr("gpu.optimizer_step_ms"), Not(HasSubstr("nvlink")), Not(HasSubstr("nic"))));
  for (const Number* number :
       {&gpu.peak_dense_bf16_tflop_per_s(), &gpu.gemm_efficiency(), &gpu.attention_efficiency(),
        &gpu.hbm_bandwidth_tb_per_s(), &gpu.hbm_efficiency(), &gpu.kernel_launch_us(),
        &profile.nvlink().bandwidth_gb_per_s(), &profile.nic().send().latency_us(),
        &profile.nvlink().all_to_all().efficiency(),
        &profile.interference().kernel_under_nic_factor()}) {
    EXPECT_EQ(number->origin(), Number::MEASURED);
    EXPECT_EQ(number->date(), "2026-03-04");
    EXPECT_THAT(number->source(), StartsWith("cpu on Some CPU, 1 core, node7: median of "));
  }
  EXPECT_THAT(gpu.gemm_efficiency().source(), HasSubstr("median of 5; least squares over 12"));
  EXPECT_EQ(gpu.optimizer_step_ms().SerializeAsString(),
            Base().gpu().optimizer_step_ms().SerializeAsString());
  EXPECT_FALSE(profile.has_nvls());
}

TEST(MakeProfile, WhatWasNotMeasuredIsTheBases) {
  HardwareMeasurements nothing;
  nothing.backend = "cpu";
  nothing.date = "2026";
  std::vector<std::string> not_measured;
  absl::StatusOr<HardwareProfile> made = MakeProfile("mine", nothing, Base(), &not_measured);
  ASSERT_TRUE(made.ok()) << made.status();
  HardwareProfile profile = *std::move(made);
  // A rank alone: how many its node has is not known.
  EXPECT_THAT(
      not_measured,
      ElementsAre("gpus_per_node", "gpu.memory_capacity_gib", "gpu.kernel_launch_us",
                  "gpu.hbm_bandwidth_tb_per_s", "gpu.hbm_efficiency",
                  "gpu.peak_dense_bf16_tflop_per_s", "gpu.gemm_efficiency",
                  "gpu.attention_efficiency", "nvlink", "nic",
                  "interference.kernel_under_nvlink_factor", "interference.kernel_under_nic_factor",
                  "interference.collective_under_kernel_factor", "gpu.optimizer_step_ms"));
  EXPECT_THAT(
      profile.description(),
      AllOf(HasSubstr("gpu.peak_dense_bf16_tflop_per_s, gpu.gemm_efficiency, "),
            HasSubstr("gpu.kernel_launch_us"), HasSubstr("gpu.hbm_bandwidth_tb_per_s"),
            HasSubstr("gpu.memory_capacity_gib"), HasSubstr("nvlink, nic, "),
            HasSubstr("interference.kernel_under_nvlink_factor"), HasSubstr("optimizer_step_ms")));
  profile.set_name(Base().name());
  profile.set_description(Base().description());
  profile.clear_measured_on();
  EXPECT_EQ(profile.SerializeAsString(), Base().SerializeAsString());
}

TEST(MakeProfile, AKindOfTransferThatIsMissingIsNamed) {
  Bench bench(0);
  bench.Add({false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {4, 4}, {}});
  bench.result().interference_repetitions = {6, 0, 6};
  const HardwareProfile profile = Made(bench.result());
  EXPECT_THAT(
      profile.description(),
      AllOf(HasSubstr("nvlink.all_gather, nvlink.reduce_scatter, nvlink.broadcast"),
            HasSubstr("nvlink.send"), HasSubstr(", nic, "),
            HasSubstr("interference.kernel_under_nic_factor"), Not(HasSubstr("nvlink.all_reduce")),
            Not(HasSubstr("kernel_under_nvlink_factor"))));
  EXPECT_EQ(profile.nvlink().send().SerializeAsString(),
            Base().nvlink().send().SerializeAsString());
  EXPECT_EQ(profile.interference().kernel_under_nic_factor().SerializeAsString(),
            Base().interference().kernel_under_nic_factor().SerializeAsString());
  // The fastest kind is the only one: 5 GB/s at its efficiency, and then all of that.
  EXPECT_NEAR(profile.nvlink().bandwidth_gb_per_s().value(),
              5 * Machine().nvlink().all_reduce().efficiency().value(), 1e-3);
  EXPECT_EQ(profile.nvlink().all_reduce().efficiency().value(), 1);
}

// Of one size: the base's share of the link, and what its bytes leave of the time.
TEST(MakeProfile, OneSizeSaysNothingAboutBandwidth) {
  const HardwareProfile base = Base();
  const auto small = [](GroupShape group) -> TransferMeasurement {
    return {false,
            CollectiveKind::kAllReduce,
            LinkScope::kNvlink,
            group,
            {{Bytes(8), {FromSeconds(8e-6), {}, 5}}}};
  };
  Bench bench(0);
  bench.Add({false, CollectiveKind::kAllGather, LinkScope::kNvlink, {2, 2}, {}});
  bench.result().transfers.push_back(small({2, 2}));
  // The same size in a larger group: other bytes on the link, and still nothing to tell.
  bench.result().transfers.push_back(small({4, 4}));
  std::vector<std::string> not_measured;
  const auto profile = MakeProfile("mine", bench.result(), base, &not_measured);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(not_measured, Contains("nvlink.all_reduce.efficiency"));
  EXPECT_THAT(not_measured, Not(Contains("nvlink.bandwidth_gb_per_s")));
  EXPECT_THAT(profile->description(), HasSubstr("nvlink.all_reduce.efficiency"));
  const RingCost& row = profile->nvlink().all_reduce();
  EXPECT_EQ(row.efficiency().SerializeAsString(),
            base.nvlink().all_reduce().efficiency().SerializeAsString());
  EXPECT_NEAR(row.latency_us().value(), 8, 0.02);  // 8 or 12 bytes take no time
  EXPECT_EQ(row.latency_us().origin(), Number::MEASURED);
  // A large one costs what such a link takes, not 8 us for every 8 bytes.
  const ProfileCostModel model(WithoutTables(*profile));
  const double price_s = ToSeconds(UncontendedTime(
      model, model.CollectiveCost({CollectiveKind::kAllReduce, "", Bytes(100'000'000)}, {2, 2})));
  const double link = 1e9 * profile->nvlink().bandwidth_gb_per_s().value();
  EXPECT_NEAR(price_s, 8e-6 + 1e8 / (link * row.efficiency().value()), 1e-3 * price_s);
}

TEST(MakeProfile, OneSizeOfEveryKindKeepsTheBasesBandwidth) {
  const HardwareProfile base = Base();
  for (const std::int64_t bytes : {8, 1 << 20, 1 << 30}) {
    Bench bench(0);
    const ::optimus::MeasuredTime time{FromSeconds(1e-3), Picoseconds(0), 5};
    bench.result().transfers = {
        {true, {}, LinkScope::kNic, {2, 1}, {{Bytes(bytes), time}}},
        {false, CollectiveKind::kBroadcast, LinkScope::kNic, {4, 1}, {{Bytes(bytes), time}}}};
    std::vector<std::string> not_measured;
    const auto profile = MakeProfile("mine", bench.result(), base, &not_measured);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_THAT(not_measured, IsSupersetOf({"nic.bandwidth_gb_per_s", "nic.send.efficiency",
                                            "nic.broadcast.efficiency", "nic.all_to_all"}));
    EXPECT_EQ(profile->nic().bandwidth_gb_per_s().SerializeAsString(),
              base.nic().bandwidth_gb_per_s().SerializeAsString());
    // By hand, from the base's numbers.
    const double rate =
        1e9 * base.nic().bandwidth_gb_per_s().value() * base.nic().send().efficiency().value();
    const double rest_us = 1e6 * std::max(1e-3 - static_cast<double>(bytes) / rate, 0.0);
    EXPECT_NEAR(profile->nic().send().latency_us().value(), rest_us, 1e-6 * rest_us) << bytes;
  }
}

TEST(MakeProfile, AFactorWithoutRepetitionsIsTheBases) {
  Bench bench(0);
  bench.AddAll();
  bench.result().interference_repetitions = {6, 6, 0};
  std::vector<std::string> not_measured;
  const auto profile = MakeProfile("mine", bench.result(), Base(), &not_measured);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(not_measured,
              ElementsAre("interference.collective_under_kernel_factor", "gpu.optimizer_step_ms"));
  EXPECT_EQ(profile->interference().collective_under_kernel_factor().SerializeAsString(),
            Base().interference().collective_under_kernel_factor().SerializeAsString());
  EXPECT_EQ(profile->interference().kernel_under_nic_factor().value(), 1.5);
}

TEST(MakeProfile, OddTimesStillMakeAValidProfile) {
  Bench bench(0);
  // A time that does not depend on the bytes, one size only, times that fall, and a slow-down that
  // speeds up.
  const ::optimus::MeasuredTime time{FromSeconds(1e-3), Picoseconds(0), 1};
  const ::optimus::MeasuredTime quick{FromSeconds(1e-4), Picoseconds(0), 1};
  HardwareMeasurements& measured = bench.result();
  measured.transfers = {
      {false,
       CollectiveKind::kAllGather,
       LinkScope::kNvlink,
       {2, 2},
       {{Bytes(1000), time}, {Bytes(1'000'000), time}}},
      {false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, {{Bytes(1000), time}}},
      {false,
       CollectiveKind::kBroadcast,
       LinkScope::kNvlink,
       {2, 2},
       {{Bytes(1000), time}, {Bytes(1'000'000), quick}}},
      {true, {}, LinkScope::kNvlink, {2, 2}, {{Bytes(0), time}}}};
  measured.interference = {0.97, 50, 1};
  Kernel norm;
  norm.kind = KernelKind::kMemoryBound;
  norm.bytes = Bytes(64);
  measured.kernels = {{norm, {Picoseconds(1'000'000), {}, 1}}};  // quicker than a launch
  const HardwareProfile profile = Made(measured);
  EXPECT_EQ(profile.interference().kernel_under_nvlink_factor().value(), 1);
  EXPECT_THAT(profile.description(), HasSubstr("nvlink.send"));
  const ProfileCostModel model(WithoutTables(profile));
  const CollectiveWork work{CollectiveKind::kAllGather, "", Bytes(1000)};
  EXPECT_NEAR(ToSeconds(UncontendedTime(model, model.CollectiveCost(work, {2, 2}))), 1e-3, 1e-4);
}

TEST(MakeProfile, BadMeasurementsAreRefused) {
  const auto refused = [](const std::function<void(HardwareMeasurements&)>& edit) {
    Bench bench(0);
    bench.AddAll();
    edit(bench.result());
    const absl::Status status = MakeProfile("mine", bench.result(), Base()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](auto& m) { m.kernels[3].kernel.kind = KernelKind::kFixed; }),
              AllOf(HasSubstr("'norm'"), HasSubstr("fixed")));
  EXPECT_THAT(refused([](auto& m) { m.kernels[0].kernel.attention.heads = 3; }),
              AllOf(HasSubstr("'fc1'"), HasSubstr("another kind")));
  EXPECT_THAT(refused([](auto& m) { m.kernels[2].time.median = Picoseconds(0); }),
              StartsWith("measured_kernels[2].time.median_us: is 0"));
  EXPECT_THAT(refused([](auto& m) { m.kernels[5] = m.kernels[1]; }),
              StartsWith("measured_kernels[5]: is the same as number 1"));
  EXPECT_THAT(refused([](auto& m) { m.transfers[0].scope = LinkScope::kNone; }),
              HasSubstr("no link"));
  EXPECT_THAT(refused([](auto& m) {
                std::swap(m.transfers[2].points[0].bytes, m.transfers[2].points[1].bytes);
              }),
              StartsWith("measured_transfers[2].points[1].bytes: is 1024; sizes ascend"));
  EXPECT_THAT(refused([](auto& m) { m.date = "yesterday"; }), HasSubstr("date: is 'yesterday'"));
  EXPECT_THAT(std::string(MakeProfile("", Bench(0).result(), Base()).status().message()),
              StartsWith("name: is missing"));
}

TEST(MakeProfile, WrittenAndLoadedItPricesTheSame) {
  Bench bench(0.2);
  bench.AddAll();
  const HardwareProfile profile = Made(bench.result());
  const TestingFolder folder;
  const std::string path = (folder.path() / "mine.textproto").string();
  std::ofstream(path) << ToTextProto(profile);
  const auto loaded = LoadProfile(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->SerializeAsString(), profile.SerializeAsString());
  const ProfileCostModel before(profile), after(*loaded);
  for (const KernelMeasurement& kernel : bench.result().kernels) {
    EXPECT_EQ(before.KernelTime(kernel.kernel), after.KernelTime(kernel.kernel));
  }
  for (const std::int64_t size : {100, 77'777, 1 << 30}) {
    const CollectiveWork work{CollectiveKind::kAllReduce, "", Bytes(size)};
    EXPECT_EQ(UncontendedTime(before, before.CollectiveCost(work, {4, 4})),
              UncontendedTime(after, after.CollectiveCost(work, {4, 4})));
  }
}

}  // namespace
}  // namespace optimus::hw
