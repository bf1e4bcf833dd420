// PyTorch's pipeline-schedule CSV: files from PyTorch's own tests, round trips, refusals, garbage.

#include "schedule/pipeline/compute_schedule_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedule/pipeline/dualpipe.h"
#include "schedule/pipeline/dualpipe_v.h"
#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"
#include "schedule/pipeline/zb_auto.h"
#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_h2.h"
#include "schedule/pipeline/zb_v.h"

namespace optimus::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Refusal(const std::string& text, std::optional<Placement> placement = std::nullopt) {
  const auto read = ReadComputeSchedule(text, placement);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(read.status().message());
}

void ExpectSame(const Order& a, const Order& b) {
  EXPECT_EQ(a.stages, b.stages);
  EXPECT_EQ(a.chunks, b.chunks);
  EXPECT_EQ(a.micro_batches, b.micro_batches);
  EXPECT_EQ(a.placement, b.placement);
  EXPECT_EQ(a.slots, b.slots);
}

// pytorch/pytorch, test/distributed/pipelining/artifacts/dualpipev_4rank_10mb.csv: what PyTorch's
// ScheduleDualPipeV makes of 4 ranks and 10 micro-batches.
constexpr char kPyTorchDualPipeV[] =
    "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,(0F7;7B3)OVERLAP_F_B,"
    "(7F4;0B0)OVERLAP_F_B,(0F8;7B4)OVERLAP_F_B,(7F5;0B1)OVERLAP_F_B,(0F9;7B5)OVERLAP_F_B,"
    "(7F6;0B2)OVERLAP_F_B,7B6,(7F7;0B3)OVERLAP_F_B,7B7,(7F8;0B4)OVERLAP_F_B,7B8,"
    "(7F9;0B5)OVERLAP_F_B,7B9,0I6,0W6,0I7,0W7,0I8,0W8,0I9,0W9\n"
    "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,(1F6;6B2)OVERLAP_F_B,"
    "(6F4;1B0)OVERLAP_F_B,(1F7;6B3)OVERLAP_F_B,(6F5;1B1)OVERLAP_F_B,(1F8;6B4)OVERLAP_F_B,"
    "(6F6;1B2)OVERLAP_F_B,(1F9;6B5)OVERLAP_F_B,(6F7;1B3)OVERLAP_F_B,6B6,(6F8;1B4)OVERLAP_F_B,6B7,"
    "(6F9;1B5)OVERLAP_F_B,6B8,1B6,6I9,1I7,6W9,1I8,1W7,1I9,1W8,1W9\n"
    "2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,(2F5;5B1)OVERLAP_F_B,(5F4;2B0)OVERLAP_F_B,"
    "(2F6;5B2)OVERLAP_F_B,(5F5;2B1)OVERLAP_F_B,(2F7;5B3)OVERLAP_F_B,(5F6;2B2)OVERLAP_F_B,"
    "(2F8;5B4)OVERLAP_F_B,(5F7;2B3)OVERLAP_F_B,(2F9;5B5)OVERLAP_F_B,(5F8;2B4)OVERLAP_F_B,5B6,"
    "(5F9;2B5)OVERLAP_F_B,5B7,2B6,5B8,2I7,5I9,2I8,2W7,2I9,5W9,2W8,2W9\n"
    "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,3F4,4B0,(4F4;3B0)OVERLAP_F_B,(3F5;4B1)OVERLAP_F_B,"
    "(4F5;3B1)OVERLAP_F_B,(3F6;4B2)OVERLAP_F_B,(4F6;3B2)OVERLAP_F_B,(3F7;4B3)OVERLAP_F_B,"
    "(4F7;3B3)OVERLAP_F_B,(3F8;4B4)OVERLAP_F_B,(4F8;3B4)OVERLAP_F_B,(3F9;4B5)OVERLAP_F_B,"
    "(4F9;3B5)OVERLAP_F_B,4B6,3B6,4B7,3B7,4I8,3I8,4I9,3I9,4W8,3W8,4W9,3W9\n";

TEST(ComputeScheduleCsvTest, PyTorchsDualPipeVIsOurs) {
  const auto read = ReadComputeSchedule(kPyTorchDualPipeV);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(read->order, *DualPipeV(4, 10));
  EXPECT_THAT(read->left_out, IsEmpty());
}

