// What becomes of the nodes of a file: traps of traces in the field, each with its right value.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "traces/chakra/chakra.h"
#include "traces/chakra/testing_file.h"

namespace optimus::traces::chakra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace schema = ::optimus::chakra;

Recording MustRead(const TestingFile& file, const ChakraOptions& options = {},
                   const std::string& groups = "") {
  auto recording = ReadChakraBytes(file.bytes(), "run.3.et", groups, options);
  EXPECT_TRUE(recording.ok()) << recording.status();
  return recording.ok() ? *std::move(recording) : Recording();
}

std::string ErrorOf(const std::string& bytes, const std::string& groups = "") {
  return std::string(ReadChakraBytes(bytes, "run.3.et", groups).status().message());
}

std::vector<std::string> Whats(const Recording& recording) {
  std::vector<std::string> whats;
  for (const Remark& remark : recording.remarks) whats.push_back(remark.what);
  return whats;
}

// Names of what an operation comes after.
std::vector<std::string> ParentsOf(const Recording& recording, std::size_t op) {
  std::vector<std::string> names;
  const RecordedRank& rank = recording.ranks.front();
  for (const Dependency& dependency : rank.DependenciesOf(rank.ops[op])) {
    names.push_back(recording.names[static_cast<std::size_t>(rank.ops[dependency.op].name)]);
  }
  return names;
}

const Communication& OnlyCommunication(const Recording& recording) {
  return recording.ranks.front().communications.front();
}

TEST(ReadChakra, RankOfTheName) {
  EXPECT_EQ(RankOfChakraFile("a/run.12.et"), 12);
  EXPECT_EQ(RankOfChakraFile("run.0.et.gz"), 0);
  EXPECT_EQ(RankOfChakraFile("run.et"), -1);
  EXPECT_EQ(RankOfChakraFile("run.x.et"), -1);
  EXPECT_EQ(RankOfChakraFile("run.99999999999.et"), -1);
  EXPECT_EQ(MustRead(TestingFile()).ranks.front().rank, 3);
  const auto none = ReadChakraBytes(TestingFile().bytes(), "run.et");
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no rank in the name"));
}

TEST(ReadChakra, KernelsHostCallsAndCopies) {
  schema::Node host = MakeKernel(0, 10, 5);
  AddBool(*host.mutable_attr(), "is_cpu_op", true);
  AddInt64(*host.mutable_attr(), "tid", 77);
  schema::Node kernel = MakeKernel(1, 20, 5);
  AddInt32(*kernel.mutable_attr(), "stream", 7);  // any kind of integer
  AddUint64(*kernel.mutable_attr(), "num_ops", 1000);
  schema::Node copy = MakeNode(2, schema::MEM_LOAD_NODE);
  copy.set_start_time_micros(30);
  AddInt64(*copy.mutable_attr(), "tensor_size", 4096);
  const Recording recording = MustRead(TestingFile().Add(host).Add(kernel).Add(copy));
  const RecordedRank& rank = recording.ranks.front();
  ASSERT_THAT(rank.lanes, SizeIs(3));
  EXPECT_EQ(rank.lanes[0].name, "thread 77");
  EXPECT_EQ(rank.lanes[0].kind, LaneKind::kHostThread);
  EXPECT_EQ(rank.lanes[1].name, "stream 7");
  EXPECT_EQ(rank.lanes[2].name, "copy");
  EXPECT_EQ(rank.ops[0].kind, OpKind::kHost);
  EXPECT_EQ(rank.ops[1].kind, OpKind::kCompute);
  EXPECT_EQ(rank.works[static_cast<std::size_t>(rank.ops[1].work)].flops, 1000);
  EXPECT_EQ(rank.ops[2].kind, OpKind::kCopy);
  EXPECT_EQ(rank.works[static_cast<std::size_t>(rank.ops[2].work)].bytes, Bytes(4096));
}

// The feeder's default is the GPU.
TEST(ReadChakra, WithoutIsCpuOpTheGpu) {
  const Recording recording = MustRead(TestingFile().Add(MakeKernel(0, 1, 1)));
  EXPECT_EQ(recording.ranks.front().ops.front().kind, OpKind::kCompute);
}

TEST(ReadChakra, ForwardReferenceIsFine) {
  const TestingFile file =
      TestingFile().Add(MakeNode(5, schema::COMP_NODE, {6})).Add(MakeNode(6, schema::COMP_NODE));
  const Recording recording = MustRead(file);
  EXPECT_THAT(recording.remarks, IsEmpty());
  EXPECT_EQ(recording.names[static_cast<std::size_t>(recording.ranks[0].ops[0].name)], "node6");
  EXPECT_THAT(ParentsOf(recording, 1), ElementsAre("node6"));
}

