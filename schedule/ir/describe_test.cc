#include <string>

#include "gtest/gtest.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/testing.h"

namespace optimus::ir {
namespace {

using testing::MakeTag;
using testing::PhaseTag;
using testing::ScheduleBuilder;

class DescribeTest : public ::testing::Test {
 protected:
  DescribeTest() : builder_({1, 4, 2}) {
    builder_.schedule().modules = {{"llm", 8, false}, {"vit-22b", 4, false}};
  }
  std::string Say(std::uint32_t op) {
    return Describe(builder_.schedule(), builder_.schedule().programs[0], op);
  }
  ScheduleBuilder builder_;
};

TEST_F(DescribeTest, Kernels) {
  builder_.schedule().kernels.push_back({});
  builder_.schedule().kernels[0].name = "fc1";
  Operation op;
  op.work = 0;
  op.tag = MakeTag(0, 3, 5, Phase::kBackward, -1, 1);
  EXPECT_EQ(Say(builder_.Add(0, op, {})), "llm layer 3 micro-batch 5 chunk 1 backward fc1");
  op.tag = MakeTag(1, kProjectorLayer, 5, Phase::kForward, 2, 0);
  EXPECT_EQ(Say(builder_.Add(0, op, {})),
            "vit-22b projector micro-batch 5 slice 2 chunk 0 forward fc1");
  op.tag = MakeTag(0, kEmbeddingLayer, 0, Phase::kRecompute);
  EXPECT_EQ(Say(builder_.Add(0, op, {})), "llm embedding micro-batch 0 recompute fc1");
  op.tag = MakeTag(0, kHeadLayer, 0, Phase::kWeightGradient);
  EXPECT_EQ(Say(builder_.Add(0, op, {})), "llm head micro-batch 0 weight_gradient fc1");
}

TEST_F(DescribeTest, CollectivesAndMessages) {
  const auto dp = builder_.AddGroup("dp", true, false, false);
  const auto gather = builder_.AddCollectiveWork(CollectiveKind::kAllGather, 1, dp);
  builder_.schedule().collectives[gather].work.name = "";  // its kind is its name then
  EXPECT_EQ(Say(builder_.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kParameterSync),
                                       gather)),
            "parameter_sync all_gather");
  const auto edge = builder_.AddTransfer("activations", 1, 0);
  EXPECT_EQ(Say(builder_.AddSend(0, Stream::kForwardSend, 3, 0, edge)),
            "forward send activations to stage 3");
  EXPECT_EQ(Say(builder_.AddReceive(0, Stream::kBackwardReceive, 1, 1, edge)),
            "backward receive activations from stage 1");
  EXPECT_EQ(Say(builder_.AddReceive(0, Stream::kEncoderReceive, 1, 2, edge, {}, 3)),
            "backward receive activations from stage 1 lane 3");
}

// Broken schedules are described too, in the message that refuses them.
TEST_F(DescribeTest, IndicesOutOfRange) {
  Operation op;
  op.work = 99;
  op.tag = MakeTag(7, 3, 5, Phase::kBackward);
  EXPECT_EQ(Say(builder_.Add(0, op, {})), "module 7 layer 3 micro-batch 5 backward");
  EXPECT_EQ(Say(1000), "no such operation");
}

TEST(Names, StreamsAndKinds) {
  EXPECT_STREQ(ToString(Stream::kCompute), "compute");
  EXPECT_STREQ(ToString(Stream::kTensorParallel), "tensor_parallel");
  EXPECT_STREQ(ToString(Stream::kEncoderCommunication), "encoder_communication");
  EXPECT_STREQ(ToString(Stream::kBackwardReceive), "backward_receive");
  EXPECT_STREQ(ToString(Stream::kEncoderSend), "encoder_send");
  EXPECT_STREQ(ToString(Stream::kEncoderReceive), "encoder_receive");
  EXPECT_STREQ(ToString(static_cast<Stream>(99)), "invalid");
  EXPECT_STREQ(ToString(OperationKind::kReceive), "receive");
}

}  // namespace
}  // namespace optimus::ir
