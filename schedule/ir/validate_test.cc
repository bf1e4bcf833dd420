#include "schedule/ir/validate.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"

namespace optimus::ir {
namespace {

using ::testing::HasSubstr;
using testing::MakeTag;
using testing::OneForwardOneBackward;
using testing::PhaseTag;
using testing::ScheduleBuilder;

// Refused with a message that has all of `parts`.
void ExpectRefused(const Schedule& schedule, const std::vector<std::string>& parts) {
  const absl::Status status = Validate(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("schedule 'test'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; hint: "));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("\n")));
}

Schedule Good() { return OneForwardOneBackward(2, 3, 1, 2, 0); }

// In Good(): stage 1 has receive 0, forward 1, backward 2, send 3, ...
Operation& Op(Schedule& schedule, int stage, std::uint32_t id) {
  return schedule.programs[stage].operations[id];
}

// A schedule whose stage 0 holds `kernel`.
Schedule WithKernel(const Kernel& kernel) {
  Schedule schedule = Good();
  schedule.kernels.push_back(kernel);
  return schedule;
}

TEST(Validate, AcceptsGoodSchedules) {
  EXPECT_TRUE(Validate(Good()).ok()) << Validate(Good());
  for (int stages = 1; stages <= 5; ++stages) {
    for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      const Schedule schedule = OneForwardOneBackward(stages, micro_batches, 1, 2, 3);
      EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
    }
  }
}

TEST(ValidateWorld, SizesMustBePositive) {
  Schedule schedule = Good();
  schedule.world.dp = 0;
  ExpectRefused(schedule, {"world.dp: 0 is too small", "at least 1"});
  schedule = Good();
  schedule.world.pp = -1;
  ExpectRefused(schedule, {"world.pp: -1 is too small"});
  schedule = Good();
  schedule.world.tp = 0;
  ExpectRefused(schedule, {"world.tp: 0 is too small"});
  schedule = Good();
  schedule.gpus_per_node = 0;
  ExpectRefused(schedule, {"gpus_per_node: 0 is too small"});
  schedule = Good();
  schedule.micro_batches = 0;
  ExpectRefused(schedule, {"micro_batches: 0 is too small"});
  schedule = Good();
  schedule.modules[0].layers = 0;
  ExpectRefused(schedule, {"modules[0] ('llm').layers: 0 is too small"});
}

TEST(ValidateWorld, MorePossibleGpusThanRanksCanName) {
  Schedule schedule = Good();
  schedule.world.dp = std::numeric_limits<std::int32_t>::max();
  ExpectRefused(schedule, {"world: dp * pp * tp = 2147483647 * 2 * 1 GPUs are too many"});
}

TEST(ValidateWorld, OneProgramPerStage) {
  Schedule schedule = Good();
  schedule.world.pp = 3;
  ExpectRefused(schedule, {"programs: 2 programs for 3 pipeline stages"});
  schedule = Good();
  schedule.programs[1].stage = 0;
  ExpectRefused(schedule, {"programs[1].stage: is 0, not 1"});
}

TEST(ValidateTables, Kernels) {
  Kernel kernel;
  kernel.name = "fc1";
  kernel.kind = KernelKind::kGemm;
  kernel.gemm = {4, 0, 4};
  kernel.flops = Flops(1);
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('fc1').gemm.n: 0 is too small"});
  kernel.gemm.n = 4;
  EXPECT_TRUE(Validate(WithKernel(kernel)).ok()) << Validate(WithKernel(kernel));
  for (const double flops : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    kernel.flops = Flops(flops);
    ExpectRefused(WithKernel(kernel), {"kernels[2] ('fc1').flops"});
  }
  kernel.kind = KernelKind::kAttention;
  kernel.attention = {1, 1, 0, 16, 128, true, false};
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('fc1').attention.kv_heads: 0 is too small"});
  kernel.kind = KernelKind::kMemoryBound;
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('fc1').hbm_bytes: 0 is too small"});
  kernel.bytes = Bytes(-1);
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('fc1').hbm_bytes: -1 is too small"});
  kernel = Kernel{};
  kernel.fixed = Picoseconds(-1);
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('').fixed_ps: -1 is too small"});
  kernel.kind = static_cast<KernelKind>(17);
  ExpectRefused(WithKernel(kernel), {"kernels[2] ('').kind: 17 is no kernel kind"});
}

