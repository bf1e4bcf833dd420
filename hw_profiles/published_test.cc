// The zoo's profiles against published figures. Each row says whether a profile was fitted on it.

#include <gtest/gtest.h>

#include <cmath>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

constexpr GroupShape kNode{8, 8};

ProfileCostModel Model(const char* name) { return ProfileCostModel(*LoadProfile(name)); }

double Seconds(const ProfileCostModel& model, CollectiveKind kind, std::int64_t bytes,
               GroupShape group) {
  return ToSeconds(UncontendedTime(model, model.CollectiveCost({kind, "", Bytes(bytes)}, group)));
}

// Optimus paper, section 2: about 300 us. One GPT-175B activation: micro-batch 2, sequence 2048,
// width 12288, bf16.
TEST(PaperProfile, TensorParallelCollectivesOfGpt175b) {
  const ProfileCostModel model = Model("h100-80gb");
  const std::int64_t bytes = 2LL * 2048 * 12288 * 2;
  EXPECT_NEAR(Seconds(model, CollectiveKind::kAllGather, bytes, kNode) * 1e6, 294.6, 0.1);
  EXPECT_NEAR(Seconds(model, CollectiveKind::kReduceScatter, bytes, kNode) * 1e6, 294.6, 0.1);
  EXPECT_NEAR(Seconds(model, CollectiveKind::kAllGather, bytes, kNode) / 300e-6, 1, 0.03);
}

// ViT-22B + GPT-175B over 64 GPUs of pipeline and tensor parallelism, 48 data-parallel ranks, each
// in another node.
TEST(PaperProfile, DataParallelCollectives) {
  const ProfileCostModel model = Model("h100-80gb");
  const std::int64_t parameters = (175'000'000'000 + 22'000'000'000) / 64;  // 3,078,125,000 a GPU
  // By hand: 6.15625e9 B * 47/48 / (0.65 * 50e9 B/s) = 0.185477 s, and 15 us.
  EXPECT_NEAR(Seconds(model, CollectiveKind::kAllGather, 2 * parameters, {48, 1}), 0.185492, 1e-6);
  // 12.3125e9 B * 47/48 / (0.48 * 50e9 B/s) = 0.502333 s, and 15 us.
  EXPECT_NEAR(Seconds(model, CollectiveKind::kReduceScatter, 4 * parameters, {48, 1}), 0.502348,
              1e-6);
}

// Optimus paper, Table 1: 0.167 s and 0.458 s on more than 3000 GPUs. It does not name the model;
// GPT-175B alone comes close to both at once. Both were used to fit the NIC efficiencies.
TEST(PaperProfile, DataParallelBubblesOfTable1) {
  const ProfileCostModel model = Model("h100-80gb");
  const std::int64_t parameters = 175'000'000'000 / 64;
  EXPECT_NEAR(Seconds(model, CollectiveKind::kAllGather, 2 * parameters, {48, 1}) / 0.167, 1, 0.03);
  EXPECT_NEAR(Seconds(model, CollectiveKind::kReduceScatter, 4 * parameters, {48, 1}) / 0.458, 1,
              0.03);
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(Bandwidth, AsNcclTestsDefineThem) {
  const auto bus = [](CollectiveKind kind, int ranks) {
    return BusBandwidth({kind, "", Bytes(1'000'000)}, ranks, FromSeconds(1e-3)).value();
  };
  EXPECT_DOUBLE_EQ(
      AlgorithmBandwidth({CollectiveKind::kAllReduce, "", Bytes(1'000'000)}, FromSeconds(1e-3))
          .value(),
      1e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kAllReduce, 8), 1.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kAllReduce, 2), 1e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kAllGather, 8), 0.875e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kReduceScatter, 4), 0.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kAllToAll, 4), 0.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::kBroadcast, 8), 1e9);
}

TEST(Bandwidth, ReproducesAMeasuredRow) {
  // vTrain's look-up table, 8 x A100: 134217728 B in 1162 us is 202.1 GB/s.
  const CollectiveWork work{CollectiveKind::kAllReduce, "", Bytes(134'217'728)};
  EXPECT_NEAR(BusBandwidth(work, 8, FromSeconds(1162e-6)).value(), 202.1e9, 0.1e9);
}

// Without latency and inefficiency a ring's bus bandwidth is the link's, whatever the collective.
TEST(Bandwidth, IdealRingReachesTheLink) {
  HardwareProfile profile = *LoadProfile("a100-80gb");
  profile.clear_protocols();
  Link& link = *profile.mutable_nvlink();
  for (RingCost* row :
       {link.mutable_all_gather(), link.mutable_reduce_scatter(), link.mutable_all_reduce(),
        link.mutable_broadcast(), link.mutable_all_to_all()}) {
    row->mutable_efficiency()->set_value(1);
    row->mutable_latency_us()->set_value(0);
  }
  const ProfileCostModel model(profile);
  for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAll); ++kind) {
    const CollectiveWork work{static_cast<CollectiveKind>(kind), "", Bytes(800'000'000)};
    const Picoseconds time = UncontendedTime(model, model.CollectiveCost(work, kNode));
    EXPECT_NEAR(BusBandwidth(work, 8, time).value(), 300e9, 1e3) << ToString(work.kind);
  }
}

