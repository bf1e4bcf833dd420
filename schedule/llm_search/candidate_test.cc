#include "schedule/llm_search/candidate.h"

#include <cstdlib>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::llm_search {
namespace {

Domain Small() {
  Domain domain;
  domain.gpus = 16;
  domain.gpus_per_node = 8;
  domain.llm_layers = 12;
  domain.encoder_layers = 4;
  domain.global_batch = 12;
  domain.own_micro_batch = 3;
  domain.with_encoders = true;
  return domain;
}

// Every number from 1 to the largest there can be, kept where the rule says so.
std::vector<Candidate> Obvious(const Domain& domain) {
  std::vector<Candidate> all;
  for (const auto strategy : {step::Plan::OPTIMUS, step::Plan::PIPELINE}) {
    if (strategy == step::Plan::OPTIMUS && !domain.with_encoders) continue;
    for (int tp = domain.gpus; tp >= 1; --tp) {
      for (int pp = domain.gpus; pp >= 1; --pp) {
        for (int v = 1; v <= domain.llm_layers + domain.encoder_layers; ++v) {
          for (int batch = 1; batch <= domain.global_batch; ++batch) {
            const bool even = domain.llm_layers % pp == 0;
            const int together = domain.llm_layers + domain.encoder_layers;
            const bool of_llm = even ? domain.llm_layers / pp % v == 0 : v == 1;
            const bool of_all = strategy == step::Plan::PIPELINE && together % (pp * v) == 0;
            const int dp = domain.gpus / tp / pp;
            const bool power = batch == 1 || batch == 2 || batch == 4 || batch == 8;
            if (dp * tp * pp != domain.gpus || domain.gpus_per_node % tp != 0) continue;
            if (pp > domain.llm_layers || !(of_llm || of_all)) continue;
            if (!power && batch != domain.own_micro_batch) continue;
            if (domain.global_batch % dp != 0 ? batch > 1 : domain.global_batch / dp % batch != 0) {
              continue;
            }
            for (int recompute = 0; recompute < 3; ++recompute) {
              all.push_back(
                  {strategy, dp, pp, tp, v, batch, static_cast<step::Plan::Recompute>(recompute)});
            }
          }
        }
      }
    }
  }
  return all;
}

TEST(Enumerate, IsWhatTheRulesSayInTheirOrder) {
  EXPECT_EQ(Enumerate(Small()), Obvious(Small()));
  Domain llm_alone = Small();
  llm_alone.with_encoders = false;
  llm_alone.encoder_layers = 0;
  llm_alone.gpus = 24;
  EXPECT_EQ(Enumerate(llm_alone), Obvious(llm_alone));
  EXPECT_GT(Enumerate(llm_alone).size(), 50U);
}

// 48 + 96 layers on 16 stages: 9 chunks of one layer, which divide no stage's LLM layers.
TEST(Enumerate, APipelineIsCutAcrossEncodersAndLlm) {
  Domain domain;
  domain.gpus = 16;
  domain.llm_layers = 96;
  domain.encoder_layers = 48;
  domain.global_batch = 16;
  domain.with_encoders = true;
  std::set<int> pipeline, optimus;
  for (const Candidate& candidate : Enumerate(domain)) {
    if (candidate.pipeline_parallel != 16) continue;
    (candidate.strategy == step::Plan::PIPELINE ? pipeline : optimus)
        .insert(candidate.model_chunks);
  }
  EXPECT_THAT(pipeline, testing::ElementsAre(1, 2, 3, 6, 9));
  EXPECT_THAT(optimus, testing::ElementsAre(1, 2, 3, 6));
}

TEST(Enumerate, IsQuickForMoreGpusThanThereAre) {
  Domain domain = Small();
  domain.gpus = 2147483647;  // a prime: TP 1, PP 1
  domain.gpus_per_node = 0;
  for (const Candidate& candidate : Enumerate(domain)) {
    EXPECT_EQ(candidate.pipeline_parallel, 1);
    EXPECT_TRUE(candidate.tensor_parallel == 1 || candidate.tensor_parallel == domain.gpus);
  }
  EXPECT_FALSE(Enumerate(domain).empty());
}

TEST(NearestDivisor, IsTheNearestAndTheSmallerOfTwo) {
  EXPECT_EQ(NearestDivisor(2, 8), 2);
  EXPECT_EQ(NearestDivisor(3, 8), 2);  // 2 and 4 are as near
  EXPECT_EQ(NearestDivisor(5, 6), 6);
  EXPECT_EQ(NearestDivisor(8, 4), 4);
  for (std::int64_t whole = 1; whole <= 40; ++whole) {
    for (std::int64_t wanted = 1; wanted <= 40; ++wanted) {
      const std::int64_t found = NearestDivisor(wanted, whole);
      EXPECT_EQ(whole % found, 0);
      for (std::int64_t d = 1; d <= whole; ++d) {
        if (whole % d != 0) continue;
        const auto far = std::abs(d - wanted), near = std::abs(found - wanted);
        EXPECT_TRUE(near < far || (near == far && found <= d)) << wanted << " of " << whole;
      }
    }
  }
}

TEST(Apply, SetsThePlanAndDropsWhatBelongsToTheOldOne) {
  step::Experiment base;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(llm: "gpt-11b" batch { global_batch: 16 micro_batch: 2 sequence_length: 2048 }
         encoders { model: "vit-3b" sequences_per_sample: 2 sequence_length: 1024
                    sequences_per_slice: 4 }
         encoders { model: "vit-5b" sequences_per_sample: 3 sequence_length: 1024 }
         plan { strategy: OPTIMUS schedule: INTERLEAVED model_chunks: 4 micro_batch_group: 8
                warm_up: BEST layout: EXPLICIT layout_string: "t|t"
                optimus { scheduler: LIST encoder_plans { pipeline_parallel: 1 } } })",
      &base));
  Candidate candidate{step::Plan::OPTIMUS, 2, 4, 2, 5, 1, step::Plan::RECOMPUTE_SELECTIVE};
  const step::Experiment interleaved = Apply(base, candidate);
  EXPECT_EQ(CandidateOf(interleaved), candidate);
  EXPECT_EQ(interleaved.plan().schedule(), step::Plan::INTERLEAVED);
  EXPECT_EQ(interleaved.plan().warm_up(), step::Plan::BEST);
  EXPECT_EQ(interleaved.plan().micro_batch_group(), 0);
  EXPECT_EQ(interleaved.plan().layout(), step::Plan::EQUAL_LAYERS);
  EXPECT_EQ(interleaved.plan().layout_string(), "");
  EXPECT_EQ(interleaved.plan().optimus().scheduler(), step::Optimus::LIST);
  EXPECT_EQ(interleaved.plan().optimus().encoder_plans_size(), 0);
  EXPECT_EQ(interleaved.encoders(0).sequences_per_slice(), 2);  // a micro-batch has no more
  EXPECT_EQ(interleaved.encoders(1).sequences_per_slice(), 0);  // still the whole micro-batch

  candidate.strategy = step::Plan::PIPELINE;
  candidate.model_chunks = 1;
  const step::Experiment pipeline = Apply(base, candidate);
  EXPECT_EQ(CandidateOf(pipeline), candidate);
  EXPECT_EQ(pipeline.plan().schedule(), step::Plan::ONE_F_ONE_B);
  EXPECT_EQ(pipeline.plan().warm_up(), step::Plan::MEGATRON);
  EXPECT_EQ(pipeline.plan().layout(), step::Plan::BALANCED);
  EXPECT_FALSE(pipeline.plan().has_optimus());
}

TEST(ToString, NamesEverything) {
  EXPECT_EQ(ToString({step::Plan::OPTIMUS, 48, 8, 4, 12, 2, step::Plan::RECOMPUTE_FULL}),
            "OPTIMUS, DP 48 x PP 8 x TP 4, V 12, micro-batch 2, recompute full");
}

}  // namespace
}  // namespace optimus::llm_search
