// What was measured beats the roofline: look-up and interpolation against slow twins.

#include "hw_profiles/measured_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "google/protobuf/text_format.h"
#include "hw_profiles/collective_cost.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                        CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                        CollectiveKind::kAllToAll};

// The zoo's H100 with rows in text form.
HardwareProfile With(const std::string& rows) {
  HardwareProfile profile = *LoadProfile("h100-80gb"), more;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(rows, &more)) << rows;
  profile.MergeFrom(more);
  return profile;
}

constexpr char kKernels[] = R"(
  measured_kernels {
    kind: GEMM name: "fc1" gemm { m: 128 n: 256 k: 512 } flops: 33554432 bytes: 458752
    time { median_us: 12.345678 spread_us: 0.5 repetitions: 9 }
  }
  measured_kernels {
    kind: ATTENTION name: "attention"
    attention { sequences: 1 heads: 8 kv_heads: 2 sequence_length: 512 head_dim: 64 causal: true }
    flops: 1e9 bytes: 1048576
    time { median_us: 345.000001 repetitions: 3 }
  }
  measured_kernels {
    kind: MEMORY_BOUND name: "norm" bytes: 65536 time { median_us: 0.000001 repetitions: 1 }
  })";

Kernel Fc1() {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = "fc1";
  kernel.gemm = {128, 256, 512};
  kernel.flops = Flops(33554432);
  kernel.bytes = Bytes(458752);
  return kernel;
}

Kernel Attention() {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.name = "attention";
  kernel.attention = {1, 8, 2, 512, 64, true, false};
  kernel.flops = Flops(1e9);
  kernel.bytes = Bytes(1048576);
  return kernel;
}

Kernel Norm() {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.name = "norm";
  kernel.bytes = Bytes(65536);
  return kernel;
}

TEST(MeasuredKernels, TakeTheirMedianToThePicosecond) {
  const ProfileCostModel model(With(kKernels));
  EXPECT_EQ(model.KernelTime(Fc1()), Picoseconds(12'345'678));
  EXPECT_EQ(model.KernelTime(Attention()), Picoseconds(345'000'001));
  EXPECT_EQ(model.KernelTime(Norm()), Picoseconds(1));
}

TEST(MeasuredKernels, AnyOtherKernelIsPricedByTheRoofline) {
  const ProfileCostModel model(With(kKernels)), plain(*LoadProfile("h100-80gb"));
  const std::function<void(Kernel&)> changes[] = {
      [](Kernel& k) { k.name = "fc2"; },
      [](Kernel& k) { k.gemm.m += 1; },
      [](Kernel& k) { k.gemm.n += 1; },
      [](Kernel& k) { k.gemm.k += 1; },
      [](Kernel& k) { k.attention.sequences += 1; },
      [](Kernel& k) { k.attention.heads += 1; },
      [](Kernel& k) { k.attention.kv_heads += 1; },
      [](Kernel& k) { k.attention.sequence_length += 1; },
      [](Kernel& k) { k.attention.head_dim += 1; },
      [](Kernel& k) { k.attention.causal = !k.attention.causal; },
      [](Kernel& k) { k.attention.backward = !k.attention.backward; },
      [](Kernel& k) { k.flops = Flops(k.flops.value() + 1); },
      [](Kernel& k) { k.bytes += Bytes(1); },
  };
  for (const Kernel& measured : {Fc1(), Attention(), Norm()}) {
    for (const auto& change : changes) {
      Kernel kernel = measured;
      change(kernel);
      EXPECT_EQ(model.KernelTime(kernel), plain.KernelTime(kernel));
      EXPECT_NE(model.KernelTime(kernel), model.KernelTime(measured));
    }
  }
  Kernel fixed;
  fixed.fixed = Picoseconds(77);
  EXPECT_EQ(model.KernelTime(fixed), Picoseconds(77));
}

// The slow twin of pooling, by the min-max formula of isotonic regression (Robertson, Wright and
// Dykstra, Order Restricted Statistical Inference, 1988, theorem 1.4.4).
double MinMax(const std::vector<double>& values, std::size_t i) {
  double highest = -std::numeric_limits<double>::infinity();
  for (std::size_t from = 0; from <= i; ++from) {
    double lowest = std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t to = from; to < values.size(); ++to) {
      sum += values[to];
      if (to >= i) lowest = std::min(lowest, sum / static_cast<double>(to - from + 1));
    }
    highest = std::max(highest, lowest);
  }
  return highest;
}

TEST(NeverFalling, KeepsWhatRisesAndPoolsWhatFalls) {
  EXPECT_THAT(NeverFalling({1, 2, 2, 5}), ElementsAre(1, 2, 2, 5));
  EXPECT_THAT(NeverFalling({1, 4, 2, 5}), ElementsAre(1, 3, 3, 5));
  EXPECT_THAT(NeverFalling({9, 6, 3}), ElementsAre(6, 6, 6));
}

