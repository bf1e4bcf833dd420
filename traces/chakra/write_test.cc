// What ASTRA-sim's feeder finds in the files that we write, read by the published field numbers.

#include "traces/chakra/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "traces/chakra/testing_wire.h"
#include "traces/chakra/testing_written.h"

namespace optimus::traces::chakra {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

// Node types of the published schema.
constexpr std::uint64_t kMemLoad = 2, kMemStore = 3, kComp = 4, kSend = 5, kReceive = 6, kColl = 7;

std::vector<WireNode> NodesOf(const Recording& recording, const std::string& file = "run.0.et") {
  return ReadWireFile(Written(recording)[file]).nodes;
}

// A recording of ranks 0 to `ranks` - 1, each with a thread, two streams and a lane without order.
Recording MakeRecording(std::int32_t ranks = 1) {
  Recording recording;
  recording.world = 8;
  recording.names = {"op", "memcpy DtoH"};
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    RecordedRank& recorded = recording.ranks.emplace_back();
    recorded.rank = rank;
    recorded.lanes = {{.name = "thread 9", .kind = LaneKind::kHostThread, .id = 9},
                      {.name = "stream 7", .id = 7},
                      {.name = "stream 20", .id = 20},
                      {.name = "any", .in_order = false, .id = 3}};
  }
  return recording;
}

constexpr std::int32_t kThread = 0, kStream7 = 1, kStream20 = 2, kAny = 3;

RecordedOp& AddOp(RecordedRank& rank, std::int32_t lane, OpKind kind, std::int64_t start = 0,
                  std::int64_t duration = 1'000'000, const std::vector<Dependency>& after = {}) {
  RecordedOp& op = rank.ops.emplace_back();
  op.start = Picoseconds(start);
  op.end = Picoseconds(start + duration);
  op.lane = lane;
  op.kind = kind;
  op.first_dependency = static_cast<std::uint32_t>(rank.dependencies.size());
  op.dependency_count = static_cast<std::uint32_t>(after.size());
  rank.dependencies.insert(rank.dependencies.end(), after.begin(), after.end());
  return op;
}

void AddCommunication(RecordedRank& rank, const Communication& communication,
                      std::int64_t start = 0) {
  RecordedOp& op = AddOp(rank, kStream20, OpKind::kCommunication, start);
  op.communication = static_cast<std::int32_t>(rank.communications.size());
  rank.communications.push_back(communication);
}

CommunicatorGroup MakeGroup(std::vector<std::int32_t> ranks) {
  CommunicatorGroup group;
  group.name = "tensor";
  group.size = static_cast<std::int32_t>(ranks.size());
  group.ranks = std::move(ranks);
  return group;
}

TEST(WriteChakra, VersionAndFiles) {
  const auto files = Written(MakeRecording(2));
  EXPECT_THAT(files, SizeIs(3));
  EXPECT_EQ(ReadWireFile(files.at("run.1.et")).version, "0.0.4");
  EXPECT_EQ(files.at("run.groups.json"), "{}\n");
  EXPECT_FALSE(WriteChakra(Recording(), "run", nullptr).ok());
}

// GPU kernels without stream successors: a reader that knows nothing of lanes sees the order.
TEST(WriteChakra, DataDependenciesAreAllTheOrder) {
  Recording recording = MakeRecording();
  RecordedRank& rank = recording.ranks.front();
  AddOp(rank, kThread, OpKind::kHost);                                            // 0
  AddOp(rank, kStream7, OpKind::kCompute, 0, 1, {{0, DependencyKind::kLaunch}});  // 1
  AddOp(rank, kStream20, OpKind::kCompute, 0, 1, {{1, DependencyKind::kEvent}});  // 2
  AddOp(rank, kStream7, OpKind::kCompute);                                        // 3
  AddOp(rank, kThread, OpKind::kHost, 0, 1, {{3, DependencyKind::kEndAfter}});    // 4: waits
  AddOp(rank, kThread, OpKind::kHost);                                            // 5
  AddOp(rank, kAny, OpKind::kCompute);                                            // 6
  AddOp(rank, kAny, OpKind::kCompute, 0, 1, {{7, DependencyKind::kAfter}});       // 7: itself
  const auto nodes = NodesOf(recording);
  EXPECT_THAT(nodes[0].data_deps, IsEmpty());
  EXPECT_THAT(nodes[1].data_deps, ElementsAre(0));
  EXPECT_THAT(nodes[2].data_deps, ElementsAre(1));
  EXPECT_THAT(nodes[3].data_deps, ElementsAre(1));
  EXPECT_THAT(nodes[4].data_deps, ElementsAre(0));
  EXPECT_THAT(nodes[5].data_deps, ElementsAre(3, 4));
  EXPECT_THAT(nodes[6].data_deps, IsEmpty());
  EXPECT_THAT(nodes[7].data_deps, IsEmpty());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].id, i);
    EXPECT_THAT(nodes[i].ctrl_deps, IsEmpty());
  }
}

