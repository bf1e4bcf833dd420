#include "traces/kineto/communication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = CommunicationKind;

TEST(Communication, KindsFromTheCollectivesName) {
  const auto kind = [](const char* name) {
    return KindOfCommunication(name, "ncclDevKernel_SendRecv(x)");
  };
  EXPECT_EQ(kind("allreduce"), Kind::kAllReduce);
  EXPECT_EQ(kind("allreduce_coalesced"), Kind::kAllReduce);
  EXPECT_EQ(kind("_allgather_base"), Kind::kAllGather);
  EXPECT_EQ(kind("allgather_into_tensor_coalesced"), Kind::kAllGather);
  EXPECT_EQ(kind("_reduce_scatter_base"), Kind::kReduceScatter);
  EXPECT_EQ(kind("reduce_scatter_tensor_coalesced"), Kind::kReduceScatter);
  EXPECT_EQ(kind("broadcast"), Kind::kBroadcast);
  EXPECT_EQ(kind("_broadcast_oop"), Kind::kBroadcast);
  EXPECT_EQ(kind("_reduce_oop"), Kind::kReduce);
  EXPECT_EQ(kind("all_to_allv"), Kind::kAllToAll);  // made of SendRecv kernels
  EXPECT_EQ(kind("barrier"), Kind::kBarrier);
  EXPECT_EQ(kind("send"), Kind::kSend);
  EXPECT_EQ(kind("recv"), Kind::kReceive);
  EXPECT_EQ(kind("gather"), Kind::kGather);
  EXPECT_EQ(kind("scatter"), Kind::kScatter);
  EXPECT_EQ(kind("coalesced"), Kind::kSendReceive);  // the kernel's word
}

TEST(Communication, KindsFromTheKernelsName) {
  const auto kind = [](const char* kernel) { return KindOfCommunication("", kernel); };
  EXPECT_EQ(kind("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)"), Kind::kAllReduce);
  EXPECT_EQ(kind("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)"), Kind::kAllGather);
  EXPECT_EQ(kind("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)"), Kind::kReduceScatter);
  EXPECT_EQ(kind("ncclDevKernel_Broadcast_RING_LL(x)"), Kind::kBroadcast);
  EXPECT_EQ(kind("ncclDevKernel_Reduce_Sum_f32_RING_LL(x)"), Kind::kReduce);
  EXPECT_EQ(kind("ncclDevKernel_SendRecv(x)"), Kind::kSendReceive);  // never a direction
  EXPECT_EQ(kind("nccl:all_to_all"), Kind::kAllToAll);
  EXPECT_EQ(kind("ncclDevKernel_Generic_4(x)"), Kind::kUnknown);  // never taken for all-reduce
}

TEST(Communication, KernelsOfNcclAreKnownByName) {
  EXPECT_TRUE(IsCommunicationKernel("ncclDevKernel_SendRecv(x)"));
  EXPECT_TRUE(IsCommunicationKernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)"));
  EXPECT_TRUE(IsCommunicationKernel("nccl:all_reduce"));
  EXPECT_FALSE(IsCommunicationKernel("void at::native::reduce_kernel<512>(x)"));
}

TEST(Communication, BytesAreCountedAsNcclTestsDo) {
  EventArgs args;
  args.elements_in = 10;
  args.elements_out = 80;
  args.dtype = "BFloat16";
  EXPECT_EQ(BytesOfCommunication(Kind::kAllGather, args), Bytes(160));
  EXPECT_EQ(BytesOfCommunication(Kind::kReduceScatter, args), Bytes(20));
  EXPECT_EQ(BytesOfCommunication(Kind::kAllToAll, args), Bytes(20));
  EXPECT_EQ(BytesOfCommunication(Kind::kAllReduce, args), Bytes(160));
  args.dtype = "Quaternion";
  EXPECT_EQ(BytesOfCommunication(Kind::kAllGather, args), Bytes(-1));
  args.dtype = "Double";
  args.elements_out = std::int64_t{1} << 62;
  EXPECT_EQ(BytesOfCommunication(Kind::kAllGather, args), Bytes(-1));
}