TEST(ReadChakra, MissingParentIsNoted) {
  const Recording recording = MustRead(TestingFile()
                                           .Add(MakeNode(5, schema::COMP_NODE, {4, 9}))
                                           .Add(MakeNode(4, schema::COMP_NODE)));
  EXPECT_THAT(Whats(recording), ElementsAre("dependency on a node that is not there"));
  EXPECT_EQ(recording.remarks[0].name, "node5");
  EXPECT_THAT(ParentsOf(recording, 1), ElementsAre("node4"));
}

TEST(ReadChakra, SelfDependencyIsLeftOut) {
  const Recording recording = MustRead(TestingFile().Add(MakeNode(5, schema::COMP_NODE, {5})));
  EXPECT_THAT(Whats(recording), ElementsAre("operation that depends on itself"));
  EXPECT_THAT(ParentsOf(recording, 0), IsEmpty());
}

// Replay reports a cycle, reading keeps it.
TEST(ReadChakra, CycleStays) {
  TestingFile file;
  file.Add(MakeNode(1, schema::COMP_NODE, {2})).Add(MakeNode(2, schema::COMP_NODE, {1}));
  file.Add(MakeNode(3, schema::COMP_NODE));
  schema::Node timed = MakeNode(4, schema::COMP_NODE, {2});
  timed.set_duration_micros(1);
  const Recording recording = MustRead(file.Add(timed));
  EXPECT_THAT(recording.ranks.front().ops, SizeIs(4));
  EXPECT_THAT(recording.ranks.front().dependencies, SizeIs(3));
}

TEST(ReadChakra, DependenciesThroughMetadataNodes) {
  TestingFile file;
  file.Add(MakeNode(1, schema::COMP_NODE));
  file.Add(MakeNode(2, schema::METADATA_NODE, {1, 4}));  // 2 and 4: a circle
  file.Add(MakeNode(4, schema::INVALID_NODE, {2, 5}));
  file.Add(MakeNode(3, schema::COMP_NODE, {2, 1}));
  file.Add(MakeNode(5, schema::COMP_NODE));
  const Recording recording = MustRead(file);
  ASSERT_THAT(recording.ranks.front().ops, SizeIs(3));
  EXPECT_THAT(ParentsOf(recording, 2), ElementsAre("node1", "node5"));
  EXPECT_THAT(recording.remarks, IsEmpty());
}

TEST(ReadChakra, TooManyDependenciesThroughMetadataNodesAreRefused) {
  TestingFile file;
  schema::Node metadata = MakeNode(1'000'000, schema::METADATA_NODE);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    file.Add(MakeNode(i, schema::COMP_NODE));
    metadata.add_data_deps(i);
  }
  file.Add(metadata);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    file.Add(MakeNode(10'000 + i, schema::COMP_NODE, {1'000'000}));
  }
  EXPECT_THAT(ErrorOf(file.bytes()), HasSubstr("metadata nodes that depend on too many"));
}

// ASTRA-sim's feeder waits for both kinds, Chakra's own for data_deps alone.
TEST(ReadChakra, ControlDependencies) {
  schema::Node child = MakeKernel(2, 30, 5);
  child.add_ctrl_deps(1);
  const TestingFile file = TestingFile().Add(MakeKernel(1, 10, 5)).Add(child);
  EXPECT_THAT(ParentsOf(MustRead(file), 1), ElementsAre("node1"));
  EXPECT_THAT(ParentsOf(MustRead(file, {.control_dependencies = false}), 1), IsEmpty());
}

TEST(ReadChakra, CallInsideACallIsNoOrder) {
  schema::Node child = MakeKernel(2, 12, 2);
  child.add_ctrl_deps(1);
  const Recording recording = MustRead(TestingFile().Add(MakeKernel(1, 10, 50)).Add(child));
  EXPECT_THAT(ParentsOf(recording, 1), IsEmpty());
  EXPECT_THAT(Whats(recording),
              ElementsAre("operations of one thread or stream at the same time",
                          "control dependency on an operation that was not over"));
  EXPECT_FALSE(recording.ranks.front().lanes.front().in_order);
}

