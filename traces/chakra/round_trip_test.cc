// Random Recordings, written and read: the same but for `format` and `source`.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "traces/chakra/chakra.h"
#include "traces/chakra/testing_file.h"
#include "traces/chakra/testing_written.h"

namespace optimus::traces::chakra {
namespace {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Recording Make() {
    recording_.world = Number(0, 3) == 0 ? 0 : 16;
    recording_.messages = Coin() ? MessageRule::kEager : MessageRule::kRendezvous;
    recording_.waits_inside = Coin();
    recording_.one_clock = Coin();
    recording_.folded = Coin();
    MakeNames();
    MakeGroups();
    std::int32_t rank = 0;
    for (std::int64_t i = Number(1, 4); i > 0; --i) {
      rank += static_cast<std::int32_t>(Number(1, 3));
      MakeRank(rank);
    }
    MakeRemarks();
    return std::move(recording_);
  }

 private:
  std::int64_t Number(std::int64_t least, std::int64_t largest) {
    return std::uniform_int_distribution<std::int64_t>(least, largest)(random_);
  }
  bool Coin() { return Number(0, 1) == 1; }
  template <class Container>
  std::int32_t Index(const Container& container) {
    return static_cast<std::int32_t>(Number(0, static_cast<std::int64_t>(container.size()) - 1));
  }

  void MakeNames() {
    recording_.names = {"gemm", "", "caf\xc3\xa9", "no utf-8 \xff\xfe", std::string("a\0b", 3)};
    for (std::int64_t i = Number(0, 5); i > 0; --i) recording_.names.push_back(absl::StrCat(i));
    std::shuffle(recording_.names.begin(), recording_.names.end(), random_);
  }

  void MakeGroups() {
    for (std::int64_t i = Number(0, 5); i > 0; --i) {
      CommunicatorGroup group;
      group.name = absl::StrCat("g", i);
      group.description = Coin() ? "mesh_tp" : "";
      group.role = Coin() ? "tp" : "";
      for (std::int32_t rank = 0; rank < 16; ++rank) {
        if (Coin()) group.ranks.push_back(rank);
      }
      if (Coin()) group.ranks.clear();
      group.size = group.ranks.empty() ? static_cast<std::int32_t>(Number(0, 16))
                                       : static_cast<std::int32_t>(group.ranks.size());
      // Tables fill in a role that the words say.
      if (group.role.empty()) group.role = RoleOf(group.name, group.description);
      recording_.groups.push_back(std::move(group));
    }
  }

  Communication MakeCommunication() {
    Communication communication;
    communication.kind = static_cast<CommunicationKind>(Number(0, kCommunicationKindCount - 1));
    if (Coin() && !recording_.groups.empty()) communication.group = Index(recording_.groups);
    if (Coin()) communication.peer = static_cast<std::int32_t>(Number(0, 20));
    if (Coin()) communication.sequence = Number(0, 100);
    if (Coin()) communication.tag = Number(0, std::int64_t{1} << 40);
    if (Coin()) communication.bytes = Bytes(Number(0, std::int64_t{1} << 40));
    return communication;
  }

  void MakeOp(RecordedRank& rank, std::size_t count) {
    RecordedOp& op = rank.ops.emplace_back();
    op.lane = Index(rank.lanes);
    op.name = Index(recording_.names);
    op.kind = static_cast<OpKind>(Number(0, 3));
    if (Coin()) {
      op.start = Picoseconds(Number(0, std::int64_t{1} << 50));
      op.end = op.start + Picoseconds(Number(0, 3) == 0 ? 0 : Number(0, 5'000'000));
    }
    if (op.kind == OpKind::kCommunication) {
      op.communication = static_cast<std::int32_t>(rank.communications.size());
      rank.communications.push_back(MakeCommunication());
    } else if (Coin()) {
      op.work = static_cast<std::int32_t>(rank.works.size());
      rank.works.push_back(
          {.flops = static_cast<double>(Number(0, 1000)) / 7, .bytes = Bytes(Number(0, 1000))});
    }
    op.first_dependency = static_cast<std::uint32_t>(rank.dependencies.size());
    for (std::int64_t i = Number(0, 3); i > 0; --i) {
      rank.dependencies.push_back(
          {.op = static_cast<std::uint32_t>(Number(0, static_cast<std::int64_t>(count) - 1)),
           .kind = static_cast<DependencyKind>(Number(0, 3))});
      ++op.dependency_count;
    }
  }

  void MakeLanes(RecordedRank& rank) {
    for (std::int64_t i = Number(1, 5); i > 0; --i) {
      rank.lanes.push_back({.name = absl::StrCat("lane \xf0", i),
                            .kind = Coin() ? LaneKind::kHostThread : LaneKind::kStream,
                            .in_order = Coin(),
                            .id = Coin() ? Number(-3, 3) : Number(0, std::int64_t{1} << 60)});
    }
  }

