#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGood[] = R"(name: "t"
llm: "gpt-11b"
encoders { model: "vit-5b" sequences_per_sample: 4 sequence_length: 2048 sequences_per_slice: 2 }
hardware { profile: "h100-80gb" gpus: 64 }
batch { global_batch: 32 micro_batch: 2 sequence_length: 2048 }
plan {
  data_parallel: 2
  pipeline_parallel: 4
  tensor_parallel: 8
  model_chunks: 2
  schedule: INTERLEAVED
  layout: EQUAL_LAYERS
  recompute: RECOMPUTE_FULL
}
)";

std::string WriteTemporary(const std::string& name, const std::string& text) {
  // Tests run in parallel, one process each.
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("optimus_load_", getpid());
  std::filesystem::create_directories(directory);
  std::string path = (directory / name).string();
  std::ofstream(path) << text;
  return path;
}

absl::StatusOr<Experiment> LoadText(const std::string& text) {
  const std::string path = WriteTemporary("load_test.textproto", text);
  auto result = LoadExperiment(path);
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  return result;
}

TEST(LoadExperiment, FillsDefaults) {
  const auto experiment = LoadText(kGood);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->hardware().cluster_gpus(), 64);
  EXPECT_EQ(experiment->hardware().nodes_per_leaf(), 32);
  EXPECT_EQ(experiment->hardware().oversubscription(), 1);
  EXPECT_EQ(experiment->plan().micro_batch_group(), 4);
  EXPECT_EQ(MicroBatches(*experiment), 8);
}

TEST(LoadExperiment, SliceDefaultsToTheWholeMicroBatch) {
  const auto experiment = LoadText(absl::StrReplaceAll(
      kGood, {{"sequences_per_slice: 2", ""}, {"model_chunks: 2", "model_chunks: 4"}}));
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->encoders(0).sequences_per_slice(), 8);
  EXPECT_EQ(experiment->plan().model_chunks(), 4);
}

struct BadInput {
  const char* replaced;
  const char* by;
  const char* field;
  const char* hint;
};

void PrintTo(const BadInput& input, std::ostream* out) { *out << input.by; }

class LoadExperimentRefuses : public ::testing::TestWithParam<BadInput> {};