// As in traces of early converters, which gave nodes new ids in data_deps alone.
TEST(ReadChakra, ControlDependenciesInACircleAreLeftOut) {
  schema::Node first = MakeNode(1, schema::COMP_NODE);
  first.add_ctrl_deps(2);
  schema::Node third = MakeNode(3, schema::COMP_NODE);
  third.add_ctrl_deps(1);
  const TestingFile file =
      TestingFile().Add(first).Add(MakeNode(2, schema::COMP_NODE, {1})).Add(third);
  const Recording recording = MustRead(file);
  EXPECT_THAT(Whats(recording), ElementsAre("control dependencies that go in a circle"));
  EXPECT_THAT(ParentsOf(recording, 0), IsEmpty());
  EXPECT_THAT(ParentsOf(recording, 1), ElementsAre("node1"));
  EXPECT_THAT(ParentsOf(recording, 2), IsEmpty());
}

TEST(ReadChakra, UnsetCommunicationTypeIsNoAllReduce) {
  const Recording recording = MustRead(TestingFile().Add(MakeCollective(0, -1, 8)));
  EXPECT_EQ(OnlyCommunication(recording).kind, CommunicationKind::kUnknown);
  EXPECT_THAT(Whats(recording), ElementsAre("collective without comm_type"));
}

TEST(ReadChakra, UnknownCommunicationTypeIsNoAllReduce) {
  const Recording recording = MustRead(TestingFile().Add(MakeCollective(0, 10, 8)));
  EXPECT_EQ(OnlyCommunication(recording).kind, CommunicationKind::kUnknown);
  EXPECT_THAT(recording.remarks, SizeIs(1));
}

TEST(ReadChakra, KindsOfCollectives) {
  const auto kind = [](std::int64_t comm_type) {
    return OnlyCommunication(MustRead(TestingFile().Add(MakeCollective(0, comm_type, 8)))).kind;
  };
  EXPECT_EQ(kind(0), CommunicationKind::kAllReduce);
  EXPECT_EQ(kind(1), CommunicationKind::kReduce);
  EXPECT_EQ(kind(2), CommunicationKind::kAllGather);
  EXPECT_EQ(kind(3), CommunicationKind::kGather);
  EXPECT_EQ(kind(4), CommunicationKind::kScatter);
  EXPECT_EQ(kind(5), CommunicationKind::kBroadcast);
  EXPECT_EQ(kind(6), CommunicationKind::kAllToAll);
  EXPECT_EQ(kind(7), CommunicationKind::kReduceScatter);
  EXPECT_EQ(kind(8), CommunicationKind::kReduceScatter);
  EXPECT_EQ(kind(9), CommunicationKind::kBarrier);
}

// ASTRA-sim: what one rank contributes to an all-gather, the whole input of the others.
TEST(ReadChakra, SizesAsRecordingCountsThem) {
  const std::string groups = R"({"2": [1, 3, 5, 7]})";
  const auto bytes = [&](std::int64_t comm_type, const std::string& pg_name, std::int32_t world) {
    const TestingFile file = TestingFile().Add(MakeCollective(0, comm_type, 100, pg_name));
    return OnlyCommunication(MustRead(file, {.world = world}, groups)).bytes;
  };
  EXPECT_EQ(bytes(schema::ALL_GATHER, "2", 0), Bytes(400));
  EXPECT_EQ(bytes(schema::REDUCE_SCATTER, "2", 0), Bytes(100));
  EXPECT_EQ(bytes(schema::ALL_TO_ALL, "2", 0), Bytes(100));
  EXPECT_EQ(bytes(schema::ALL_GATHER, "", 8), Bytes(800));
  EXPECT_EQ(bytes(schema::ALL_GATHER, "0", 8), Bytes(800));
  EXPECT_EQ(bytes(schema::ALL_GATHER, "0", 0), Bytes(-1));
  EXPECT_EQ(bytes(schema::ALL_REDUCE, "0", 0), Bytes(100));
}

TEST(ReadChakra, SizeThatOverflowsIsRefused) {
  const TestingFile file = TestingFile().Add(MakeCollective(9, 2, std::int64_t{1} << 62));
  const auto recording = ReadChakraBytes(file.bytes(), "run.3.et", "", {.world = 8});
  EXPECT_THAT(std::string(recording.status().message()), HasSubstr("node 9: comm_size"));
}

TEST(ReadChakra, Groups) {
  const TestingFile file = TestingFile()
                               .Add(MakeCollective(0, 0, 8, "2"))
                               .Add(MakeCollective(1, 0, 8, "5"))
                               .Add(MakeCollective(2, 0, 8, "0"));
  const Recording recording = MustRead(file, {.world = 4}, R"({"2": [3, 1], "7": [0]})");
  ASSERT_THAT(recording.groups, SizeIs(3));  // not 7: nobody uses it here
  EXPECT_EQ(recording.groups[0].name, "2");
  EXPECT_THAT(recording.groups[0].ranks, ElementsAre(1, 3));
  EXPECT_EQ(recording.groups[1].name, "5");
  EXPECT_THAT(recording.groups[1].ranks, IsEmpty());
  EXPECT_EQ(recording.groups[2].role, "world");
  EXPECT_THAT(recording.groups[2].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Whats(recording),
              ElementsAre("communicator group without ranks in the file or its groups file"));
}

