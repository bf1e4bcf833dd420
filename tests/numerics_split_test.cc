// Weight gradients apart from data gradients (zero bubble), pipelines that turn on a stage (V) or
// go in two directions: what is learnt is the same, and what is kept meanwhile is what the plan
// says.

#include <fstream>
#include <string>
#include <vector>

#include "base/testing_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/accounting.h"
#include "schedule/step/memory.h"
#include "tests/numerics_testing.h"

namespace optimus {
namespace {

using testing::CaseOf;
using testing::ExpectLearnsTheSame;
using testing::ExperimentOf;
using testing::Llm;
using testing::NumericsCase;
using testing::TwoEncoders;

constexpr char kEven[] = "layout: EQUAL_LAYERS allow_uneven: true schedule: ";

NumericsCase SplitCase(int dp, int pp, int tp, const std::string& plan, int micro_batches = 4) {
  NumericsCase its = CaseOf(dp, pp, tp, absl::StrCat(kEven, plan, " "));
  its.micro_batches = micro_batches;
  return its;
}

class EverySchedule : public ::testing::TestWithParam<const char*> {};

TEST_P(EverySchedule, LearnsTheSame) {
  ExpectLearnsTheSame(SplitCase(1, 2, 1, GetParam(), /*micro_batches=*/6));
}
TEST_P(EverySchedule, WithTensorAndDataParallelism) {
  ExpectLearnsTheSame(SplitCase(2, 2, 2, GetParam()), 1);
}
TEST_P(EverySchedule, OnFourStages) {
  NumericsCase its = SplitCase(1, 4, 1, GetParam(), 8);
  its.llm = Llm("num_layers: 6");
  ExpectLearnsTheSame(its, 1);
}

INSTANTIATE_TEST_SUITE_P(WeightGradientsApart, EverySchedule,
                         ::testing::Values("ZB_H1", "ZB_H2", "ZB_1P", "ZB_2P", "ZB_V", "DUALPIPE",
                                           "DUALPIPE_V"),
                         [](const auto& info) { return std::string(info.param); });

// --- with everything else ------------------------------------------------------------------------

class EveryPlacement : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string With(const std::string& more) { return absl::StrCat(GetParam(), " ", more); }
};

TEST_P(EveryPlacement, Recompute) {
  for (const char* recompute : {"RECOMPUTE_FULL", "RECOMPUTE_SELECTIVE"}) {
    ExpectLearnsTheSame(SplitCase(1, 2, 2, With(absl::StrCat("recompute: ", recompute))), 1);
  }
}
TEST_P(EveryPlacement, Unfused) {
  const std::string unfused = "unfused_attention: true unfused_elementwise: true ";
  ExpectLearnsTheSame(SplitCase(1, 2, 2, With(unfused)), 1);
  ExpectLearnsTheSame(SplitCase(1, 2, 1, With(unfused + "recompute: RECOMPUTE_SELECTIVE")), 1);
}
TEST_P(EveryPlacement, WithoutSequenceParallelism) {
  ExpectLearnsTheSame(SplitCase(1, 2, 2, With("no_sequence_parallel: true")), 1);
}
TEST_P(EveryPlacement, DataParallel) {
  ExpectLearnsTheSame(SplitCase(2, 2, 1, With("dp_communication: DP_OVERLAPPED")), 1);
  ExpectLearnsTheSame(SplitCase(2, 2, 1, With("no_distributed_optimizer: true")), 1);
}
TEST_P(EveryPlacement, OtherModel) {
  NumericsCase its = SplitCase(2, 2, 2, With("dp_communication: DP_OVERLAPPED"));
  its.llm =
      Llm("num_query_groups: 1 activation: SWIGLU norm: RMS_NORM tied_embeddings: true "
          "linear_bias: false max_position_embeddings: 0");
  ExpectLearnsTheSame(its, 1);
}
TEST_P(EveryPlacement, TwoEncodersAndFrozen) {
  NumericsCase its = SplitCase(1, 2, 2, GetParam());
  its.encoders = TwoEncoders();
  ExpectLearnsTheSame(its, 1);
  its.encoders = TwoEncoders("frozen: true", "");
  ExpectLearnsTheSame(its, 1);
}

INSTANTIATE_TEST_SUITE_P(WeightGradientsApart, EveryPlacement,
                         ::testing::Values("ZB_H1", "ZB_V", "DUALPIPE"),
                         [](const auto& info) { return std::string(info.param); });

// Encoders in what the LLM's schedule leaves idle.
TEST(WeightGradientsApart, Optimus) {
  for (const char* scheduler : {"PAPER", "LIST"}) {
    for (const char* schedule : {"ZB_H1", "ZB_V"}) {
      for (const int pp : {1, 2}) {
        ExpectLearnsTheSame(CaseOf(1, 2, 2,
                                   absl::StrCat("strategy: OPTIMUS schedule: ", schedule,
                                                " optimus { scheduler: ", scheduler,
                                                " encoder_plans { pipeline_parallel: ", pp,
                                                " tensor_parallel: 2 } } ")),
                            1);
      }
    }
  }
}

// --- orders from files ---------------------------------------------------------------------------

class FromFile : public ::testing::Test {
 protected:
  NumericsCase CaseOfCsv(const std::string& csv, int pp, int chunks, int micro_batches) {
    const std::string path = (folder_.path() / "order.csv").string();
    std::ofstream(path) << csv;
    return SplitCase(1, pp, 1,
                     absl::StrCat("CUSTOM model_chunks: ", chunks, " schedule_file: '", path, "'"),
                     micro_batches);
  }
  const TestingFolder folder_;
};

TEST_F(FromFile, WeightGradientsAtTheEnd) {
  ExpectLearnsTheSame(
      CaseOfCsv("0F0,0F1,,0I0,,0I1,0W1,0W0\n"
                ",1F0,1I0,1F1,1I1,1W0,1W1,\n",
                2, 1, 2));
}
TEST_F(FromFile, SomeWholeSomeApart) {
  ExpectLearnsTheSame(
      CaseOfCsv("0F0,0F1,2F0,2F1,2I0,2B1,0B0,2W0,0I1,0W1\n"
                ",1F0,1F1,3F0,3B0,3F1,3I1,1I0,1B1,1W0,3W1\n",
                2, 2, 2));
}
TEST_F(FromFile, VOfWholeBackwards) {
  ExpectLearnsTheSame(CaseOfCsv("0F0,,,3F0,3B0,,,0B0\n,1F0,2F0,,,2B0,1B0,\n", 2, 2, 1));
}
// The head's chunk is reduced before the embedding, which holds the same weight, has its gradient.
TEST_F(FromFile, VWithTiedEmbeddings) {
  NumericsCase its = CaseOfCsv("0F0,,,3F0,3B0,,,0B0\n,1F0,2F0,,,2B0,1B0,\n", 2, 2, 1);
  its.dp = 2;
  its.plan += " dp_communication: DP_OVERLAPPED ";
  its.llm = Llm("tied_embeddings: true");
  its.encoders.clear();
  ExpectLearnsTheSame(its);
}
TEST_F(FromFile, VOfThreeTurns) {
  NumericsCase its = CaseOfCsv(
      "0F0,,,3F0,4F0,,,7F0,7I0,7W0,,4I0,3I0,,,0I0,0W0,3W0,4W0\n"
      ",1F0,2F0,,,5F0,6F0,,6I0,5B0,,,,2I0,1I0,6W0,2W0,1W0,\n",
      2, 4, 1);
  its.llm = Llm("num_layers: 6");
  ExpectLearnsTheSame(its);
}

// --- what is kept --------------------------------------------------------------------------------

// An LLM without tensor parallelism: there the plan counts whole inputs, as they are kept here.
NumericsCase LlmAlone(int pp, const std::string& plan) {
  NumericsCase its = CaseOf(1, pp, 1, absl::StrCat("schedule: ", plan, " layout: EQUAL_LAYERS "));
  its.micro_batches = 8;
  its.encoders.clear();
  return its;
}

absl::StatusOr<std::vector<executor::NumericsReport::Memory>> MemoryOf(const NumericsCase& its) {
  const step::Experiment experiment = ExperimentOf(its);
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Schedule schedule, testing::ScheduleOf(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const executor::NumericsModel model, testing::ModelOf(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const executor::NumericsReport report,
                           testing::Train(schedule, model, 1));
  return report.memory;
}

// By rank: what schedule/step/memory.h counts for weight gradients along the order, in f32 instead
// of bf16.
std::vector<std::int64_t> CountedForWeights(const NumericsCase& its) {
  const step::Experiment experiment = ExperimentOf(its);
  const hw::ProfileCostModel costs = step::testing::Costs();
  const auto step = step::BuildStep(experiment, costs);
  const auto model = testing::ModelOf(experiment);
  EXPECT_TRUE(step.ok()) << step.status();
  const pipeline::Order& order = *step->order;
  models::LayerShape shape;
  shape.sequences = model->micro_batch;
  shape.sequence_length = model->sequence_length;
  const int parts = pipeline::VirtualStageCount(order.placement, order.stages, order.chunks);
  const Bytes layers =
      models::LayerWeightGradientBytes(model->llm, shape) * (model->llm.num_layers() / parts);
  const Bytes head = models::HeadWeightGradientBytes(model->llm, shape);
  std::vector<std::int64_t> counted;
  for (std::size_t stage = 0; stage < order.slots.size(); ++stage) {
    std::vector<step::KeptBytes> by_chunk;
    for (int chunk = 0; chunk < order.chunks; ++chunk) {
      pipeline::Slot slot;
      slot.chunk = chunk;
      const bool last = pipeline::VirtualStageOf(order, stage, slot) + 1 == parts;
      by_chunk.push_back({Bytes(0), last ? layers + head : layers});
    }
    counted.push_back(2 * step::PeakActivations(order.slots[stage], by_chunk).value());
  }
  return counted;
}

void ExpectWhatThePlanCounts(const NumericsCase& its) {
  const auto memory = MemoryOf(its);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::vector<std::int64_t> counted = CountedForWeights(its);
  ASSERT_EQ(memory->size(), counted.size());
  for (std::size_t rank = 0; rank < counted.size(); ++rank) {
    EXPECT_EQ((*memory)[rank].weight_gradient_bytes, counted[rank]) << its.plan << rank;
    EXPECT_GT((*memory)[rank].tensor_bytes, counted[rank]) << its.plan << rank;
  }
}

TEST(KeptForWeightGradients, IsWhatThePlanCounts) {
  for (const char* schedule :
       {"ONE_F_ONE_B", "ZB_H1", "ZB_H2", "ZB_1P", "ZB_2P", "ZB_H2 recompute: RECOMPUTE_FULL"}) {
    ExpectWhatThePlanCounts(LlmAlone(4, schedule));
  }
  for (const char* schedule : {"ZB_V", "DUALPIPE", "DUALPIPE_V", "INTERLEAVED model_chunks: 2"}) {
    ExpectWhatThePlanCounts(LlmAlone(2, schedule));
  }
}

}  // namespace
}  // namespace optimus