TEST(WriteChakra, HostCallsAloneAreCpuOperations) {
  Recording recording = MakeRecording();
  RecordedRank& rank = recording.ranks.front();
  AddOp(rank, kThread, OpKind::kHost);
  AddOp(rank, kStream7, OpKind::kCompute).work = 0;
  AddOp(rank, kAny, OpKind::kCompute);
  rank.works = {{.flops = 1e9, .bytes = Bytes(4096)}};
  const auto nodes = NodesOf(recording);
  EXPECT_EQ(nodes[0].type, kComp);
  EXPECT_EQ(nodes[0].attributes.at("is_cpu_op"), BoolValue(true));
  EXPECT_EQ(nodes[0].attributes.at("tid"), Int64Value(9));
  EXPECT_EQ(nodes[1].attributes.at("is_cpu_op"), BoolValue(false));
  EXPECT_EQ(nodes[1].attributes.at("stream"), Int64Value(7));
  EXPECT_EQ(nodes[1].attributes.at("num_ops"), Int64Value(1'000'000'000));
  EXPECT_EQ(nodes[1].attributes.at("tensor_size"), Uint64Value(4096));
  EXPECT_THAT(nodes[2].attributes, Not(Contains(Key("stream"))));  // no order there
  EXPECT_THAT(nodes[2].attributes, Not(Contains(Key("num_ops"))));
}

TEST(WriteChakra, Copies) {
  Recording recording = MakeRecording();
  RecordedRank& rank = recording.ranks.front();
  rank.works = {{.bytes = Bytes(64)}};
  AddOp(rank, kStream7, OpKind::kCopy).work = 0;
  AddOp(rank, kStream7, OpKind::kCopy).work = 0;
  rank.ops.back().name = 1;
  AddOp(rank, kStream7, OpKind::kCopy);  // bytes not known
  const auto nodes = NodesOf(recording);
  EXPECT_EQ(nodes[0].type, kMemLoad);
  EXPECT_EQ(nodes[1].type, kMemStore);
  EXPECT_EQ(nodes[1].attributes.at("tensor_size"), Uint64Value(64));
  EXPECT_EQ(nodes[2].type, kComp);
}

// Sub-microsecond kernels take time, and the exact one stands beside.
TEST(WriteChakra, DurationsAreNeverRoundedToZero) {
  Recording recording = MakeRecording();
  RecordedRank& rank = recording.ranks.front();
  AddOp(rank, kStream7, OpKind::kCompute, 2'499'999, 1);
  AddOp(rank, kStream7, OpKind::kCompute, 2'500'000, 1'500'000);
  AddOp(rank, kStream7, OpKind::kCompute, 4'000'000, 0);
  RecordedOp& untimed = AddOp(rank, kAny, OpKind::kCompute);
  untimed.start = untimed.end = kUntimed;
  const auto nodes = NodesOf(recording);
  EXPECT_EQ(nodes[0].start, 2U);
  EXPECT_EQ(nodes[0].duration, 1U);
  EXPECT_EQ(nodes[0].attributes.at("start_ps"), Int64Value(2'499'999));
  EXPECT_EQ(nodes[0].attributes.at("duration_ps"), Int64Value(1));
  EXPECT_EQ(nodes[1].start, 3U);
  EXPECT_EQ(nodes[1].duration, 2U);
  EXPECT_EQ(nodes[2].duration, 0U);
  EXPECT_THAT(nodes[3].attributes, Not(Contains(Key("start_ps"))));
}

TEST(WriteChakra, Collectives) {
  Recording recording = MakeRecording();
  recording.groups = {MakeGroup({0, 1, 2, 3}), MakeGroup({0, 1, 2, 3, 4, 5, 6, 7}), MakeGroup({})};
  RecordedRank& rank = recording.ranks.front();
  const auto add = [&](CommunicationKind kind, std::int32_t group, std::int64_t bytes) {
    AddCommunication(rank, {.kind = kind, .group = group, .bytes = Bytes(bytes)});
  };
  add(CommunicationKind::kAllGather, 0, 4096);
  add(CommunicationKind::kReduceScatter, 1, 4096);
  add(CommunicationKind::kAllToAll, 2, 64);
  add(CommunicationKind::kAllReduce, 0, -1);
  add(CommunicationKind::kAllGather, 2, 64);
  const auto nodes = NodesOf(recording);
  for (const WireNode& node : nodes) {
    EXPECT_EQ(node.type, kColl);
    EXPECT_EQ(node.attributes.at("is_cpu_op"), BoolValue(false));
  }
  EXPECT_EQ(nodes[0].attributes.at("comm_type"), Int64Value(2));
  EXPECT_EQ(nodes[0].attributes.at("comm_size"), Int64Value(1024));  // of one rank
  EXPECT_EQ(nodes[0].attributes.at("pg_name"), StringValue("1"));
  EXPECT_EQ(nodes[1].attributes.at("comm_type"), Int64Value(7));
  EXPECT_EQ(nodes[1].attributes.at("comm_size"), Int64Value(4096));
  EXPECT_EQ(nodes[1].attributes.at("pg_name"), StringValue("0"));
  EXPECT_EQ(nodes[2].attributes.at("comm_type"), Int64Value(6));
  EXPECT_EQ(nodes[2].attributes.at("pg_name"), StringValue("3"));
  EXPECT_EQ(nodes[3].attributes.at("comm_type"), Int64Value(0));
  EXPECT_THAT(nodes[3].attributes, Not(Contains(Key("comm_size"))));
  EXPECT_THAT(nodes[4].attributes, Not(Contains(Key("comm_size"))));  // of how many ranks?
  EXPECT_EQ(Written(recording)["run.groups.json"], "{\n  \"1\": [0, 1, 2, 3]\n}\n");
}

// A reader's default of comm_type is the all-reduce, of pg_name all ranks.
TEST(WriteChakra, WhatIsNotKnownIsNoAllReduce) {
  Recording recording = MakeRecording();
  recording.groups = {MakeGroup({0, 1})};
  RecordedRank& rank = recording.ranks.front();
  AddCommunication(rank, {.kind = CommunicationKind::kUnknown, .group = 0});
  AddCommunication(rank, {.kind = CommunicationKind::kAllReduce, .group = -1});
  AddCommunication(rank, {.kind = CommunicationKind::kSendReceive, .peer = 1});
  AddCommunication(rank, {.kind = CommunicationKind::kSend, .peer = -1});
  for (const WireNode& node : NodesOf(recording)) {
    EXPECT_EQ(node.type, kComp);
    EXPECT_EQ(node.duration, 1U);
    EXPECT_EQ(node.attributes.at("is_cpu_op"), BoolValue(false));
    EXPECT_THAT(node.attributes, Not(Contains(Key("comm_type"))));
  }
}

TEST(WriteChakra, MessagesHaveOneTagOnBothSides) {
  Recording recording = MakeRecording(2);
  const auto message = [&](int rank, CommunicationKind kind, std::int64_t tag, std::int64_t start) {
    AddCommunication(recording.ranks[static_cast<std::size_t>(rank)],
                     {.kind = kind, .peer = 1 - rank, .tag = tag, .bytes = Bytes(5)}, start);
  };
  // By tag, whatever the order, and beyond 32 bits; without a tag by start.
  message(0, CommunicationKind::kSend, 1LL << 40, 1);
  message(0, CommunicationKind::kSend, 7, 2);
  message(0, CommunicationKind::kSend, 7, 3);
  message(0, CommunicationKind::kSend, -1, 9);
  message(0, CommunicationKind::kSend, -1, 5);
  message(0, CommunicationKind::kReceive, 7, 6);
  message(1, CommunicationKind::kReceive, -1, 1);
  message(1, CommunicationKind::kReceive, 7, 2);
  message(1, CommunicationKind::kReceive, 7, 3);
  message(1, CommunicationKind::kReceive, 1LL << 40, 4);
  message(1, CommunicationKind::kReceive, -1, 5);
  const auto sends = NodesOf(recording);
  const auto receives = NodesOf(recording, "run.1.et");
  const auto tag = [](const WireNode& node) { return node.attributes.at("comm_tag").number; };
  EXPECT_EQ(sends[0].type, kSend);
  EXPECT_EQ(sends[5].type, kReceive);
  EXPECT_EQ(sends[0].attributes.at("comm_src"), Int32Value(0));
  EXPECT_EQ(sends[0].attributes.at("comm_dst"), Int32Value(1));
  EXPECT_EQ(receives[0].attributes.at("comm_src"), Int32Value(0));
  EXPECT_EQ(receives[0].attributes.at("comm_size"), Int64Value(5));
  EXPECT_EQ(sends[0].attributes.at("comm_tag").field, kInt32Field);
  EXPECT_EQ(tag(sends[4]), tag(receives[0]));
  EXPECT_EQ(tag(sends[3]), tag(receives[4]));
  EXPECT_EQ(tag(sends[1]), tag(receives[1]));
  EXPECT_EQ(tag(sends[2]), tag(receives[2]));
  EXPECT_EQ(tag(sends[0]), tag(receives[3]));
  EXPECT_THAT((std::vector<std::uint64_t>{tag(sends[4]), tag(sends[3]), tag(sends[1]),
                                          tag(sends[2]), tag(sends[0])}),
              ElementsAre(0, 1, 2, 3, 4));
}

TEST(WriteChakra, LanesOfOneNumberGetAnother) {
  Recording recording = MakeRecording();
  RecordedRank& rank = recording.ranks.front();
  rank.lanes[kStream20].id = 7;
  AddOp(rank, kStream7, OpKind::kCompute);
  AddOp(rank, kStream20, OpKind::kCompute);
  const auto nodes = NodesOf(recording);
  EXPECT_NE(nodes[0].attributes.at("stream"), nodes[1].attributes.at("stream"));
}

TEST(WriteChakra, SinkEndsIt) {
  int calls = 0;
  const absl::Status status =
      WriteChakra(MakeRecording(3), "run", [&](const std::string&, absl::string_view) {
        return ++calls == 2 ? absl::UnavailableError("full") : absl::OkStatus();
      });
  EXPECT_EQ(status, absl::UnavailableError("full"));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace optimus::traces::chakra
