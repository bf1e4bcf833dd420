// Prices against closed forms, written out here again from a made-up profile of round numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                        CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                        CollectiveKind::kAllToAll};
constexpr double kNvlinkGb = 100, kNicGb = 10;

void Fill(RingCost& row, double efficiency, double latency_us) {
  row.mutable_efficiency()->set_value(efficiency);
  row.mutable_latency_us()->set_value(latency_us);
}

void Fill(Link& link, double gb_per_s, double efficiency, double latency_us) {
  link.mutable_bandwidth_gb_per_s()->set_value(gb_per_s);
  for (RingCost* row :
       {link.mutable_all_gather(), link.mutable_reduce_scatter(), link.mutable_all_reduce(),
        link.mutable_broadcast(), link.mutable_all_to_all(), link.mutable_send()}) {
    Fill(*row, efficiency, latency_us);
  }
}

// NVLink 100 GB/s at 0.5, 4 us; NIC 10 GB/s at 0.8, 20 us. No NVLS.
HardwareProfile RoundNumbers() {
  HardwareProfile profile;
  Gpu& gpu = *profile.mutable_gpu();
  gpu.mutable_peak_dense_bf16_tflop_per_s()->set_value(1000);
  gpu.mutable_gemm_efficiency()->set_value(0.5);
  gpu.mutable_attention_efficiency()->set_value(0.25);
  gpu.mutable_hbm_bandwidth_tb_per_s()->set_value(2);
  gpu.mutable_hbm_efficiency()->set_value(0.5);
  gpu.mutable_kernel_launch_us()->set_value(3);
  gpu.mutable_memory_capacity_gib()->set_value(80);
  gpu.mutable_optimizer_step_ms()->set_value(30);
  profile.mutable_gpus_per_node()->set_value(8);
  Fill(*profile.mutable_nvlink(), kNvlinkGb, 0.5, 4);
  Fill(*profile.mutable_nic(), kNicGb, 0.8, 20);
  return profile;
}

double Microseconds(Picoseconds t) { return static_cast<double>(t.value()) / 1e6; }

double CollectiveUs(const HardwareProfile& profile, CollectiveKind kind, std::int64_t bytes,
                    GroupShape group) {
  const ProfileCostModel model(profile);
  return Microseconds(
      UncontendedTime(model, model.CollectiveCost({kind, "", Bytes(bytes)}, group)));
}

Kernel Make(KernelKind kind, double flops, std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.flops = Flops(flops);
  kernel.bytes = Bytes(bytes);
  return kernel;
}

TEST(KernelTime, GemmIsTheSlowerOfMathAndMemoryPlusLaunch) {
  const ProfileCostModel model(RoundNumbers());
  // 5e9 FLOP at 500 TFLOP/s: 10 us.
  EXPECT_EQ(model.KernelTime(Make(KernelKind::kGemm, 5e9, 0)), FromSeconds(13e-6));
  EXPECT_EQ(model.KernelTime(Make(KernelKind::kGemm, 5e9, 9'000'000)), FromSeconds(13e-6));
  // 20 MB at 1 TB/s: 20 us.
  EXPECT_EQ(model.KernelTime(Make(KernelKind::kGemm, 5e9, 20'000'000)), FromSeconds(23e-6));
}