TEST(ValidateTables, CollectivesAndTransfers) {
  Schedule schedule = Good();
  schedule.groups = {{"dp", true, false, false}};
  schedule.collectives = {{{CollectiveKind::kAllGather, "gather", Bytes(0)}, 0}};
  ExpectRefused(schedule, {"collectives[0] ('gather').bytes: 0 is too small"});
  schedule.collectives[0].work.bytes = Bytes(1);
  schedule.collectives[0].group = 1;
  ExpectRefused(schedule, {"collectives[0] ('gather').group: 1 is out of range", "1 groups"});
  schedule.collectives[0].group = -1;
  ExpectRefused(schedule, {"collectives[0] ('gather').group: -1 is out of range"});
  schedule.collectives[0].work.kind = static_cast<CollectiveKind>(9);
  ExpectRefused(schedule, {"collectives[0] ('gather').kind: 9 is no collective kind"});
  schedule = Good();
  schedule.transfers[0].bytes = Bytes(-1);
  ExpectRefused(schedule, {"transfers[0] ('edge').bytes: -1 is too small"});
  schedule.transfers[0] = {"edge", Bytes(0), Picoseconds(-5)};
  ExpectRefused(schedule, {"transfers[0] ('edge').fixed_ps: -5 is too small"});
}

TEST(ValidateOperations, KindAndStream) {
  Schedule schedule = Good();
  Op(schedule, 1, 1).kind = static_cast<OperationKind>(7);
  ExpectRefused(schedule, {"stage 1 (rank 1), operation 1", "kind: 7 is no operation kind"});
  schedule = Good();
  Op(schedule, 1, 1).stream = static_cast<Stream>(10);
  ExpectRefused(schedule, {"stage 1 (rank 1), operation 1", "stream: 10 is no stream"});
  schedule = Good();
  Op(schedule, 1, 1).stream = Stream::kForwardSend;
  ExpectRefused(schedule, {"operation 1 (llm layer 1 micro-batch 0 chunk 0 forward work1)",
                           "stream: a kernel cannot be on the forward_send stream"});
  schedule = Good();
  Op(schedule, 1, 0).stream = Stream::kCompute;
  ExpectRefused(schedule, {"stream: a receive cannot be on the compute stream"});
}

TEST(ValidateOperations, Tags) {
  const auto refused = [](const Tag& tag, const std::string& text) {
    Schedule schedule = Good();
    Op(schedule, 1, 1).tag = tag;
    ExpectRefused(schedule, {"stage 1 (rank 1), operation 1", text});
  };
  refused(MakeTag(0, 1, 0, static_cast<Phase>(7)), "tag.phase: 7 is no phase");
  refused(MakeTag(0, 1, 3, Phase::kForward), "tag.micro_batch: 3 is out of range");
  refused(MakeTag(0, 1, -2, Phase::kForward), "tag.micro_batch: -2 is out of range");
  refused(MakeTag(1, 1, 0, Phase::kForward), "tag.module: 1 is out of range");
  refused(MakeTag(-2, 1, 0, Phase::kForward), "tag.module: -2 is out of range");
  refused(MakeTag(0, 2, 0, Phase::kForward), "tag.layer: 2 is out of range");
  refused(MakeTag(0, -5, 0, Phase::kForward), "tag.layer: is out of range");
  refused(MakeTag(0, 1, 0, Phase::kForward, -2), "tag.slice: is out of range");
  refused(MakeTag(0, 1, 0, Phase::kForward, -1, -2), "tag.chunk: is out of range");
}

TEST(ValidateOperations, Indices) {
  Schedule schedule = Good();
  Op(schedule, 1, 1).work = 2;
  ExpectRefused(schedule,
                {"stage 1 (rank 1), operation 1", "work: 2 is out of range", "2 kernels"});
  schedule = Good();
  Op(schedule, 1, 0).work = -1;
  ExpectRefused(schedule, {"work: -1 is out of range", "1 transfers"});
  schedule = Good();
  Op(schedule, 1, 0).peer_stage = 2;
  ExpectRefused(schedule, {"peer_stage: 2 is out of range", "2 stages"});
  schedule = Good();
  Op(schedule, 1, 0).peer_stage = 1;
  ExpectRefused(schedule, {"peer_stage: is its own stage"});
  schedule = Good();
  Op(schedule, 1, 0).message = -1;
  ExpectRefused(schedule, {"message: -1 is no message id"});
}