TEST_P(LoadExperimentRefuses, InOneLineWithFileFieldAndHint) {
  const BadInput& bad = GetParam();
  const std::string text = absl::StrReplaceAll(kGood, {{bad.replaced, bad.by}});
  ASSERT_NE(text, kGood) << "the case changes nothing";
  const auto result = LoadText(text);
  ASSERT_FALSE(result.ok());
  const std::string message(result.status().message());
  EXPECT_THAT(message, HasSubstr("load_test.textproto"));
  EXPECT_THAT(message, HasSubstr(bad.field));
  EXPECT_THAT(message, HasSubstr(bad.hint));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, LoadExperimentRefuses,
    ::testing::Values(
        BadInput{"gpus: 64", "gpus: 63", "hardware.gpus: 63", "2 * 4 * 8"},
        BadInput{"gpus: 64", "gpus: 0", "hardware.gpus", "1 or more"},
        BadInput{"gpus: 64", "gpus: 64 cluster_gpus: 32", "hardware.cluster_gpus", "32"},
        BadInput{"gpus: 64", "gpus: 64 cluster_gpus: -1", "hardware.cluster_gpus", "-1"},
        BadInput{"gpus: 64", "gpus: 64 oversubscription: 0.5", "hardware.oversubscription", "1 :"},
        BadInput{"gpus: 64", "gpus: 64 oversubscription: nan", "hardware.oversubscription", "1 :"},
        BadInput{"gpus: 64", "gpus: 64 oversubscription: inf", "hardware.oversubscription",
                 "at most"},
        BadInput{"gpus: 64", "gpus: 64 oversubscription: 1.1e6", "hardware.oversubscription",
                 "at most 1e+06"},
        BadInput{"gpus: 64", "gpus: 64 slow_gpus { rank: 3 factor: 1001 }",
                 "hardware.slow_gpus[0].factor: is 1001", "at most 1000"},
        BadInput{"gpus: 64", "gpus: 64 slow_gpus { rank: 3 factor: nan }",
                 "hardware.slow_gpus[0].factor: is nan", "above 0"},
        BadInput{"gpus: 64", "gpus: 64 nodes_per_leaf: -2", "hardware.nodes_per_leaf", "1 or more"},
        BadInput{"gpus: 64", "gpus: 64 slow_gpus { rank: 64 factor: 2 }",
                 "hardware.slow_gpus[0].rank", "0 to 63"},
        BadInput{"gpus: 64", "gpus: 64 slow_gpus { rank: -1 factor: 2 }",
                 "hardware.slow_gpus[0].rank", "0 to 63"},
        BadInput{"gpus: 64", "gpus: 64 slow_gpus { rank: 3 }", "hardware.slow_gpus[0].factor",
                 "above 0"},
        BadInput{"gpus: 64",
                 "gpus: 64 slow_gpus { rank: 3 factor: 2 } slow_gpus { rank: 3 factor: 3 }",
                 "hardware.slow_gpus[1].rank", "twice"},
        BadInput{"data_parallel: 2", "data_parallel: 0", "plan.data_parallel", "1 or more"},
        BadInput{"pipeline_parallel: 4", "pipeline_parallel: -4", "plan.pipeline_parallel",
                 "1 or more"},
        BadInput{"tensor_parallel: 8", "", "plan.tensor_parallel", "1 or more"},
        BadInput{"tensor_parallel: 8", "tensor_parallel: 2000000000", "hardware.gpus",
                 "2000000000"},
        BadInput{"model_chunks: 2", "model_chunks: -2", "plan.model_chunks", "1 or more"},
        BadInput{"model_chunks: 2", "model_chunks: 20000", "plan.model_chunks", "at most"},
        BadInput{"global_batch: 32", "global_batch: 30", "batch.global_batch", "multiple"},
        BadInput{"global_batch: 32", "global_batch: -32", "batch.global_batch", "1 or more"},
        BadInput{"global_batch: 32", "global_batch: 2000000000", "batch.global_batch",
                 "larger micro-batches"},
        BadInput{"micro_batch: 2 ", "micro_batch: 0 ", "batch.micro_batch", "1 or more"},
        BadInput{"micro_batch: 2 sequence_length: 2048", "micro_batch: 2 sequence_length: 0",
                 "batch.sequence_length", "1 or more"},
        BadInput{"micro_batch: 2 sequence_length: 2048",
                 "micro_batch: 2 sequence_length: 9223372036854775800",
                 "batch.sequence_length: 9223372036854775800", "tokens a step"},
        BadInput{"micro_batch: 2 sequence_length: 2048",
                 "micro_batch: 2 sequence_length: 17179869184",
                 "batch.sequence_length: model 'gpt-11b'", "too large"},
        BadInput{"micro_batch: 2 sequence_length: 2048", "micro_batch: 2 sequence_length: 2047",
                 "batch.sequence_length", "sequence"}));

INSTANTIATE_TEST_SUITE_P(
    Models, LoadExperimentRefuses,
    ::testing::Values(
        BadInput{"\"gpt-11b\"", "\"gpt-12b\"", "llm: unknown model", "gpt-175b"},
        BadInput{"llm: \"gpt-11b\"", "", "llm: is missing", "profiled"},
        BadInput{"\"gpt-11b\"", "\"vit-5b\"", "llm:", "encoder"},
        BadInput{"\"gpt-11b\"", "\"nowhere/model.textproto\"", "llm:", "nowhere/model.textproto"},
        BadInput{"\"vit-5b\"", "\"vit-6b\"", "encoders[0].model: unknown model", "vit-22b"},
        BadInput{"\"vit-5b\"", "\"\"", "encoders[0].model: is missing", "vit-22b"},
        BadInput{"\"vit-5b\"", "\"gpt-11b\"", "encoders[0].model", "vocabulary"},
        BadInput{"\"vit-5b\"", "\"vit-3b\"", "encoders[0].model", "num_attention_heads 18"},
        BadInput{"\"h100-80gb\"", "\"h200\"", "hardware.profile", "a100-80gb"},
        BadInput{"profile: \"h100-80gb\"", "", "hardware.profile: is missing", "h100-80gb"},
        BadInput{"sequences_per_sample: 4", "sequences_per_sample: 0",
                 "encoders[0].sequences_per_sample", "1 or more"},
        BadInput{"4 sequence_length: 2048", "4 sequence_length: -1", "encoders[0].sequence_length",
                 "1 or more"},
        BadInput{"sequences_per_slice: 2", "sequences_per_slice: 3",
                 "encoders[0].sequences_per_slice", "does not divide the 8 sequences"},
        BadInput{"sequences_per_slice: 2", "sequences_per_slice: -2",
                 "encoders[0].sequences_per_slice", "leave it out to run the whole micro-batch"},
        BadInput{"sequences_per_sample: 4", "sequences_per_sample: 8194",
                 "encoders[0].sequences_per_slice: 2 cuts the 16388 sequences",
                 "8194 slices, more than 4096"},
        BadInput{"4 sequence_length: 2048", "4 sequence_length: 9000000000000000000",
                 "encoders[0].sequence_length", "tokens a step"},
        BadInput{"llm: \"gpt-11b\"", "llm: \"gpt-11b\" profiled { forward_ms: 1 backward_ms: 2 }",
                 "plan.layout", "profiled"}));

