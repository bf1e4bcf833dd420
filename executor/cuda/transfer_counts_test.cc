#include "executor/cuda/transfer_counts.h"

#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

TransferCounts Counts(CollectiveKind kind, std::int64_t bytes, int ranks) {
  return CountsOf({kind, "x", Bytes(bytes)}, ranks);
}

// nccl-tests: all-gather counts the gathered output, reduce-scatter the whole input.
TEST(TransferCounts, AreThoseOfNcclTests) {
  const TransferCounts gather = Counts(CollectiveKind::kAllGather, 8000, 4);
  EXPECT_EQ(gather.count, 1000);
  EXPECT_EQ(gather.send_bytes, 2000);
  EXPECT_EQ(gather.receive_bytes, 8000);
  const TransferCounts scatter = Counts(CollectiveKind::kReduceScatter, 8000, 4);
  EXPECT_EQ(scatter.count, 1000);
  EXPECT_EQ(scatter.send_bytes, 8000);
  EXPECT_EQ(scatter.receive_bytes, 2000);
  const TransferCounts exchange = Counts(CollectiveKind::kAllToAll, 8000, 4);
  EXPECT_EQ(exchange.count, 1000);
  EXPECT_EQ(exchange.send_bytes, 8000);
  EXPECT_EQ(exchange.receive_bytes, 8000);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
    const TransferCounts whole = Counts(kind, 8000, 4);
    EXPECT_EQ(whole.count, 4000);
    EXPECT_EQ(whole.send_bytes, 8000);
    EXPECT_EQ(whole.receive_bytes, 8000);
  }
}

TEST(TransferCounts, RoundUpToWholeElements) {
  EXPECT_EQ(Counts(CollectiveKind::kAllGather, 9, 4).count, 2);
  EXPECT_EQ(Counts(CollectiveKind::kAllGather, 9, 4).receive_bytes, 16);
  EXPECT_EQ(Counts(CollectiveKind::kAllReduce, 1, 8).count, 1);
  EXPECT_EQ(Counts(CollectiveKind::kReduceScatter, 0, 8).count, 0);
  EXPECT_EQ(MessageCount(Bytes(0)), 0);
  EXPECT_EQ(MessageCount(Bytes(3)), 2);
  EXPECT_EQ(MessageCount(Bytes(4096)), 2048);
}

}  // namespace
}  // namespace optimus::executor::cuda