  void MakeRank(std::int32_t number) {
    RecordedRank rank;
    rank.rank = number;
    rank.stands_for = static_cast<std::int32_t>(Number(1, 9));
    rank.clock_origin_ns = Number(-5, std::int64_t{1} << 60);
    rank.step_start = Picoseconds(Number(0, 100));
    rank.step_end = Picoseconds(Number(100, std::int64_t{1} << 50));
    MakeLanes(rank);
    const std::int64_t count = Number(0, 30);
    for (std::int64_t i = 0; i < count; ++i) MakeOp(rank, static_cast<std::size_t>(count));
    if (Coin()) std::shuffle(rank.ops.begin(), rank.ops.end(), random_);  // tables as they were
    for (std::int64_t i = Number(0, 2); i > 0; --i) {
      recording_.steps.push_back({.number = Number(0, 9),
                                  .rank = number,
                                  .start = Picoseconds(Number(0, 9)),
                                  .end = Picoseconds(Number(0, 9))});
    }
    recording_.ranks.push_back(std::move(rank));
  }

  void MakeRemarks() {
    if (Coin())
      recording_.remarks.push_back({"all of them", "so be it", -1, "", Picoseconds(0), 3});
    for (const RecordedRank& rank : recording_.ranks) {
      if (Coin()) continue;
      recording_.remarks.push_back(
          {"this", "that \xff", rank.rank, "op", Picoseconds(Number(0, 9)), Number(1, 9)});
    }
  }

  std::mt19937 random_;
  Recording recording_;
};

absl::StatusOr<Recording> ReadBack(const Recording& written) {
  const auto files = Written(written);
  std::vector<Recording> parts;
  for (const RecordedRank& rank : written.ranks) {
    const std::string file = absl::StrCat("run.", rank.rank, ".et");
    auto part = ReadChakraBytes(files.at(file), file, files.at("run.groups.json"));
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return Join(std::move(parts));
}

// What is not kept, as it was.
void TakeOverSources(const Recording& from, Recording& to) {
  to.format = from.format;
  for (std::size_t i = 0; i < std::min(from.ranks.size(), to.ranks.size()); ++i) {
    to.ranks[i].source = from.ranks[i].source;
  }
}

TEST(ChakraRoundTrip, RandomRecordings) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    const Recording written = Generator(seed).Make();
    ASSERT_TRUE(CheckRecording(written).ok()) << seed << ": " << CheckRecording(written);
    auto read = ReadBack(written);
    ASSERT_TRUE(read.ok()) << seed << ": " << read.status();
    TakeOverSources(written, *read);
    ASSERT_EQ(read->names, written.names) << seed;
    ASSERT_EQ(read->groups, written.groups) << seed;
    ASSERT_EQ(read->remarks, written.remarks) << seed;
    for (std::size_t i = 0; i < written.ranks.size(); ++i) {
      ASSERT_EQ(read->ranks[i].ops, written.ranks[i].ops) << seed;
      ASSERT_EQ(read->ranks[i].dependencies, written.ranks[i].dependencies) << seed;
      ASSERT_EQ(read->ranks[i].communications, written.ranks[i].communications) << seed;
    }
    ASSERT_EQ(*read, written) << seed;
    ASSERT_EQ(Written(*read), Written(written)) << seed;
  }
}

// Damaged files of ours are refused or read, never half read.
TEST(ChakraRoundTrip, DamagedBytes) {
  const auto files = Written(Generator(7).Make());
  for (const auto& [name, bytes] : files) {
    if (name == "run.groups.json") continue;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      const auto read = ReadChakraBytes(damaged, name);
      if (read.ok()) {
        EXPECT_TRUE(CheckRecording(*read).ok());
      }
    }
  }
}

TEST(ChakraRoundTrip, AnotherRankThanAskedForIsRefused) {
  Recording recording;
  recording.ranks.emplace_back().rank = 5;
  const std::string bytes = Written(recording).at("run.5.et");
  EXPECT_FALSE(ReadChakraBytes(bytes, "x", "", {.rank = 4}).ok());
  const auto read = ReadChakraBytes(bytes, "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ranks.front().rank, 5);
}

TEST(ChakraRoundTrip, LaterFormatIsRefused) {
  ::optimus::chakra::GlobalMetadata metadata;
  AddInt32(*metadata.mutable_attr(), "optimus_format", 2);
  std::string bytes = metadata.SerializeAsString();
  bytes.insert(bytes.begin(), static_cast<char>(bytes.size()));
  const auto read = ReadChakraBytes(bytes, "run.0.et");
  EXPECT_NE(read.status().message().find("later version"), absl::string_view::npos)
      << read.status();
}

}  // namespace
}  // namespace optimus::traces::chakra
