// A small multimodal LLM trained by Schedules, in one process and in random orders: its losses and
// gradients are those of the reference, whatever the strategy.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics_testing.h"

namespace optimus {
namespace {

using testing::CaseOf;
using testing::Encoder;
using testing::ExpectLearnsTheSame;
using testing::ExperimentOf;
using testing::Llm;
using testing::NumericsCase;
using testing::TwoEncoders;
using testing::Vit;

constexpr char kMegatron[] = "schedule: ONE_F_ONE_B layout: ENCODER_IN_STAGE_0 ";
constexpr char kEqual[] = "schedule: ONE_F_ONE_B layout: EQUAL_LAYERS allow_uneven: true ";
constexpr char kBalanced[] = "schedule: ONE_F_ONE_B layout: BALANCED ";
constexpr char kInterleaved[] =
    "schedule: INTERLEAVED model_chunks: 2 layout: EQUAL_LAYERS allow_uneven: true ";
constexpr char kFull[] = "recompute: RECOMPUTE_FULL ";

// --- one pipeline --------------------------------------------------------------------------------

TEST(Pipeline, OneRank) { ExpectLearnsTheSame(CaseOf(1, 1, 1, kMegatron)); }
TEST(Pipeline, PipelineParallel) { ExpectLearnsTheSame(CaseOf(1, 2, 1, kMegatron)); }
TEST(Pipeline, TensorParallel) { ExpectLearnsTheSame(CaseOf(1, 1, 2, kMegatron)); }
TEST(Pipeline, DataParallel) { ExpectLearnsTheSame(CaseOf(2, 1, 1, kMegatron)); }
TEST(Pipeline, AllThree) { ExpectLearnsTheSame(CaseOf(2, 2, 2, kMegatron)); }
TEST(Pipeline, EqualLayers) { ExpectLearnsTheSame(CaseOf(1, 2, 2, kEqual)); }
TEST(Pipeline, Balanced) { ExpectLearnsTheSame(CaseOf(2, 2, 2, kBalanced)); }
TEST(Pipeline, GPipe) {
  ExpectLearnsTheSame(CaseOf(1, 3, 1, "schedule: GPIPE layout: EQUAL_LAYERS "));
}
TEST(Pipeline, Interleaved) { ExpectLearnsTheSame(CaseOf(2, 2, 2, kInterleaved)); }
TEST(Pipeline, InterleavedDeferred) {
  ExpectLearnsTheSame(CaseOf(1, 2, 1, absl::StrCat(kInterleaved, "warm_up: DEFERRED ")));
}
TEST(Pipeline, RefusesWhatItCannotFollowInOneLine) {
  const auto refusal = [](const std::string& plan, int data_parallel = 1) {
    const step::Experiment experiment = ExperimentOf(CaseOf(data_parallel, 2, 1, plan));
    const auto schedule = testing::ScheduleOf(experiment);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    const auto model = testing::ModelOf(experiment);
    const absl::Status status = testing::Train(*schedule, *model, 0, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return std::string(status.message());
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  const std::string even = "layout: EQUAL_LAYERS allow_uneven: true schedule: ";
  // One copy of every layer a direction, and nothing that sums their gradients.
  EXPECT_THAT(refusal(even + "DUALPIPE no_optimizer: true"),
              AllOf(HasSubstr("reduces the gradient of"), HasSubstr("over its 2 copies")));
  EXPECT_THAT(refusal(even + "ZB_H1 no_optimizer: true"), HasSubstr("remove no_optimizer"));
  EXPECT_THAT(refusal(absl::StrCat(even, "ONE_F_ONE_B dp_communication: DP_OVERLAPPED ",
                                   "dp_bucket_parameters: 1"),
                      /*data_parallel=*/2),
              HasSubstr("remove plan.dp_bucket_parameters"));
}

TEST(Pipeline, OverlappedDataParallel) {
  ExpectLearnsTheSame(
      CaseOf(2, 2, 1, absl::StrCat(kInterleaved, "dp_communication: DP_OVERLAPPED ")));
}
TEST(Pipeline, FullRecompute) { ExpectLearnsTheSame(CaseOf(1, 2, 2, absl::StrCat(kEqual, kFull))); }
TEST(Pipeline, SelectiveRecompute) {
  ExpectLearnsTheSame(CaseOf(1, 2, 2, absl::StrCat(kEqual, "recompute: RECOMPUTE_SELECTIVE ")));
}
TEST(Pipeline, WithoutSequenceParallelism) {
  ExpectLearnsTheSame(CaseOf(2, 2, 2, absl::StrCat(kEqual, kFull, "no_sequence_parallel: true ")));
}
TEST(Pipeline, WithoutDistributedOptimizer) {
  ExpectLearnsTheSame(CaseOf(2, 2, 2, absl::StrCat(kEqual, "no_distributed_optimizer: true ")));
}
TEST(Pipeline, Unfused) {
  ExpectLearnsTheSame(
      CaseOf(1, 2, 2, absl::StrCat(kEqual, "unfused_attention: true unfused_elementwise: true ")));
  ExpectLearnsTheSame(CaseOf(1, 1, 2,
                             absl::StrCat(kEqual,
                                          "unfused_attention: true unfused_elementwise: "
                                          "true recompute: RECOMPUTE_SELECTIVE ")));
  ExpectLearnsTheSame(CaseOf(
      1, 1, 1, absl::StrCat(kEqual, kFull, "unfused_attention: true unfused_elementwise: true ")));
}

TEST(Pipeline, TwoEncoders) {
  for (const char* plan : {kMegatron, kEqual, kInterleaved}) {
    NumericsCase its = CaseOf(1, 2, 2, plan);
    its.encoders = TwoEncoders();
    ExpectLearnsTheSame(its);
  }
}

TEST(Pipeline, FrozenEncoder) {
  NumericsCase its = CaseOf(2, 2, 2, absl::StrCat(kEqual, kFull));
  its.encoders = {Encoder(Vit(), "frozen: true")};
  ExpectLearnsTheSame(its);
  its.encoders = TwoEncoders("", "frozen: true");
  ExpectLearnsTheSame(its);
}

// Grouped queries (fewer key/value heads than ranks), SwiGLU, RMS norm, tied embeddings, no biases,
// no positions.
TEST(Pipeline, OtherModel) {
  NumericsCase its = CaseOf(2, 2, 4, kInterleaved);
  its.llm =
      Llm("num_query_groups: 2 activation: SWIGLU norm: RMS_NORM tied_embeddings: true "
          "linear_bias: false max_position_embeddings: 0");
  ExpectLearnsTheSame(its);
  its = CaseOf(2, 1, 1, kMegatron);
  its.llm = Llm("tied_embeddings: true");
  ExpectLearnsTheSame(its);
}

TEST(Pipeline, Alpa) { ExpectLearnsTheSame(CaseOf(2, 2, 2, "strategy: ALPA ")); }
TEST(Pipeline, Fsdp) {
  NumericsCase its = CaseOf(4, 1, 1, "strategy: FSDP ");
  its.encoders = TwoEncoders("", "frozen: true");
  ExpectLearnsTheSame(its);
  its.plan += "fsdp { prefetch: 2 } recompute: RECOMPUTE_FULL ";
  ExpectLearnsTheSame(its);
}

// --- Optimus -------------------------------------------------------------------------------------

NumericsCase OptimusCase(int dp, int pp, int tp, const std::string& plan,
                         const std::string& optimus) {
  return CaseOf(dp, pp, tp,
                absl::StrCat("strategy: OPTIMUS schedule: ONE_F_ONE_B ", plan, " optimus { ",
                             optimus, " } "));
}
std::string EncoderPlan(int pp, int tp) {
  return absl::StrCat("encoder_plans { pipeline_parallel: ", pp, " tensor_parallel: ", tp, " } ");
}

TEST(Optimus, PipelineParallel) {
  for (const char* scheduler : {"scheduler: PAPER ", "scheduler: LIST "}) {
    for (const int pp : {1, 2}) {
      ExpectLearnsTheSame(OptimusCase(1, 2, 1, "", scheduler + EncoderPlan(pp, 1)));
    }
  }
}
TEST(Optimus, Searched) {
  ExpectLearnsTheSame(OptimusCase(1, 2, 2, "", "scheduler: PAPER "));
  ExpectLearnsTheSame(OptimusCase(2, 2, 2, "", "scheduler: LIST "));
}
TEST(Optimus, AllThree) {
  for (const char* scheduler : {"scheduler: PAPER ", "scheduler: LIST "}) {
    for (const int pp : {1, 2}) {
      ExpectLearnsTheSame(OptimusCase(2, 2, 2, "", scheduler + EncoderPlan(pp, 2)));
    }
  }
}
TEST(Optimus, EncoderTensorParallelismBelowTheLlms) {
  for (const char* scheduler : {"scheduler: PAPER ", "scheduler: LIST "}) {
    for (const char* plan : {"", "no_sequence_parallel: true "}) {
      ExpectLearnsTheSame(OptimusCase(1, 2, 2, plan, scheduler + EncoderPlan(2, 1)), 1);
      ExpectLearnsTheSame(OptimusCase(2, 2, 2, plan, scheduler + EncoderPlan(1, 1)), 1);
      ExpectLearnsTheSame(OptimusCase(1, 2, 4, plan, scheduler + EncoderPlan(1, 2)), 1);
      ExpectLearnsTheSame(OptimusCase(1, 2, 4, plan, scheduler + EncoderPlan(2, 1)), 1);
    }
  }
}
TEST(Optimus, Interleaved) {
  NumericsCase its = CaseOf(1, 2, 2,
                            "strategy: OPTIMUS schedule: INTERLEAVED model_chunks: 2 recompute: "
                            "RECOMPUTE_FULL optimus { scheduler: LIST }");
  ExpectLearnsTheSame(its);
  its.plan =
      "strategy: OPTIMUS schedule: INTERLEAVED model_chunks: 2 warm_up: DEFERRED "
      "dp_communication: DP_OVERLAPPED optimus { scheduler: PAPER }";
  its.dp = 2;
  ExpectLearnsTheSame(its);
}
// Several slices, so that messages between encoder stages are messages of slices.
TEST(Optimus, Slices) {
  for (const char* scheduler : {"scheduler: PAPER ", "scheduler: LIST "}) {
    NumericsCase its = OptimusCase(1, 2, 2, kFull, scheduler + EncoderPlan(2, 2));
    its.encoders = {absl::StrCat("model: \"", Vit(),
                                 "\" sequences_per_sample: 2 sequence_length: 8 "
                                 "sequences_per_slice: 1 ")};
    ExpectLearnsTheSame(its);
  }
}
TEST(Optimus, EncoderDataParallel) {
  for (const char* kind : {"ENCODER_DP_EXPOSED", "ENCODER_DP_LAYERWISE"}) {
    for (const char* plan : {"", "no_distributed_optimizer: true "}) {
      ExpectLearnsTheSame(OptimusCase(
          2, 2, 2, plan,
          absl::StrCat("scheduler: LIST encoder_data_parallel: ", kind, " ", EncoderPlan(1, 1))));
    }
  }
}
TEST(Optimus, TwoEncodersAndFrozen) {
  for (const char* scheduler : {"scheduler: PAPER ", "scheduler: LIST "}) {
    NumericsCase its =
        OptimusCase(1, 2, 4, "", absl::StrCat(scheduler, EncoderPlan(2, 2), EncoderPlan(1, 1)));
    its.encoders = TwoEncoders();
    ExpectLearnsTheSame(its, 1);
    its =
        OptimusCase(2, 2, 2, kFull, absl::StrCat(scheduler, EncoderPlan(2, 1), EncoderPlan(2, 2)));
    its.encoders = TwoEncoders("frozen: true", "");
    ExpectLearnsTheSame(its, 1);
  }
}
TEST(Optimus, MicroBatchesWithoutInput) {
  NumericsCase its = OptimusCase(2, 2, 2, "", "scheduler: LIST ");
  its.encoders = TwoEncoders("micro_batches_without_input: 1 micro_batches_without_input: 2",
                             "micro_batches_without_input: 0");
  ExpectLearnsTheSame(its);
}

}  // namespace
}  // namespace optimus