struct MeasuredAllReduce {
  std::int64_t bytes;
  double bus_gb_per_s;
  bool fitted;
};

double RelativeError(const ProfileCostModel& model, const MeasuredAllReduce& row) {
  const double modelled = Seconds(model, CollectiveKind::kAllReduce, row.bytes, kNode);
  const double measured = 1.75 * static_cast<double>(row.bytes) / (row.bus_gb_per_s * 1e9);
  return modelled / measured - 1;
}

// 8 x A100, NCCL, vTrain look-up tables (VIA-Research/vTrain). Up to 4 MiB the measured times are
// flat at about 95 us; then LL128 is the fastest for a while, and Simple from about 15 MiB.
TEST(MeasuredAllReduce, A100) {
  const MeasuredAllReduce rows[] = {
      {1'048'576, 19.8, true},     {4'194'304, 76.6, false},     {16'777'216, 126.3, true},
      {67'108'864, 202.5, false},  {134'217'728, 202.1, false},  {268'435'456, 217.3, false},
      {536'870'912, 224.2, false}, {1'073'741'824, 229.4, true},
  };
  for (const char* name : {"a100-80gb", "a100-80gb-4nic"}) {
    const ProfileCostModel model = Model(name);
    for (const MeasuredAllReduce& row : rows) {
      EXPECT_LT(std::abs(RelativeError(model, row)), row.fitted ? 0.02 : 0.05)
          << name << " " << row.bytes;
    }
  }
}

// Between the measured sizes the curve has no jump: from one size to the next, 1 % larger, the time
// grows by no more than the bytes do, and the bus bandwidth never falls by more than rounding.
TEST(MeasuredAllReduce, A100CurveIsSmooth) {
  const ProfileCostModel model = Model("a100-80gb");
  double before = Seconds(model, CollectiveKind::kAllReduce, 1 << 20, kNode);
  for (double bytes = 1.01 * (1 << 20); bytes < 4e9; bytes *= 1.01) {
    const double now =
        Seconds(model, CollectiveKind::kAllReduce, static_cast<std::int64_t>(bytes), kNode);
    EXPECT_GE(now, before * 0.999999) << bytes;
    EXPECT_LE(now, before * 1.0101) << bytes;
    before = now;
  }
}

// 8 x H100, NVLink SHARP, nccl-tests issue 290.
TEST(MeasuredAllReduce, H100Nvls) {
  const MeasuredAllReduce rows[] = {
      {134'217'728, 383, false},  {268'435'456, 412, false},     {536'870'912, 432, false},
      {1'073'741'824, 465, true}, {4'294'967'296, 473.6, false},
  };
  for (const char* name : {"h100-80gb", "h100-80gb-eos"}) {
    const ProfileCostModel model = Model(name);
    for (const MeasuredAllReduce& row : rows) {
      EXPECT_LT(std::abs(RelativeError(model, row)), row.fitted ? 0.005 : 0.05)
          << name << " " << row.bytes;
    }
  }
  // The ring alone would be far off: at most 0.70 * 450 GB/s of bus bandwidth.
  HardwareProfile ring = *LoadProfile("h100-80gb");
  ring.clear_nvls();
  EXPECT_GT(RelativeError(ProfileCostModel(ring), rows[4]), 0.4);
}

// NVIDIA, Matrix Multiplication Background User's Guide: what a profile with tiles has to show.
// Section "Wave quantization": an A100 computes 108 tiles of 256 x 128 at once, so a GEMM of 109
// takes two waves; rates of large GEMMs are flat again.
TEST(GemmShapes, WavesOfA100) {
  const ProfileCostModel model = Model("a100-80gb");
  const auto rate = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    Kernel kernel;
    kernel.kind = KernelKind::kGemm;
    kernel.gemm = {m, n, k};
    kernel.flops = Flops(2.0 * static_cast<double>(m) * static_cast<double>(n * k));
    kernel.bytes = Bytes(2 * (m * k + k * n + m * n));
    return kernel.flops.value() / ToSeconds(model.KernelTime(kernel)) / 312e12;
  };
  // 12 x 10 tiles of 256 x 128 are two waves of 108 SMs, 12 x 9 are one.
  EXPECT_LT(rate(3072, 1280, 4096), 0.85 * rate(3072, 1152, 4096));
  EXPECT_GT(rate(16384, 16384, 16384), 0.75);
  EXPECT_LT(rate(16384, 16384, 16384), 0.79);
  // Thinner in every direction is slower.
  EXPECT_LT(rate(4096, 768, 3072), rate(8192, 3072, 6144));
  EXPECT_LT(rate(8192, 6144, 256), 0.7 * rate(8192, 6144, 6144));
}

}  // namespace
}  // namespace optimus::hw