// pytorch/pytorch, test/distributed/pipelining/test_schedule.py, "simple_2_rank_2_stage": the same
// order without and with communication. The idle cells are where ours are.
TEST(ComputeScheduleCsvTest, PyTorchsOneForwardOneBackward) {
  const Order ours = *OneForwardOneBackward(2, 2);
  const auto compute = ReadComputeSchedule(
      "0F0,0F1,   ,0B0,   ,0B1\n"
      "   ,1F0,1B0,1F1,1B1,   \n");
  ASSERT_TRUE(compute.ok()) << compute.status();
  ExpectSame(compute->order, ours);
  const auto comms = ReadComputeSchedule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  ASSERT_TRUE(comms.ok()) << comms.status();
  ExpectSame(comms->order, ours);
  EXPECT_THAT(comms->left_out, ElementsAre(Pair("RECV_B", 2), Pair("RECV_F", 2), Pair("SEND_B", 2),
                                           Pair("SEND_F", 2)));
  EXPECT_EQ(*WriteComputeSchedule(ours), "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
}

// Actions of fully sharded data parallelism have no micro-batch.
TEST(ComputeScheduleCsvTest, LeavesOutShardingToo) {
  const auto read = ReadComputeSchedule("0UNSHARD,0F0,0I0,0W0,0RESHARD,0REDUCE_GRAD\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->left_out,
              ElementsAre(Pair("REDUCE_GRAD", 1), Pair("RESHARD", 1), Pair("UNSHARD", 1)));
  EXPECT_EQ(read->order.slots[0].size(), 3);
}

std::vector<Order> AllKinds() {
  std::vector<Order> orders;
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {2 * p, 2 * p + 3}) {
      orders.push_back(*GPipe(p, m));
      orders.push_back(*OneForwardOneBackward(p, m));
      orders.push_back(*DualPipeV(p, m));
    }
    for (const WarmUp warm_up : {WarmUp::kMegatron, WarmUp::kDeferred}) {
      orders.push_back(*Interleaved({p, 3, 2 * p, 0, warm_up}));
    }
    orders.push_back(*ZbH1(p, 2 * p));
    orders.push_back(*ZbH2(p, 2 * p));
    orders.push_back(*ZbV(p, 2 * p));
    ZbAutoOptions by_times;
    by_times.stages = p;
    by_times.micro_batches = 2 * p;
    by_times.times = UniformTimes(*ZbH1(p, 2 * p), Picoseconds(5), Picoseconds(6), Picoseconds(3),
                                  Picoseconds(1));
    by_times.memory_limit.assign(p, p);
    orders.push_back(*ZbAuto(by_times));
  }
  return orders;
}

TEST(ComputeScheduleCsvTest, RoundTrip) {
  for (const Order& order : AllKinds()) {
    const auto text = WriteComputeSchedule(order);
    ASSERT_TRUE(text.ok()) << text.status();
    for (const auto placement : {std::optional<Placement>(), std::optional(order.placement)}) {
      const auto read = ReadComputeSchedule(*text, placement);
      ASSERT_TRUE(read.ok()) << read.status() << "\n" << *text;
      ExpectSame(read->order, order);
    }
    EXPECT_EQ(*WriteComputeSchedule(ReadComputeSchedule(*text)->order), *text);
  }
}

// Where a loop and a V are the same, what is asked for decides.
TEST(ComputeScheduleCsvTest, OneRankIsALoopUnlessAskedFor) {
  const std::string text = "0F0,1F0,1B0,0B0\n";
  EXPECT_EQ(ReadComputeSchedule(text)->order.placement, Placement::kLoop);
  EXPECT_EQ(ReadComputeSchedule(text, Placement::kV)->order.placement, Placement::kV);
}