INSTANTIATE_TEST_SUITE_P(
    Plans, LoadExperimentRefuses,
    ::testing::Values(
        BadInput{"schedule: INTERLEAVED", "", "plan.schedule: is missing", "ONE_F_ONE_B"},
        BadInput{"schedule: INTERLEAVED", "schedule: 99", "plan.schedule: unknown value 99",
                 "INTERLEAVED"},
        BadInput{"layout: EQUAL_LAYERS", "layout: 99", "plan.layout: unknown value 99", "BALANCED"},
        BadInput{"RECOMPUTE_FULL", "99", "plan.recompute: unknown value 99", "RECOMPUTE_NONE"},
        BadInput{"recompute: RECOMPUTE_FULL", "warm_up: -1", "plan.warm_up: unknown value -1",
                 "DEFERRED"},
        BadInput{"recompute: RECOMPUTE_FULL", "dp_communication: 2",
                 "plan.dp_communication: unknown value 2", "DP_OVERLAPPED"},
        BadInput{"schedule: INTERLEAVED", "schedule: ONE_F_ONE_B", "plan.model_chunks",
                 "only INTERLEAVED"},
        BadInput{"model_chunks: 2", "model_chunks: 1", "plan.model_chunks", "ONE_F_ONE_B"},
        BadInput{"model_chunks: 2\n  schedule: INTERLEAVED", "schedule: GPIPE micro_batch_group: 4",
                 "plan.micro_batch_group", "remove"},
        BadInput{"model_chunks: 2\n  schedule: INTERLEAVED", "schedule: GPIPE warm_up: BEST",
                 "plan.warm_up", "remove"},
        BadInput{"model_chunks: 2", "model_chunks: 2 micro_batch_group: 3",
                 ": plan.micro_batch_group: 3", "[4, 8]"},
        BadInput{"global_batch: 32", "global_batch: 40", ": plan.micro_batch_group: 10 micro",
                 "allowed"},
        BadInput{"global_batch: 32", "global_batch: 8", ": batch.global_batch: micro-batches: 2",
                 "at least one micro-batch per pipeline stage"},
        BadInput{"layout: EQUAL_LAYERS", "", "plan.layout: is missing", "BALANCED"},
        BadInput{"model_chunks: 2", "model_chunks: 5", "plan.layout", "128"},
        BadInput{"layout: EQUAL_LAYERS", "layout: EXPLICIT", "plan.layout_string: is missing", "|"},
        BadInput{"layout: EQUAL_LAYERS", "layout: EQUAL_LAYERS layout_string: \"Et|tL\"",
                 "plan.layout_string: is set", "EXPLICIT"},
        BadInput{"layout: EQUAL_LAYERS", "layout: EXPLICIT layout_string: \"Et?|tL\"",
                 "plan.layout_string", "?"},
        BadInput{"layout: EQUAL_LAYERS", "layout: EXPLICIT layout_string: \"Et|tL\"",
                 "plan.layout_string: 2 stages", "8"},
        BadInput{"layout: EQUAL_LAYERS", "layout: LAYER_COUNTS", "plan.layer_counts: is missing",
                 "per virtual stage"},
        BadInput{"layout: EQUAL_LAYERS", "layout: LAYER_COUNTS layer_counts: [64, 64]",
                 "plan.layer_counts: 2 counts", "8"},
        BadInput{"layout: EQUAL_LAYERS",
                 "layout: LAYER_COUNTS layer_counts: [16, 16, 16, 16, 16, 16, 16, 15]",
                 "plan.layer_counts", "128"},
        BadInput{"layout: EQUAL_LAYERS", "layout: EQUAL_LAYERS layer_counts: [128]",
                 "plan.layer_counts: is set", "LAYER_COUNTS"}));

// 5242880 * 1024 sequences are 5 * 2^30: in 32 bits they were 5 slices of 2^30.
TEST(LoadExperiment, DoesNotWrapTheSequencesOfAMicroBatch) {
  const std::string text = absl::StrReplaceAll(
      kGood, {{"sequences_per_slice: 2", ""},
              {"sequences_per_sample: 4 sequence_length: 2048",
               "sequences_per_sample: 5242880 sequence_length: 8"},
              {"global_batch: 32 micro_batch: 2", "global_batch: 16384 micro_batch: 1024"}});
  const auto result = LoadText(text);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("encoders[0].sequences_per_sample: 5242880 * micro_batch 1024 = 5368709120 "
                        "sequences do not fit 32 bits"));
}