TEST(NeverFalling, IsTheMinMaxFormula) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> value(1, 10);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> values(1 + random() % 12);
    for (double& v : values) v = value(random);
    const std::vector<double> pooled = NeverFalling(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(pooled[i], MinMax(values, i), 1e-12);
    }
  }
}

struct RandomRow {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  bool send = false;
  GroupShape group;
  std::vector<std::int64_t> bytes;
  std::vector<double> times_us;

  HardwareProfile Profile() const {
    HardwareProfile profile = *LoadProfile("h100-80gb");
    profile.clear_nvls();  // the twin knows the ring only
    MeasuredTransfer& row = *profile.add_measured_transfers();
    row.set_kind(send ? MeasuredTransfer::SEND : MeasuredKind(kind));
    row.set_between_nodes(group.ranks_per_node < group.ranks);
    row.set_ranks(group.ranks);
    row.set_ranks_per_node(group.ranks_per_node);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      MeasuredTransfer::Point& point = *row.add_points();
      point.set_bytes(bytes[i]);
      point.mutable_time()->set_median_us(times_us[i]);
      point.mutable_time()->set_repetitions(5);
    }
    return profile;
  }
  TransferCost Cost(const CostModel& model, std::int64_t size) const {
    if (send) return model.SendCost(Bytes(size), group.ranks_per_node == 2);
    return model.CollectiveCost({kind, "x", Bytes(size)}, group);
  }
};

RandomRow MakeRow(std::mt19937& random) {
  RandomRow row;
  row.kind = kAllKinds[random() % 5];
  row.send = random() % 4 == 0;
  const GroupShape groups[] = {{2, 2}, {8, 8}, {2, 1}, {16, 8}};
  row.group = groups[row.send ? 2 * (random() % 2) : random() % 4];
  std::int64_t size = static_cast<std::int64_t>(random() % 3000);
  for (std::size_t points = 1 + random() % 8; points > 0; --points) {
    row.bytes.push_back(size);
    const double noise = std::uniform_real_distribution<double>(0.7, 1.4)(random);
    row.times_us.push_back((5 + static_cast<double>(size) / 1e4) * noise);
    size += 1 + static_cast<std::int64_t>(random() % (1 + 3 * size));
  }
  return row;
}

// Looks at every pair of neighbours; beyond them, adds what the plain profile asks for more bytes.
double TwinUs(const RandomRow& row, std::int64_t size) {
  const std::size_t n = row.bytes.size();
  const auto time = [&](std::size_t i) { return MinMax(row.times_us, i); };
  if (size <= row.bytes[0]) return time(0);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (size < row.bytes[i] || size > row.bytes[i + 1]) continue;
    const auto width = static_cast<double>(row.bytes[i + 1] - row.bytes[i]);
    return (time(i) * static_cast<double>(row.bytes[i + 1] - size) +
            time(i + 1) * static_cast<double>(size - row.bytes[i])) /
           width;
  }
  HardwareProfile profile = row.Profile();
  profile.clear_measured_transfers();
  const ProfileCostModel plain(profile);
  // From a size above 0: a message of none costs nothing, not even the latency.
  const auto plain_us = [&](std::int64_t s) {
    return ToSeconds(UncontendedTime(plain, row.Cost(plain, s))) * 1e6;
  };
  const std::int64_t from = std::max<std::int64_t>(row.bytes[n - 1], 1);
  return time(n - 1) + plain_us(size) - plain_us(from);
}

TEST(MeasuredTransfers, AreInterpolatedAsTheSlowTwinDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const RandomRow row = MakeRow(random);
    const HardwareProfile profile = row.Profile();
    ASSERT_TRUE(ValidateProfile(profile).ok()) << ValidateProfile(profile);
    const ProfileCostModel model(profile);
    std::vector<std::int64_t> sizes = row.bytes;
    for (int i = 0; i < 30; ++i) {
      sizes.push_back(static_cast<std::int64_t>(random() % (2 * row.bytes.back() + 100)));
    }
    for (const std::int64_t size : sizes) {
      if (row.send && size == 0) continue;
      const Picoseconds time = UncontendedTime(model, row.Cost(model, size));
      // A byte on the wire is rounded where the row goes on: 20 ps at 50 GB/s.
      EXPECT_NEAR(ToSeconds(time) * 1e6, TwinUs(row, size), 1e-4) << size;
    }
  }
}