// What waits is to the right of what it waits for, in another row or in its own.
TEST(ComputeScheduleCsvTest, CellsAreSteps) {
  EXPECT_EQ(*WriteComputeSchedule(*DualPipeV(2, 4)),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
            "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
            ",1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
            "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
}

TEST(ComputeScheduleCsvTest, AcceptsHowFilesAreWritten) {
  const Order ours = *OneForwardOneBackward(2, 2);
  for (const char* text : {
           "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n",             // lines of Windows and csv.writer
           "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1",                   // no end of the last line
           "0F0,0F1,,0B0,,0B1,,,\n,1F0,1B0,1F1,1B1,,,\n\n,,\n",  // commas and lines behind
           "\"0F0\",\"0F1\" , \"0B0\",0B1,\"\"\n 1F0 ,1B0,\t1F1,1B1\n",  // quotes and spaces
           ("\xEF\xBB\xBF"
            "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"),   // a byte-order mark
           "00F00,0F01,0B0,0B1\n1F0,1B0,1F1,1B1\n",  // zeros before a number
       }) {
    const auto read = ReadComputeSchedule(text);
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
    ExpectSame(read->order, ours);
  }
}

TEST(ComputeScheduleCsvTest, NamesTheCell) {
  EXPECT_THAT(Refusal("0F0,0B0\n1F0,1X0\n"),
              AllOf(HasSubstr("rank 1 (line 2), cell 2 \"1X0\": is no action"), HasSubstr("0I0")));
  for (const char* cell : {"F0",
                           "0",
                           "0F",
                           "F",
                           "0f0",
                           "0F0.5",
                           "-1F0",
                           "0F-1",
                           "0F0F",
                           "0 F0",
                           "0SEND_F",
                           "0SEND0",
                           "# comment",
                           "rank 0",
                           "0F0;0B0",
                           "(0F0;0B0)",
                           "(0F0;0B0",
                           "()OVERLAP_F_B",
                           "(0F0)OVERLAP_F_B",
                           "((0F0;0B0)OVERLAP_F_B",
                           "(0B0;0F0)OVERLAP_F_B",
                           "(0F0;0I0)OVERLAP_F_B",
                           "(0F0;0B0)OVERLAP",
                           "(0F0;0B0;)OVERLAP_F_B",
                           "(0F0;0SEND_F0;0B0)OVERLAP_F_B",
                           "2147483647F0",
                           "0F99999999999999999999",
                           "0UNSHARD99999999999"}) {
    EXPECT_THAT(Refusal(std::string("0F0,") + cell + ",0B0\n"),
                HasSubstr(std::string("rank 0 (line 1), cell 2 \"") + cell + "\": "));
  }
  EXPECT_THAT(Refusal("0F0,0B0,0B99999999999\n"),
              HasSubstr("micro-batch 99999999999 is too large"));
  EXPECT_THAT(Refusal("0F0,0BW0\n"), HasSubstr("older PyTorch"));
  EXPECT_THAT(
      Refusal("0F0,0B0,0W0\n"),
      AllOf(HasSubstr("rank 0 (line 1), cell 3 \"0W0\": runs twice"), HasSubstr("write I")));
}

TEST(ComputeScheduleCsvTest, NamesWhatIsWrongWithTheOrder) {
  EXPECT_THAT(Refusal("0F0,,0B0,0F0\n"), HasSubstr("rank 0 (line 1), cell 4 \"0F0\": runs twice"));
  EXPECT_THAT(Refusal("0B0,0F0\n"), HasSubstr("cell 1 \"0B0\": runs before what it needs"));
  EXPECT_THAT(
      Refusal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"),
      HasSubstr("rank 1 (line 2): 1B1 is missing; the largest micro-batch in the file is 1"));
  EXPECT_THAT(Refusal("0F0,0F1,0B0,0I1\n"), HasSubstr("0W1 is missing"));
  EXPECT_THAT(Refusal("0F0,0B0,0F5,0B5\n"),
              HasSubstr("cell 3 \"0F5\": micro-batch 5, but rank 0 computes only 4 times"));
  // What is missing is named, not what waits for it.
  EXPECT_THAT(Refusal("0F0,0B0,0B1\n"), HasSubstr("rank 0 (line 1): 0F1 is missing"));
  EXPECT_THAT(Refusal("0F0,0F1,0B0,0W1\n"), HasSubstr("rank 0 (line 1): 0I1 is missing"));
}

TEST(ComputeScheduleCsvTest, NamesEveryRankOfADeadlock) {
  // Rank 1 makes the gradient of 1 first, and waits for a forward that rank 0 runs after it.
  EXPECT_THAT(Refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
              Eq("rank 0 (line 1), cell 2 \"0B0\": waits for 1B0, which cannot run before rank 1 "
                 "(line 2), cell 2 \"1F1\", which waits for 0F1, which cannot run before rank 0 "
                 "(line 1), cell 2 \"0B0\": the ranks wait for each other for ever"));
  // Rank 0 waits, too, but stands in nobody's way.
  EXPECT_THAT(Refusal("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n2F0,2F1,2B0,2B1\n"),
              Eq("rank 1 (line 2), cell 2 \"1B0\": waits for 2B0, which cannot run before rank 2 "
                 "(line 3), cell 2 \"2F1\", which waits for 1F1, which cannot run before rank 1 "
                 "(line 2), cell 2 \"1B0\": the ranks wait for each other for ever"));
  // Rank 1 itself is at what rank 2 needs.
  EXPECT_THAT(Refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B0,2B1\n"),
              HasSubstr("waits for 1B0, which cannot run before rank 1 (line 2), cell 2 \"1F1\", "
                        "which waits for 0F1, which cannot run before rank 0 (line 1), cell 2"));
  EXPECT_THAT(Refusal("1F0,0F0,1B0,0B0\n"),
              Eq("rank 0 (line 1), cell 1 \"1F0\": waits for 0F0, which cannot run before rank 0 "
                 "(line 1), cell 1 \"1F0\": the rank waits for itself for ever"));
}

TEST(ComputeScheduleCsvTest, ChecksCommunication) {
  const auto of_rank_0 = [](const std::string& row) { return Refusal(row + "\n1F0,1B0\n"); };
  EXPECT_THAT(of_rank_0("7UNSHARD,0F0,0B0"), Eq("rank 0 (line 1), cell 1 \"7UNSHARD\": the rank "
                                                "computes nothing of stage 7"));
  EXPECT_THAT(of_rank_0("1RESHARD,0F0,0B0"), HasSubstr("nothing of stage 1"));
  EXPECT_THAT(of_rank_0("0UNSHARD5,0F0,0B0"),
              HasSubstr("is of a stage, not of a micro-batch; write 0UNSHARD"));
  EXPECT_THAT(of_rank_0("0SEND_F0,0F0,0B0"),
              HasSubstr("cell 1 \"0SEND_F0\": is sent before it is computed, by 0F0 in cell 2"));
  EXPECT_THAT(of_rank_0("0F0,0B0,0RECV_B0"),
              HasSubstr("cell 3 \"0RECV_B0\": is received after it was needed, by 0B0 in cell 2"));
  EXPECT_THAT(of_rank_0("0F0,0SEND_F1,0B0"),
              HasSubstr("the rank computes no forward of micro-batch 1 on stage 0"));
  EXPECT_THAT(of_rank_0("0F0,0SEND_F0,0SEND_F0,0B0"),
              HasSubstr("cell 3 \"0SEND_F0\": is there twice"));
  EXPECT_THAT(of_rank_0("0F0,0B0,0SEND_B0"),
              HasSubstr("there is no stage in front of stage 0 to send to"));
  EXPECT_THAT(of_rank_0("0RECV_F0,0F0,0B0"),
              HasSubstr("there is no stage in front of stage 0 to receive from"));
  EXPECT_THAT(Refusal("0F0,0B0\n1F0,1SEND_F0,1B0\n"),
              HasSubstr("rank 1 (line 2), cell 2 \"1SEND_F0\": there is no stage behind stage 1"));
  // The input gradient is what is sent, not the weight gradient.
  EXPECT_TRUE(ReadComputeSchedule("0F0,0I0,0W0\n1F0,1I0,1SEND_B0,1W0\n").ok());
}

TEST(ComputeScheduleCsvTest, NamesRankAndStageOfAPlacement) {
  const auto row = [](std::vector<int> stages) {
    std::string text;
    for (const int s : stages) text += std::to_string(s) + "F0,";
    std::reverse(stages.begin(), stages.end());
    for (const int s : stages) text += std::to_string(s) + "B0,";
    return text + "\n";
  };
  EXPECT_EQ(ReadComputeSchedule(row({0, 3}) + row({1, 4}) + row({2, 5}))->order.placement,
            Placement::kLoop);
  EXPECT_EQ(ReadComputeSchedule(row({0, 5}) + row({1, 4}) + row({2, 3}))->order.placement,
            Placement::kV);
  EXPECT_EQ(ReadComputeSchedule(row({0, 5, 6}) + row({1, 4, 7}) + row({2, 3, 8}))->order.placement,
            Placement::kV);
  // Rank 1's stages are the same in both; ranks 0 and 2 mix them.
  EXPECT_THAT(Refusal(row({0, 3}) + row({1, 5}) + row({2, 4})),
              AllOf(HasSubstr("rank 1 (line 2): runs stages 1 and 5"),
                    HasSubstr("a placement as a loop has stage 5 on rank 2")));
  EXPECT_THAT(Refusal(row({0, 7}) + row({1, 6}) + row({2, 4}) + row({3, 5})),
              AllOf(HasSubstr("rank 2 (line 3): runs stages 2 and 4"),
                    HasSubstr("a placement as a V has stage 4 on rank 3")));
  EXPECT_THAT(Refusal(row({0, 3}) + row({1, 2}), Placement::kLoop),
              HasSubstr("rank 0 (line 1): runs stages 0 and 3, but a placement as a loop has stage "
                        "3 on rank 1"));
  EXPECT_THAT(Refusal(row({0, 2}) + row({1, 3}), Placement::kV),
              HasSubstr("has stage 2 on rank 1"));
  EXPECT_THAT(Refusal(row({0}), Placement::kBidirectional), HasSubstr("on two ranks"));
  EXPECT_THAT(Refusal(row({0}) + row({0})),
              HasSubstr("rank 1 (line 2), cell 1 \"0F0\": stage 0 is on rank 0 as well"));
  EXPECT_THAT(Refusal(row({0, 3}) + row({1})),
              HasSubstr("stage 2 is on no rank, but rank 0 (line 1) runs stage 3"));
  EXPECT_THAT(Refusal(row({0, 1}) + row({2})),
              HasSubstr("rank 1 (line 2): runs 1 stages, but rank 0 runs 2"));
}

TEST(ComputeScheduleCsvTest, RefusesFilesWithoutRows) {
  for (const char* text : {"", "\n", ",,,\r\n\r\n", "\xEF\xBB\xBF", "\"\"\n"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("is empty"));
  }
  EXPECT_THAT(Refusal("0F0,0B0\n\n1F0,1B0\n"), HasSubstr("rank 1 (line 2): computes nothing"));
  EXPECT_THAT(Refusal("0SEND_F0\n"), HasSubstr("rank 0 (line 1): computes nothing"));
  EXPECT_THAT(Refusal("0F0,\"0B0\n"), HasSubstr("line 1: a quote does not end"));
  EXPECT_THAT(Refusal("0F0\n\"0B0\"x,\n"), HasSubstr("line 2: text behind a closing quote"));
}

TEST(ComputeScheduleCsvTest, RefusesToWrite) {
  EXPECT_THAT(WriteComputeSchedule(*DualPipe(4, 8)).status().message(),
              AllOf(HasSubstr("two ranks"), HasSubstr("DualPipeV")));
  Order order = *OneForwardOneBackward(2, 2);
  order.slots[1].pop_back();
  EXPECT_THAT(WriteComputeSchedule(order).status().message(), HasSubstr("stage 1: no backward"));
  order = *OneForwardOneBackward(2, 2);
  std::swap(order.slots[0][1], order.slots[0][2]);
  std::swap(order.slots[1][1], order.slots[1][2]);
  EXPECT_THAT(WriteComputeSchedule(order).status().message(), HasSubstr("deadlocks"));
}

// Whatever a file holds: either a refusal or an order that runs and comes back the same.
void ExpectOrderOrRefusal(const std::string& text) {
  const auto read = ReadComputeSchedule(text);
  if (!read.ok()) {
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(read.status().message().empty());
    return;
  }
  EXPECT_TRUE(ValidateOrder(read->order).ok()) << text;
  const auto again = WriteComputeSchedule(read->order);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  ExpectSame(ReadComputeSchedule(*again, read->order.placement)->order, read->order);
}

TEST(ComputeScheduleCsvTest, AnyMutationIsAnOrderOrARefusal) {
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> seeds = {
      *WriteComputeSchedule(*DualPipeV(2, 4)), *WriteComputeSchedule(*ZbH1(3, 6)),
      *WriteComputeSchedule(*Interleaved({2, 2, 4, 0, WarmUp::kMegatron}))};
  const std::string alphabet =
      std::string("0123456789FBIW,;()\"\r\n _OVERLAPSEND#-") + '\0' + '\xEF';
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size()), other = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 1:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 2:
          text.erase(at, 1 + below(12));
          break;
        case 3:
          text.insert(at, text.substr(other, below(20)));
          break;
        default:
          std::swap(text[at], text[other]);
      }
    }
    ExpectOrderOrRefusal(text);
  }
}

// Actions as a user might move them by hand: the cells stay whole, so that many are orders.
TEST(ComputeScheduleCsvTest, MovedActionsAreAnOrderOrARefusal) {
  std::mt19937 random(7);
  int orders = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    Order order = trial % 2 == 0 ? *ZbH1(3, 6) : *Interleaved({2, 2, 4, 0, WarmUp::kMegatron});
    std::vector<Slot>& slots = order.slots[random() % order.slots.size()];
    const std::size_t at = random() % (slots.size() - 1);
    std::swap(slots[at], slots[at + 1]);
    if (!ValidateOrder(order).ok() || !FindDeadlock(order).empty()) {
      EXPECT_FALSE(WriteComputeSchedule(order).ok());
      continue;
    }
    ++orders;
    ExpectSame(ReadComputeSchedule(*WriteComputeSchedule(order))->order, order);
  }
  EXPECT_GT(orders, 200);
}

}  // namespace
}  // namespace optimus::pipeline