TEST(LoadExperiment, RefusesMoreEncodersThanTagsCount) {
  std::string many;
  for (int i = 0; i < 64; ++i) {
    many += "encoders { model: \"vit-5b\" sequences_per_sample: 1 sequence_length: 8 }\n";
  }
  const auto result = LoadText(kGood + many);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("encoders: there are 65"));
}

TEST(LoadExperiment, RefusesEncoderLayoutWithoutEncoder) {
  const std::string text =
      std::regex_replace(absl::StrReplaceAll(kGood, {{"EQUAL_LAYERS", "ENCODER_IN_STAGE_0"}}),
                         std::regex("encoders.*\n"), "");
  const auto result = LoadText(text);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("plan.layout: ENCODER_IN_STAGE_0"));
}

TEST(LoadExperiment, RefusesBadProfiledStages) {
  const std::string good = R"(profiled { forward_ms: 1 backward_ms: 2 }
    hardware { profile: "h100-80gb" gpus: 2 } batch { global_batch: 2 micro_batch: 1 }
    plan { data_parallel: 1 pipeline_parallel: 2 tensor_parallel: 1 schedule: GPIPE
           no_optimizer: true })";
  ASSERT_TRUE(LoadText(good).ok()) << LoadText(good).status();
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"forward_ms: 1", "forward_ms: 0"},
      {"backward_ms: 2", "backward_ms: -2"},
      {"backward_ms: 2", "backward_ms: 2 weight_ms: -1"},
      {"backward_ms: 2", "backward_ms: 2 communication_ms: nan"}};
  for (const auto& [from, to] : changes) {
    const auto result = LoadText(absl::StrReplaceAll(good, {{from, to}}));
    ASSERT_FALSE(result.ok()) << to;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("_ms: is ")) << to;
  }
  for (const char* large : {"4e9", "inf", "3.7e6"}) {
    const auto result = LoadText(
        absl::StrReplaceAll(good, {{"forward_ms: 1", absl::StrCat("forward_ms: ", large)}}));
    ASSERT_FALSE(result.ok()) << large;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("profiled.forward_ms: "))
        << large;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("is too large; at most"));
  }
  const auto optimizer = LoadText(absl::StrReplaceAll(good, {{"no_optimizer: true", ""}}));
  ASSERT_FALSE(optimizer.ok());
  EXPECT_THAT(std::string(optimizer.status().message()), HasSubstr("plan.no_optimizer"));
}

// The plan of an encoder beside the LLM is not known yet: 18 heads need not divide by the LLM's 8.
TEST(LoadExperiment, AcceptsOptimusWithItsLlmAlone) {
  const std::string text = absl::StrReplaceAll(
      kGood, {{"layout: EQUAL_LAYERS", "strategy: OPTIMUS"}, {"vit-5b", "vit-3b"}});
  const auto experiment = LoadText(text);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->plan().layout(), Plan::EQUAL_LAYERS);
  // The layout is that of the LLM's 80 layers; with the encoder they were 128 on 8 virtual stages.
  EXPECT_TRUE(LoadText(absl::StrReplaceAll(text, {{"model_chunks: 2", "model_chunks: 5"}})).ok());
  const auto uneven = LoadText(absl::StrReplaceAll(text, {{"model_chunks: 2", "model_chunks: 8"}}));
  EXPECT_THAT(std::string(uneven.status().message()), HasSubstr("80"));
  const auto model = LoadText(absl::StrReplaceAll(text, {{"vit-3b", "vit-6b"}}));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("encoders[0].model: unknown"));
}

TEST(LoadExperiment, NamesTheMissingFile) {
  const auto result = LoadExperiment("no/such/file.textproto");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("no/such/file.textproto"));
}

TEST(LoadExperiment, NamesLineAndColumnOfAnUnknownField) {
  const auto result = LoadText(absl::StrReplaceAll(kGood, {{"batch {", "batsh {"}}));
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("load_test.textproto:5:"));
}

TEST(LoadExperiment, FindsModelsBesideTheExperiment) {
  const auto experiment = LoadExperiment("examples/05_uneven_layers.textproto");
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->llm(), "examples/models/gpt-60-layers.textproto");
}

}  // namespace
}  // namespace optimus::step