TEST(MeasuredTransfers, NeverFallWithTheBytesAndAddUpExactly) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const RandomRow row = MakeRow(random);
    const HardwareProfile profile = row.Profile();
    const ProfileCostModel model(profile);
    std::vector<std::int64_t> sizes(200);
    for (std::int64_t& size : sizes) {
      size = 1 + static_cast<std::int64_t>(random() % (3 * row.bytes.back() + 100));
    }
    std::sort(sizes.begin(), sizes.end());
    Picoseconds previous;
    for (const std::int64_t size : sizes) {
      const TransferCost cost = row.Cost(model, size);
      EXPECT_EQ(cost.scope,
                row.group.ranks_per_node < row.group.ranks ? LinkScope::kNic : LinkScope::kNvlink);
      EXPECT_GE(cost.latency, Picoseconds(0));
      EXPECT_GE(cost.wire_bytes, Bytes(0));
      const Picoseconds time = UncontendedTime(model, cost);
      EXPECT_GE(time, previous) << size;
      previous = time;
    }
  }
}

constexpr char kTransfers[] = R"(
  measured_transfers {
    kind: ALL_REDUCE ranks: 4 ranks_per_node: 4
    points { bytes: 1000 time { median_us: 5 repetitions: 3 } }
    points { bytes: 2000 time { median_us: 105 repetitions: 3 } }
  }
  measured_transfers {
    kind: SEND between_nodes: true ranks: 2 ranks_per_node: 1
    points { bytes: 1000 time { median_us: 500 repetitions: 3 } }
  })";

TEST(MeasuredTransfers, TheRowsLatencyIsNotOnTheWire) {
  const HardwareProfile profile = With(kTransfers);
  const ProfileCostModel model(profile);
  const double row_us = profile.nvlink().all_reduce().latency_us().value();
  const auto cost = [&](std::int64_t bytes) {
    return model.CollectiveCost({CollectiveKind::kAllReduce, "", Bytes(bytes)}, {4, 4});
  };
  ASSERT_GT(row_us, 5);  // so the first point is all latency
  EXPECT_EQ(cost(10).latency, Picoseconds(5'000'000));
  EXPECT_EQ(cost(10).wire_bytes, Bytes(0));
  // A byte at 450 GB/s is 2.2 ps.
  EXPECT_NEAR(ToSeconds(cost(2000).latency), row_us * 1e-6, 3e-12);
  EXPECT_NEAR(static_cast<double>(cost(2000).wire_bytes.value()), (105 - row_us) * 450e3, 1.5);
  EXPECT_EQ(UncontendedTime(model, cost(2000)), Picoseconds(105'000'000));
  EXPECT_EQ(UncontendedTime(model, cost(1500)), Picoseconds(55'000'000));
}

TEST(MeasuredTransfers, AreFoundByKindPlaceAndGroup) {
  const ProfileCostModel model(With(kTransfers)), plain(*LoadProfile("h100-80gb"));
  const auto same = [&](CollectiveKind kind, GroupShape group) {
    const CollectiveWork work{kind, "any", Bytes(1 << 20)};
    return UncontendedTime(model, model.CollectiveCost(work, group)) ==
           UncontendedTime(plain, plain.CollectiveCost(work, group));
  };
  for (const CollectiveKind kind : kAllKinds) {
    const bool measured = kind == CollectiveKind::kAllReduce;
    EXPECT_EQ(same(kind, {4, 4}), !measured);
    EXPECT_EQ(same(kind, {4, 8}), !measured) << "4 ranks in a node of 8 are 4 in their node";
    for (const GroupShape other : {GroupShape{2, 2}, {8, 8}, {4, 2}, {4, 1}, {1, 1}, {8, 4}}) {
      EXPECT_TRUE(same(kind, other)) << other.ranks << " " << other.ranks_per_node;
    }
  }
  EXPECT_EQ(UncontendedTime(model, model.SendCost(Bytes(10), false)), Picoseconds(500'000'000));
  EXPECT_EQ(UncontendedTime(model, model.SendCost(Bytes(10), true)),
            UncontendedTime(plain, plain.SendCost(Bytes(10), true)));
  EXPECT_EQ(model.SendCost(Bytes(0), false).latency, Picoseconds(0));
}

TEST(MeasuredTables, WrittenAndReadTheyPriceTheSame) {
  const HardwareProfile profile = With(std::string(kKernels) + kTransfers);
  HardwareProfile again;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ToTextProto(profile), &again));
  EXPECT_EQ(profile.SerializeAsString(), again.SerializeAsString());
}

struct Broken {
  const char* message;  // how the error starts
  std::function<void(HardwareProfile&)> edit;
};

void ExpectRefused(const Broken& broken) {
  HardwareProfile profile = With(std::string(kKernels) + kTransfers);
  ASSERT_TRUE(ValidateProfile(profile).ok()) << ValidateProfile(profile);
  broken.edit(profile);
  const absl::Status status = ValidateProfile(profile);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken.message;
  EXPECT_THAT(std::string(status.message()), StartsWith(broken.message));
}