TEST(Communication, ListsOfRanksThatAreCutOffAreNotHalfRead) {
  EXPECT_THAT(ParseRanks("[0, 1, 12]"), ElementsAre(0, 1, 12));
  EXPECT_THAT(ParseRanks("[0, 1, ..., 12]"), IsEmpty());
  EXPECT_THAT(ParseRanks("[0, 1, ...]"), IsEmpty());
  EXPECT_THAT(ParseRanks("[0, -1]"), IsEmpty());
  EXPECT_THAT(ParseRanks("0, 1"), IsEmpty());
}

EventArgs InGroup(const char* name, const char* ranks, std::int64_t size) {
  EventArgs args;
  args.group = name;
  args.group_ranks = ranks;
  args.group_size = size;
  return args;
}

TEST(Communication, GroupsComeFromTheKernelOrFromTheHeader) {
  TraceHeader header;
  CommunicatorGroup known;
  known.name = "7";
  known.description = "DATA_PARALLEL_GROUP";
  known.ranks = {0, 2, 4, 6};
  known.size = 4;
  header.groups = {known};
  Recording recording;
  RecordingTables tables(recording);
  CommunicationReader reader(header, 0, tables);
  const auto group = [&](const EventArgs& args) {
    return reader.Read("ncclDevKernel_AllReduce(x)", args).group;
  };
  EXPECT_EQ(group(InGroup("3", "[0, 1]", 2)), 0);
  EXPECT_EQ(group(InGroup("7", "[0, 2, ...]", 4)), 1);
  EXPECT_EQ(group(InGroup("3", "[0, 1]", 2)), 0);
  EXPECT_EQ(group(InGroup("9", "[0, ...]", 64)), 2);
  EXPECT_EQ(group(EventArgs()), -1);
  ASSERT_EQ(recording.groups.size(), 3U);
  EXPECT_THAT(recording.groups[1].ranks, ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(recording.groups[1].role, "dp");
  EXPECT_THAT(recording.groups[2].ranks, IsEmpty());
  EXPECT_EQ(recording.groups[2].size, 64);
}

TEST(Communication, PeersOfSendsReceivesAndOfWhatDoesNotSay) {
  TraceHeader header;
  Recording recording;
  RecordingTables tables(recording);
  CommunicationReader reader(header, 1, tables);
  EventArgs args;
  args.source = 1;
  args.destination = 3;
  EXPECT_EQ(reader.Read("ncclDevKernel_SendRecv(x)", args).peer, 3);
  EXPECT_EQ(reader.Read("ncclDevKernel_SendRecv(x)", EventArgs()).peer, -1);
  args.collective = "send";
  EXPECT_EQ(reader.Read("ncclDevKernel_SendRecv(x)", args).peer, 3);
  args.source = 5;
  args.collective = "recv";
  EXPECT_EQ(reader.Read("ncclDevKernel_SendRecv(x)", args).peer, 5);
}

TEST(Communication, SequenceNumbersCountOnlyWhereTheyAreUnique) {
  const auto of = [](std::int32_t group, std::int64_t sequence) {
    Communication communication;
    communication.kind = Kind::kAllReduce;
    communication.group = group;
    communication.sequence = sequence;
    return communication;
  };
  std::vector<Communication> all = {of(0, 1), of(0, 2), of(1, 5), of(1, 5), of(2, 3), of(2, -1)};
  KeepUniqueSequences(all);
  std::vector<std::int64_t> sequences;
  sequences.reserve(all.size());
  for (const Communication& one : all) sequences.push_back(one.sequence);
  EXPECT_THAT(sequences, ElementsAre(1, 2, -1, -1, -1, -1));
}

}  // namespace
}  // namespace optimus::traces
