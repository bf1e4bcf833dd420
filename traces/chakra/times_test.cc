// Times of Chakra files: whole microseconds of any clock, exact ones, none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "traces/chakra/chakra.h"
#include "traces/chakra/testing_file.h"

namespace optimus::traces::chakra {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace schema = ::optimus::chakra;

absl::StatusOr<Recording> Read(const TestingFile& file) {
  return ReadChakraBytes(file.bytes(), "run.0.et");
}

Recording MustRead(const TestingFile& file) {
  auto recording = Read(file);
  EXPECT_TRUE(recording.ok()) << recording.status();
  return recording.ok() ? *std::move(recording) : Recording();
}

TEST(ChakraTimes, CountFromTheFirstStart) {
  const std::uint64_t epoch = 1'700'000'000'000'000;  // us: 2023
  const Recording recording =
      MustRead(TestingFile().Add(MakeKernel(0, epoch + 7, 3)).Add(MakeKernel(1, epoch, 2)));
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_EQ(rank.clock_origin_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(rank.ops[0].start, Picoseconds(0));
  EXPECT_EQ(rank.ops[0].end, Picoseconds(2'000'000));
  EXPECT_EQ(rank.ops[1].start, Picoseconds(7'000'000));
  EXPECT_EQ(rank.step_start, Picoseconds(0));
  EXPECT_EQ(rank.step_end, Picoseconds(10'000'000));
  EXPECT_TRUE(rank.lanes.front().in_order);
}

TEST(ChakraTimes, ExactOnesAreTaken) {
  schema::Node node = MakeKernel(0, 1, 1);
  AddInt64(*node.mutable_attr(), "start_ps", 1'234'567);
  AddInt64(*node.mutable_attr(), "duration_ps", 250'001);
  const RecordedOp op = MustRead(TestingFile().Add(node)).ranks.front().ops.front();
  EXPECT_EQ(op.start, Picoseconds(1'234'567));
  EXPECT_EQ(op.duration(), Picoseconds(250'001));
}

TEST(ChakraTimes, DurationOfZeroIsNoted) {
  const Recording recording = MustRead(TestingFile().Add(MakeKernel(0, 5, 0)));
  EXPECT_EQ(recording.ranks.front().ops.front().duration(), Picoseconds(0));
  ASSERT_THAT(recording.remarks, SizeIs(1));
  EXPECT_EQ(recording.remarks.front().what, "duration of 0 us");
}

TEST(ChakraTimes, NoneAtAll) {
  const Recording recording =
      MustRead(TestingFile().Add(MakeKernel(0, 0, 0)).Add(MakeCollective(1, 0, 8)));
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_FALSE(rank.ops[0].timed());
  EXPECT_FALSE(rank.ops[1].timed());
  EXPECT_FALSE(rank.lanes[0].in_order);
  EXPECT_THAT(recording.remarks, IsEmpty());
}

// As ASTRA-sim's workloads are: durations of kernels, sizes of communication, no start times.
TEST(ChakraTimes, DurationsAloneStartAsEarlyAsTheyCan) {
  TestingFile file;
  file.Add(MakeKernel(0, 0, 10));
  schema::Node communication = MakeCollective(1, 0, 8);
  communication.add_data_deps(0);
  file.Add(communication).Add(MakeKernel(2, 0, 5, {1})).Add(MakeKernel(3, 0, 1));
  const Recording recording = MustRead(file);
  const RecordedRank& rank = recording.ranks.front();
  EXPECT_EQ(rank.ops[0].end, Picoseconds(10'000'000));
  EXPECT_EQ(rank.ops[1].start, Picoseconds(0));  // node 3
  EXPECT_FALSE(rank.ops[2].timed());             // the communication: has to be priced
  EXPECT_EQ(rank.ops[3].start, Picoseconds(10'000'000));
  EXPECT_EQ(recording.remarks.front().what, "durations without start times");
  EXPECT_FALSE(rank.lanes.front().in_order);
}

// The kernels of a stream run one after another also where no dependency says so.
TEST(ChakraTimes, StreamWithoutTimesKeepsTheOrderOfTheFile) {
  TestingFile file;
  for (std::uint64_t id = 0; id < 3; ++id) {
    schema::Node node = MakeKernel(id, 0, 10);
    AddInt64(*node.mutable_attr(), "stream", 7);
    file.Add(node);
  }
  const RecordedRank rank = MustRead(file).ranks.front();
  EXPECT_TRUE(rank.lanes.front().in_order);
  EXPECT_EQ(rank.ops[1].start, Picoseconds(10'000'000));
  EXPECT_EQ(rank.ops[2].start, Picoseconds(20'000'000));
}

TEST(ChakraTimes, WholeMicrosecondsMayOverlapByOne) {
  const auto in_order = [](std::uint64_t second) {
    return MustRead(TestingFile().Add(MakeKernel(0, 10, 5)).Add(MakeKernel(1, second, 5)))
        .ranks.front()
        .lanes.front()
        .in_order;
  };
  EXPECT_TRUE(in_order(15));
  EXPECT_TRUE(in_order(14));
  EXPECT_FALSE(in_order(13));
}

TEST(ChakraTimes, TooLongIsRefused) {
  const std::uint64_t most = ~std::uint64_t{0};
  EXPECT_THAT(std::string(Read(TestingFile().Add(MakeKernel(6, 1, most))).status().message()),
              HasSubstr("node 6: a duration"));
  EXPECT_THAT(std::string(Read(TestingFile().Add(MakeKernel(6, 0, most))).status().message()),
              HasSubstr("node 6: a duration"));
  EXPECT_THAT(std::string(Read(TestingFile().Add(MakeKernel(6, most, 1))).status().message()),
              HasSubstr("start times from"));
  EXPECT_THAT(
      std::string(Read(TestingFile().Add(MakeKernel(5, 1, 1)).Add(MakeKernel(6, most / 2, 1)))
                      .status()
                      .message()),
      HasSubstr("node 6: starts more than"));
}

}  // namespace
}  // namespace optimus::traces::chakra