TEST(ReadChakra, ProcessGroupsOfPyTorch) {
  schema::Node init = MakeNode(0, schema::METADATA_NODE);
  init.mutable_inputs()->set_values(
      R"(['[{"pg_name": "0", "pg_desc": "default_pg", "ranks": []},)"
      R"( {"pg_name": "4", "pg_desc": "mesh_tp", "ranks": [2, 3], "pg_size": 2}]'])");
  const TestingFile file =
      TestingFile().Add(MakeCollective(1, 2, 8, "4")).Add(MakeCollective(2, 0, 8, "0")).Add(init);
  const Recording recording = MustRead(file, {.world = 4});
  ASSERT_THAT(recording.groups, SizeIs(2));
  EXPECT_EQ(recording.groups[0].role, "tp");
  EXPECT_THAT(recording.groups[0].ranks, ElementsAre(2, 3));
  EXPECT_EQ(recording.groups[1].description, "default_pg");
  EXPECT_THAT(recording.groups[1].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(OnlyCommunication(recording).bytes, Bytes(16));
}

TEST(ReadChakra, Messages) {
  schema::Node send = MakeNode(0, schema::COMM_SEND_NODE);
  AddInt32(*send.mutable_attr(), "comm_dst", 5);
  AddInt32(*send.mutable_attr(), "comm_tag", -2);  // the feeder takes it for unsigned
  AddInt64(*send.mutable_attr(), "comm_size", 64);
  schema::Node receive = MakeNode(1, schema::COMM_RECV_NODE);
  const Recording recording = MustRead(TestingFile().Add(send).Add(receive));
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_EQ(rank.communications[0].kind, CommunicationKind::kSend);
  EXPECT_EQ(rank.communications[0].peer, 5);
  EXPECT_EQ(rank.communications[0].tag, (std::int64_t{1} << 32) - 2);
  EXPECT_EQ(rank.communications[0].bytes, Bytes(64));
  EXPECT_EQ(rank.communications[0].group, -1);
  EXPECT_EQ(rank.communications[1].kind, CommunicationKind::kReceive);
  EXPECT_EQ(rank.communications[1].peer, -1);
  EXPECT_EQ(rank.lanes[0].name, "send");
  EXPECT_EQ(rank.lanes[1].name, "receive");
  EXPECT_EQ(recording.messages, MessageRule::kEager);
  EXPECT_THAT(Whats(recording), ElementsAre("message without the other side's rank",
                                            "communication without comm_size"));
}

TEST(ReadChakra, SendOfAnotherRankIsRefused) {
  schema::Node send = MakeNode(8, schema::COMM_SEND_NODE);
  AddInt32(*send.mutable_attr(), "comm_src", 2);
  EXPECT_THAT(ErrorOf(TestingFile().Add(send).bytes()),
              HasSubstr("node 8: comm_src 2 in the file of rank 3"));
}

TEST(ReadChakra, CommunicationMarkedAsCpuOperationIsTheCall) {
  schema::Node call = MakeCollective(0, 0, 8);
  AddBool(*call.mutable_attr(), "is_cpu_op", true);
  const Recording recording = MustRead(TestingFile().Add(call));
  EXPECT_EQ(recording.ranks.front().ops.front().kind, OpKind::kHost);
  EXPECT_THAT(recording.ranks.front().communications, IsEmpty());
  EXPECT_THAT(recording.remarks, SizeIs(1));
}

TEST(ReadChakra, AttributeOfAWrongKindIsRefused) {
  schema::Node node = MakeNode(4, schema::COMP_NODE);
  AddString(*node.mutable_attr(), "tensor_size", "big");
  EXPECT_THAT(ErrorOf(TestingFile().Add(node).bytes()),
              HasSubstr("node 4: attribute tensor_size: not a whole number"));
}

TEST(ReadChakra, SecondNodeOfAnIdIsRefused) {
  const TestingFile file = TestingFile().Add(MakeKernel(4, 1, 1)).Add(MakeKernel(4, 2, 1));
  EXPECT_THAT(ErrorOf(file.bytes()), HasSubstr("node 4: a second node of this id"));
}

TEST(ReadChakraAll, NoFiles) { EXPECT_FALSE(ReadChakraAll({}).ok()); }

}  // namespace
}  // namespace optimus::traces::chakra