TEST(ValidateOperations, Dependencies) {
  Schedule schedule = Good();
  schedule.programs[1].dependencies[0] = 99;
  ExpectRefused(schedule, {"stage 1 (rank 1), operation 1",
                           "dependencies: operation 99 does not exist", "has 12 operations"});
  schedule = Good();
  schedule.programs[1].dependencies[0] = 1;
  ExpectRefused(schedule, {"operation 1", "dependencies: it depends on itself"});
  schedule = Good();
  Op(schedule, 1, 1).dependency_count = 1000;
  ExpectRefused(schedule, {"operation 1", "first_dependency: range [0, 1000) is out of range"});
  schedule = Good();
  Op(schedule, 1, 1).first_dependency = 4'000'000'000U;
  ExpectRefused(schedule, {"first_dependency: range [4000000000, 4000000001) is out of range"});
  schedule = Good();
  Op(schedule, 1, 0).first_dependency = 50;  // an empty range has its place too
  ExpectRefused(schedule, {"operation 0", "first_dependency: range [50, 50) is out of range"});
}

TEST(ValidateMessages, Unmatched) {
  Schedule schedule = Good();
  Op(schedule, 1, 0).message = 77;
  ExpectRefused(schedule, {"stage 0 (rank 0), operation 1 (forward send edge to stage 1)",
                           "message: message 0 is never received", "stage 1 needs a receive"});
  schedule = Good();
  Op(schedule, 1, 0).kind = OperationKind::kSend;
  Op(schedule, 1, 0).stream = Stream::kForwardSend;
  ExpectRefused(schedule, {"message 0 is sent twice, first by stage 0 (rank 0), operation 1"});
  ScheduleBuilder builder({1, 2, 1});
  builder.AddReceive(1, Stream::kForwardReceive, 0, 5, builder.AddTransfer("edge", 1, 0));
  ExpectRefused(builder.Take(),
                {"stage 1 (rank 1), operation 0 (forward receive edge from stage 0)",
                 "message 5 is never sent", "stage 0 needs a send"});
}

TEST(ValidateMessages, Duplicated) {
  ScheduleBuilder builder({1, 2, 1});
  const auto edge = builder.AddTransfer("edge", 1, 0);
  builder.AddSend(0, Stream::kForwardSend, 1, 5, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 5, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 5, edge);
  ExpectRefused(builder.Take(), {"stage 1 (rank 1), operation 1", "message 5 is received twice",
                                 "first by stage 1 (rank 1), operation 0"});
}

TEST(ValidateMessages, EndsMustAgree) {
  const auto pair = [](int to, int from, std::int64_t received_bytes) {
    ScheduleBuilder builder({1, 3, 1});
    builder.AddSend(0, Stream::kForwardSend, to, 5, builder.AddTransfer("edge", 8, 0));
    builder.AddReceive(1, Stream::kForwardReceive, from, 5,
                       builder.AddTransfer("edge", received_bytes, 0));
    return builder.Take();
  };
  EXPECT_TRUE(Validate(pair(1, 0, 8)).ok());
  ExpectRefused(pair(2, 0, 8), {"stage 0 (rank 0), operation 0",
                                "peer_stage: message 5 is received "
                                "by stage 1 (rank 1)"});
  ExpectRefused(pair(1, 2, 8),
                {"stage 1 (rank 1), operation 0", "peer_stage: message 5 is sent by stage 0"});
  ExpectRefused(pair(1, 0, 9), {"stage 1 (rank 1), operation 0", "work: expects 9 bytes",
                                "sends 8 bytes (fixed 0 ps) as message 5"});
}

TEST(ValidateCollectives, MembersMustAgree) {
  const auto make = [](CollectiveKind kind, std::int64_t bytes, int more) {
    ScheduleBuilder builder({1, 2, 1});
    const auto group = builder.AddGroup("model", false, true, true);
    const Tag tag = PhaseTag(Phase::kGradientSync);
    const auto norm = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 4, group);
    builder.AddCollective(0, Stream::kDataParallel, tag, norm);
    builder.AddCollective(1, Stream::kDataParallel, tag,
                          builder.AddCollectiveWork(kind, bytes, group));
    for (int i = 0; i < more; ++i) builder.AddCollective(1, Stream::kDataParallel, tag, norm);
    return builder.Take();
  };
  EXPECT_TRUE(Validate(make(CollectiveKind::kAllReduce, 4, 0)).ok());
  ExpectRefused(
      make(CollectiveKind::kAllGather, 4, 0),
      {"stage 1 (rank 1), operation 0 (gradient_sync all_gather)",
       "is collective 1 over group 'model', all_gather of 4 bytes",
       "stage 0 (rank 0), operation 0 (gradient_sync all_reduce) issues all_reduce of 4"});
  ExpectRefused(make(CollectiveKind::kAllReduce, 8, 0), {"all_reduce of 8 bytes"});
  ExpectRefused(make(CollectiveKind::kAllReduce, 4, 1),
                {"group 'model': stage 1 (rank 1) issues 2 collectives, stage 0 issues 1"});
}

}  // namespace
}  // namespace optimus::ir