TEST(ValidateMeasuredTables, NamesTheBrokenKernel) {
  using Profile = HardwareProfile;
  const auto time = [](Profile& p, int i) { return p.mutable_measured_kernels(i)->mutable_time(); };
  const Broken cases[] = {
      {"measured_kernels[0].kind: is missing",
       [](Profile& p) { p.mutable_measured_kernels(0)->clear_kind(); }},
      {"measured_kernels[0].kind: is 9; one of GEMM",
       [](Profile& p) {
         p.mutable_measured_kernels(0)->set_kind(static_cast<MeasuredKernel::Kind>(9));
       }},
      {"measured_kernels[0].gemm: is missing",
       [](Profile& p) { p.mutable_measured_kernels(0)->clear_gemm(); }},
      {"measured_kernels[1].attention: is missing",
       [](Profile& p) { p.mutable_measured_kernels(1)->clear_attention(); }},
      {"measured_kernels[2].gemm: is of another kind",
       [](Profile& p) { p.mutable_measured_kernels(2)->mutable_gemm(); }},
      {"measured_kernels[0].gemm: has an extent of 0",
       [](Profile& p) { p.mutable_measured_kernels(0)->mutable_gemm()->clear_k(); }},
      {"measured_kernels[0].flops: is nan",
       [](Profile& p) { p.mutable_measured_kernels(0)->set_flops(std::nan("")); }},
      {"measured_kernels[2].bytes: is -1",
       [](Profile& p) { p.mutable_measured_kernels(2)->set_bytes(-1); }},
      {"measured_kernels[1].time: is missing",
       [](Profile& p) { p.mutable_measured_kernels(1)->clear_time(); }},
      {"measured_kernels[1].time.median_us: is 0",
       [&](Profile& p) { time(p, 1)->set_median_us(0); }},
      {"measured_kernels[1].time.median_us: is inf",
       [&](Profile& p) { time(p, 1)->set_median_us(INFINITY); }},
      {"measured_kernels[1].time.spread_us: is -2",
       [&](Profile& p) { time(p, 1)->set_spread_us(-2); }},
      {"measured_kernels[2].time.repetitions: is 0",
       [&](Profile& p) { time(p, 2)->set_repetitions(0); }},
      {"measured_kernels[3]: is the same as number 1",
       [](Profile& p) {
         const MeasuredKernel copy = p.measured_kernels(1);
         *p.add_measured_kernels() = copy;
         p.mutable_measured_kernels(3)->mutable_time()->set_median_us(1);
       }},
  };
  for (const Broken& broken : cases) ExpectRefused(broken);
}

TEST(ValidateMeasuredTables, NamesTheBrokenTransfer) {
  using Profile = HardwareProfile;
  const auto row = [](Profile& p, int i) { return p.mutable_measured_transfers(i); };
  const Broken cases[] = {
      {"measured_transfers[0].kind: is missing", [&](Profile& p) { row(p, 0)->clear_kind(); }},
      {"measured_transfers[0].kind: is 7; one of ALL_GATHER",
       [&](Profile& p) { row(p, 0)->set_kind(static_cast<MeasuredTransfer::Kind>(7)); }},
      {"measured_transfers[0].ranks: is 1; must be 2 or more",
       [&](Profile& p) { row(p, 0)->set_ranks(1); }},
      {"measured_transfers[1].ranks: is 4; must be 2",
       [&](Profile& p) { row(p, 1)->set_ranks(4); }},
      {"measured_transfers[0].ranks_per_node: is 2; must be ranks (4) inside nodes",
       [&](Profile& p) { row(p, 0)->set_ranks_per_node(2); }},
      {"measured_transfers[1].ranks_per_node: is 2; must be from 1 to less than ranks (2) between",
       [&](Profile& p) { row(p, 1)->set_ranks_per_node(2); }},
      {"measured_transfers[0].points: is empty", [&](Profile& p) { row(p, 0)->clear_points(); }},
      {"measured_transfers[0].points[1].bytes: is 1000; sizes ascend",
       [&](Profile& p) { row(p, 0)->mutable_points(1)->set_bytes(1000); }},
      {"measured_transfers[0].points[0].bytes: is -5",
       [&](Profile& p) { row(p, 0)->mutable_points(0)->set_bytes(-5); }},
      {"measured_transfers[0].points[1].time: is missing",
       [&](Profile& p) { row(p, 0)->mutable_points(1)->clear_time(); }},
      {"measured_transfers[0].points[0].time.median_us: is -1",
       [&](Profile& p) { row(p, 0)->mutable_points(0)->mutable_time()->set_median_us(-1); }},
      {"measured_transfers[2]: is the same as number 0",
       [&](Profile& p) {
         const MeasuredTransfer copy = p.measured_transfers(0);
         *p.add_measured_transfers() = copy;
       }},
  };
  for (const Broken& broken : cases) ExpectRefused(broken);
}

}  // namespace
}  // namespace optimus::hw