TEST(KernelTime, AttentionIsPricedByFlopsOnly) {
  const ProfileCostModel model(RoundNumbers());
  EXPECT_EQ(model.KernelTime(Make(KernelKind::kAttention, 5e9, 1'000'000'000)), FromSeconds(23e-6));
}

TEST(KernelTime, MemoryBoundIsPricedByBytesOnly) {
  const ProfileCostModel model(RoundNumbers());
  EXPECT_EQ(model.KernelTime(Make(KernelKind::kMemoryBound, 1e18, 7'000'000)), FromSeconds(10e-6));
}

TEST(KernelTime, FixedIsTakenAsItIs) {
  const ProfileCostModel model(RoundNumbers());
  Kernel kernel = Make(KernelKind::kFixed, 1e18, 1'000'000'000);
  kernel.fixed = Picoseconds(12'345);
  EXPECT_EQ(model.KernelTime(kernel), Picoseconds(12'345));
}

// The slow twin of the ring formulas: walks every step of a ring and adds up what one GPU sends.
// `sweeps` 1: all-gather or reduce-scatter, 2: all-reduce. Chunk of S/n a step.
double RingByWalking(double size, int ranks, int sweeps) {
  double sent = 0;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int step = 1; step < ranks; ++step) sent += size / ranks;
  }
  return sent;
}

double SentBytes(CollectiveKind kind, double size, int ranks) {
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return RingByWalking(size, ranks, 1);
    case CollectiveKind::kAllReduce:
      return RingByWalking(size, ranks, 2);
    case CollectiveKind::kBroadcast:
      return size;
    case CollectiveKind::kAllToAll:
      return size - size / ranks;  // all but what it keeps
  }
  return NAN;
}

TEST(CollectiveCost, ClosedFormsInsideANode) {
  for (const CollectiveKind kind : kAllKinds) {
    for (const int n : {2, 3, 4, 8}) {
      const double size = 96'000'000;
      const double expected_us = 4 + SentBytes(kind, size, n) / 0.5 / (kNvlinkGb * 1e3);
      EXPECT_NEAR(CollectiveUs(RoundNumbers(), kind, 96'000'000, {n, n}), expected_us, 1e-3)
          << ToString(kind) << " " << n;
    }
  }
}

TEST(CollectiveCost, ClosedFormsOneRankANode) {
  for (const CollectiveKind kind : kAllKinds) {
    for (const int n : {2, 5, 48}) {
      const double expected_us = 20 + SentBytes(kind, 96e6, n) / 0.8 / (kNicGb * 1e3);
      EXPECT_NEAR(CollectiveUs(RoundNumbers(), kind, 96'000'000, {n, 1}), expected_us, 1e-3)
          << ToString(kind) << " " << n;
    }
  }
}

TEST(CollectiveCost, KRanksANodeShareTheRingOverKNics) {
  // 4 nodes of 2: two rings, each with half of the data.
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
    const double expected_us = 20 + SentBytes(kind, 96e6, 8) / 2 / 0.8 / (kNicGb * 1e3);
    EXPECT_NEAR(CollectiveUs(RoundNumbers(), kind, 96'000'000, {8, 2}), expected_us, 1e-3)
        << ToString(kind);
  }
  // All-to-all: of 8 parts, one stays and one goes to the neighbour in the node; 6 leave.
  EXPECT_NEAR(CollectiveUs(RoundNumbers(), CollectiveKind::kAllToAll, 96'000'000, {8, 2}),
              20 + 96e6 * 6 / 8 / 0.8 / (kNicGb * 1e3), 1e-3);
}

// Two GPUs a NIC, four NICs a node. Members that are alone in a node, or of which two share a NIC,
// use it whole; two and four members leave a node by another NIC than they came in by.
TEST(CollectiveCost, SpreadRingsOnSharedNicsReachAShare) {
  const HardwareProfile own = RoundNumbers();
  HardwareProfile shared = own;
  shared.mutable_shared_nics()->mutable_gpus_per_nic()->set_value(2);
  shared.mutable_shared_nics()->mutable_spread_ring_efficiency()->set_value(0.5);
  for (const CollectiveKind kind : kAllKinds) {
    for (const int per_node : {1, 2, 4, 8}) {
      const GroupShape group = {4 * per_node, per_node};
      const double whole_us = CollectiveUs(own, kind, 960'000'000, group);
      const bool halved = kind != CollectiveKind::kAllToAll && (per_node == 2 || per_node == 4);
      const double latency_us = 20;
      EXPECT_NEAR(CollectiveUs(shared, kind, 960'000'000, group),
                  halved ? latency_us + 2 * (whole_us - latency_us) : whole_us, 1e-3)
          << ToString(kind) << " " << per_node;
    }
    EXPECT_EQ(CollectiveUs(shared, kind, 960'000'000, {4, 4}),
              CollectiveUs(own, kind, 960'000'000, {4, 4}));  // inside a node
  }
}

TEST(CollectiveCost, SlowNvlinkBoundsManyNics) {
  // 8 NICs of 8 GB/s carry 64 GB/s; NVLink 50 GB/s is less, and the ring passes it whole.
  EXPECT_NEAR(CollectiveUs(RoundNumbers(), CollectiveKind::kAllGather, 96'000'000, {16, 8}),
              20 + 96e6 * 15 / 16 / (50e3), 1e-3);
  const ProfileCostModel model(RoundNumbers());
  const TransferCost cost =
      model.CollectiveCost({CollectiveKind::kAllGather, "", Bytes(96'000'000)}, {16, 8});
  EXPECT_EQ(cost.scope, LinkScope::kNic);
}

TEST(CollectiveCost, ScopeFollowsTheNodes) {
  const ProfileCostModel model(RoundNumbers());
  for (const CollectiveKind kind : kAllKinds) {
    const CollectiveWork work{kind, "", Bytes(1 << 20)};
    EXPECT_EQ(model.CollectiveCost(work, {8, 8}).scope, LinkScope::kNvlink);
    EXPECT_EQ(model.CollectiveCost(work, {4, 8}).scope, LinkScope::kNvlink);
    EXPECT_EQ(model.CollectiveCost(work, {8, 4}).scope, LinkScope::kNic);
    EXPECT_EQ(model.CollectiveCost(work, {2, 1}).scope, LinkScope::kNic);
  }
}

TEST(CollectiveCost, OneRankCostsNothing) {
  const ProfileCostModel model(RoundNumbers());
  for (const CollectiveKind kind : kAllKinds) {
    const TransferCost cost = model.CollectiveCost({kind, "", Bytes(1 << 30)}, {1, 1});
    EXPECT_EQ(cost.scope, LinkScope::kNone);
    EXPECT_EQ(cost.wire_bytes, Bytes(0));
    EXPECT_EQ(UncontendedTime(model, cost), Picoseconds(0));
  }
}

TEST(CollectiveCost, NoBytesCostTheLatency) {
  for (const CollectiveKind kind : kAllKinds) {
    EXPECT_EQ(CollectiveUs(RoundNumbers(), kind, 0, {8, 8}), 4);
    EXPECT_EQ(CollectiveUs(RoundNumbers(), kind, 0, {48, 1}), 20);
    EXPECT_EQ(CollectiveUs(RoundNumbers(), kind, 0, {16, 8}), 20);
  }
}

TEST(CollectiveCost, AllReduceIsReduceScatterThenAllGather) {
  const auto wire = [](CollectiveKind kind, GroupShape group) {
    return ProfileCostModel(RoundNumbers())
        .CollectiveCost({kind, "", Bytes(48'000'000)}, group)
        .wire_bytes;
  };
  for (const GroupShape group : {GroupShape{8, 8}, GroupShape{6, 1}, GroupShape{8, 2}}) {
    EXPECT_EQ(wire(CollectiveKind::kAllReduce, group), wire(CollectiveKind::kReduceScatter, group) +
                                                           wire(CollectiveKind::kAllGather, group));
  }
}

TEST(CollectiveCost, WireBytesScaleWithTheSize) {
  const ProfileCostModel model(RoundNumbers());
  for (const CollectiveKind kind : kAllKinds) {
    for (const GroupShape group : {GroupShape{8, 8}, GroupShape{48, 1}, GroupShape{16, 8}}) {
      const auto one = model.CollectiveCost({kind, "", Bytes(48'000'000)}, group);
      const auto ten = model.CollectiveCost({kind, "", Bytes(480'000'000)}, group);
      EXPECT_NEAR(static_cast<double>(ten.wire_bytes.value()),
                  10.0 * static_cast<double>(one.wire_bytes.value()), 10);
      EXPECT_EQ(ten.latency, one.latency);
    }
  }
}

TEST(CollectiveCost, EachCollectiveHasItsOwnRow) {
  // Latencies 1..5 us on NVLink, 11..15 on the NIC, in the order of kAllKinds.
  HardwareProfile profile = RoundNumbers();
  double latency = 0;
  for (Link* link : {profile.mutable_nvlink(), profile.mutable_nic()}) {
    for (RingCost* row :
         {link->mutable_all_gather(), link->mutable_reduce_scatter(), link->mutable_all_reduce(),
          link->mutable_broadcast(), link->mutable_all_to_all()}) {
      Fill(*row, 0.5, ++latency);
    }
    latency = 10;
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(CollectiveUs(profile, kAllKinds[i], 0, {8, 8}), 1 + i);
    EXPECT_EQ(CollectiveUs(profile, kAllKinds[i], 0, {8, 1}), 11 + i);
  }
}

TEST(SendCost, NvlinkInsideNicOutside) {
  HardwareProfile profile = RoundNumbers();
  Fill(*profile.mutable_nvlink()->mutable_send(), 0.4, 1);
  Fill(*profile.mutable_nic()->mutable_send(), 0.25, 2);
  const ProfileCostModel model(profile);
  const TransferCost near = model.SendCost(Bytes(40'000'000), true);
  EXPECT_EQ(near.scope, LinkScope::kNvlink);
  EXPECT_EQ(near.wire_bytes, Bytes(100'000'000));
  EXPECT_EQ(UncontendedTime(model, near), FromSeconds(1001e-6));
  const TransferCost far = model.SendCost(Bytes(10'000'000), false);
  EXPECT_EQ(far.scope, LinkScope::kNic);
  EXPECT_EQ(UncontendedTime(model, far), FromSeconds(4002e-6));
}

// Round numbers with NVLS at 0.8 of 100 GB/s and 10 us for all-reduces of 1 MiB and more.
HardwareProfile WithNvls() {
  HardwareProfile profile = RoundNumbers();
  Nvls& nvls = *profile.mutable_nvls();
  nvls.add_collectives(Nvls::ALL_REDUCE);
  nvls.mutable_efficiency()->set_value(0.8);
  nvls.mutable_latency_us()->set_value(10);
  nvls.mutable_minimum_mib()->set_value(1);
  return profile;
}

TEST(Nvls, AllReduceMovesTheBufferAndItsOwnSlice) {
  EXPECT_NEAR(CollectiveUs(WithNvls(), CollectiveKind::kAllReduce, 80'000'000, {8, 8}),
              10 + 90e6 / 80e3, 1e-3);
}

TEST(Nvls, IsTakenWhereItIsFaster) {
  const double link = 1e5;  // bytes a microsecond
  for (std::int64_t size = 1 << 16; size <= 1 << 28; size *= 2) {
    const double s = static_cast<double>(size);
    const double ring = 4 + s * 14 / 8 / (0.5 * link);
    const double nvls = 10 + s * 9 / 8 / (0.8 * link);
    const double expected = size >= 1 << 20 ? std::min(ring, nvls) : ring;
    EXPECT_NEAR(CollectiveUs(WithNvls(), CollectiveKind::kAllReduce, size, {8, 8}), expected, 1e-3)
        << size;
  }
  // Never where it is slower.
  HardwareProfile slow = WithNvls();
  slow.mutable_nvls()->mutable_efficiency()->set_value(0.1);
  EXPECT_EQ(CollectiveUs(slow, CollectiveKind::kAllReduce, 1 << 28, {8, 8}),
            CollectiveUs(RoundNumbers(), CollectiveKind::kAllReduce, 1 << 28, {8, 8}));
}

TEST(Nvls, OnlyListedCollectivesOfOneNode) {
  for (const CollectiveKind kind : kAllKinds) {
    const auto time = [&](const HardwareProfile& p, GroupShape group) {
      return CollectiveUs(p, kind, 1 << 28, group);
    };
    EXPECT_EQ(time(WithNvls(), {16, 8}), time(RoundNumbers(), {16, 8}));
    EXPECT_EQ(time(WithNvls(), {48, 1}), time(RoundNumbers(), {48, 1}));
    if (kind == CollectiveKind::kAllReduce) continue;
    EXPECT_EQ(time(WithNvls(), {8, 8}), time(RoundNumbers(), {8, 8})) << ToString(kind);
  }
  HardwareProfile all = WithNvls();
  all.mutable_nvls()->add_collectives(Nvls::ALL_GATHER);
  EXPECT_NEAR(CollectiveUs(all, CollectiveKind::kAllGather, 80'000'000, {8, 8}), 10 + 80e6 / 80e3,
              1e-3);
}

TEST(Model, PlainFigures) {
  const ProfileCostModel model(RoundNumbers());
  EXPECT_EQ(model.gpus_per_node(), 8);
  EXPECT_EQ(model.peak_flops(), FlopsPerSecond(1e15));
  EXPECT_EQ(model.memory_capacity(), Bytes(80LL << 30));
  EXPECT_EQ(model.optimizer_overhead(), FromSeconds(0.03));
  EXPECT_EQ(model.LinkBandwidth(LinkScope::kNvlink), BytesPerSecond(100e9));
  EXPECT_EQ(model.LinkBandwidth(LinkScope::kNic), BytesPerSecond(10e9));
}

}  // namespace
}  // namespace optimus::hw
