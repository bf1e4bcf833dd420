// Data sets from rows to figures, on the contention-free runner.

#include "validation/published/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/testing_folder.h"
#include "gmock/gmock.h"
#include "schedule/ir/critical_path.h"
#include "validation/published/gpt.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ir::Timeline> RunAlone(const ir::Schedule& schedule, const CostModel& costs,
                                      bool /*with_spans*/) {
  return ir::CriticalPathRunner(costs).Run(schedule);
}

absl::StatusOr<EvaluatedDataSet> EvaluateText(const std::string& name, const std::string& content,
                                              const EvaluateOptions& options = {}) {
  const TestingFolder folder;
  const std::string path = folder.path() / "rows.csv";
  std::ofstream(path) << content;
  auto table = ReadCsvTable(path);
  if (!table.ok()) return table.status();
  Simulator simulator(&RunAlone);
  return EvaluateDataSet(*FindDataSet(name), *std::move(table), options, simulator);
}

constexpr char kZeroBubbleHeader[] =
    "params_b,layers,hidden,pp,micro_batch,micro_batches,f_ms,b_ms,w_ms,comm_ms,bubble_1f1b,"
    "bubble_1f1b_interleaved,interleave,bubble_zb_h1,bubble_zb_h2,bubble_zb_2p\n";

// The slow twin of 1F1B: stage s runs p - s - 1 forwards, then one forward and one backward in
// turn. Operations start when those before them on the stage have ended and their input has come;
// times are raised until none of them changes.
double OneForwardOneBackwardMs(int p, int m, double f, double b, double comm) {
  std::vector<std::vector<double>> forward(p, std::vector<double>(m, 0)), backward = forward;
  for (bool changed = true; changed;) {
    changed = false;
    for (int s = 0; s < p; ++s) {
      double free = 0;
      const auto run = [&](double& end, double input, double time) {
        free = std::max(free, input) + time;
        changed |= free > end;
        end = std::max(end, free);
      };
      const int warm_up = std::min(p - s - 1, m);
      for (int i = 0; i < m + warm_up; ++i) {
        if (i < m) run(forward[s][i], s > 0 ? forward[s - 1][i] + comm : 0, f);
        if (i < warm_up) continue;
        const int j = i - warm_up;
        run(backward[s][j], s + 1 < p ? backward[s + 1][j] + comm : 0, b);
      }
    }
  }
  return backward[0][m - 1];
}

// 1F1B by the twin above, interleaved by the closed form that the data set's assumptions name.
TEST(ZeroBubble, OneForwardOneBackwardAndInterleaved) {
  for (const int p : {4, 8}) {
    for (const int v : {2, 3}) {
      const int m = 4 * p;
      const double f = 6, b = 6.6, w = 5.4, comm = 0.12;
      const double work = m * (f + b + w);
      const double plain = OneForwardOneBackwardMs(p, m, f, b + w, comm) - work;
      const double interleaved = (p - 1) * (f + b + w) / v + (2 * p * v - 2) * comm;
      const auto evaluated = EvaluateText(
          "zero_bubble", absl::StrCat(kZeroBubbleHeader, "1,24,64,", p, ",1,", m, ",", f, ",", b,
                                      ",", w, ",", comm, ",0.5,0.5,", v, ",,,\n"));
      ASSERT_TRUE(evaluated.ok()) << evaluated.status();
      const std::vector<Figure>& figures = evaluated->rows[0].figures;
      ASSERT_EQ(figures.size(), 2U);
      EXPECT_NEAR(figures[0].simulated, plain / (work + plain), 1e-9) << p << " " << v;
      EXPECT_NEAR(figures[1].simulated, interleaved / (work + interleaved), 1e-9) << p << " " << v;
      EXPECT_NEAR(figures[0].error(), figures[0].simulated - 0.5, 1e-12);
    }
  }
}

TEST(ZeroBubble, InterleavedNeedsItsChunks) {
  const auto evaluated = EvaluateText(
      "zero_bubble", absl::StrCat(kZeroBubbleHeader, "1,24,64,4,1,8,1,1,1,0.1,,0.1,,,,\n"));
  ASSERT_FALSE(evaluated.ok());
  EXPECT_THAT(std::string(evaluated.status().message()),
              HasSubstr("rows.csv:2: column interleave: is empty"));
}

TEST(ZeroBubble, WhatCannotBeSimulatedIsNamedByItsColumn) {
  const auto evaluated = EvaluateText(
      "zero_bubble", absl::StrCat(kZeroBubbleHeader, "1,24,64,8,1,4,1,1,1,0.1,,0.1,2,,,\n"));
  ASSERT_FALSE(evaluated.ok());
  EXPECT_THAT(std::string(evaluated.status().message()),
              HasSubstr("rows.csv:2: column bubble_1f1b_interleaved: batch.global_batch: "));
}

// A table may hold what its source did not measure; nothing is compared, and the report says so.
TEST(Evaluate, ARowWithoutMeasuredValues) {
  const auto evaluated = EvaluateText("korthikanti_layer_22b",
                                      "variant,forward_ms,backward_ms\nbaseline,,\n"
                                      "full_recompute,,11\n");
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_TRUE(evaluated->rows[0].figures.empty());
  EXPECT_THAT(evaluated->rows[0].note, HasSubstr("no measured value"));
  EXPECT_EQ(evaluated->rows[1].figures.size(), 1U);
  EXPECT_EQ(evaluated->all.errors.figures, 1);
  EXPECT_FALSE(evaluated->all.kendall_tau);
}

// Where all simulated steps are one, a target of rank correlation is missed; of one row, and of
// equal measured values, there is nothing to rank.
TEST(Evaluate, RankCorrelationOfFewAndOfTies) {
  const std::string header = "global_batch,gpus,iteration_s\n";
  const auto met = [&](const std::string& rows) {
    EvaluateOptions options;
    options.targets = {{"megascale", "", "", Statistic::kKendall, 0.9, ""}};
    const auto evaluated = EvaluateText("megascale", absl::StrCat(header, rows), options);
    EXPECT_TRUE(evaluated.ok()) << evaluated.status();
    return evaluated.ok() && evaluated->met();
  };
  EXPECT_TRUE(met("768,512,21.2\n"));
  EXPECT_TRUE(met("768,512,21.2\n768,1024,21.2\n"));
  EXPECT_TRUE(met("768,512,21.2\n768,1024,11.9\n"));
  EXPECT_FALSE(met("768,512,11.9\n768,1024,21.2\n"));
  EXPECT_FALSE(met("768,512,21.2\n768,512,21.3\n"));
}

TEST(Evaluate, ErrorsOfExperimentsNameTheLine) {
  const auto evaluated =
      EvaluateText("megatron_sc21",
                   "params_b,heads,hidden,layers,tp,pp,gpus,global_batch,tflops_per_gpu\n"
                   "1,16,1024,8,1,1,8,64,100\n1,16,1024,8,1,16,8,64,100\n");
  ASSERT_FALSE(evaluated.ok());
  EXPECT_THAT(std::string(evaluated.status().message()), HasSubstr("rows.csv:3: "));
}

constexpr char kNccl[] =
    "gpu,gpus,nodes,collective,bytes,time_us,busbw_gb_per_s\n"
    "A100,8,1,all_reduce,16777216,,126.3\nA100,8,1,all_reduce,16777216,232.5,\n"
    "A100,8,1,all_reduce,1048576,100,\n";

TEST(Nccl, TimeAndBusBandwidthAreOneMeasurement) {
  const auto evaluated = EvaluateText("nccl_busbw", kNccl);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  // 2 (7/8) 16 MiB / 126.3 GB/s.
  EXPECT_NEAR(evaluated->rows[0].figures[0].measured, 1.75 * 16777216 / 126.3e3, 1e-3);
  EXPECT_EQ(evaluated->rows[1].figures[0].measured, 232.5);
  EXPECT_EQ(evaluated->rows[0].figures[0].simulated, evaluated->rows[1].figures[0].simulated);
  EXPECT_EQ(evaluated->rows[0].figures[0].group, "16 MiB and above");
  EXPECT_EQ(evaluated->rows[2].figures[0].group, "below 16 MiB");
}

TEST(Nccl, OneOfThemMustBeThere) {
  const auto evaluated = EvaluateText("nccl_busbw",
                                      "gpu,gpus,nodes,collective,bytes,time_us,busbw_gb_per_s\n"
                                      "A100,8,1,all_reduce,1048576,,\n");
  EXPECT_THAT(std::string(evaluated.status().message()),
              HasSubstr("rows.csv:2: column time_us: is empty, and so is busbw_gb_per_s"));
  const auto nodes = EvaluateText("nccl_busbw",
                                  "gpu,gpus,nodes,collective,bytes,time_us,busbw_gb_per_s\n"
                                  "A100,16,1,all_reduce,1048576,1,\n");
  EXPECT_THAT(std::string(nodes.status().message()),
              HasSubstr("rows.csv:2: column nodes: 1 for 16 gpus are 16 GPUs a node"));
  for (const char* group : {"1,1", "2147483647,2147483647"}) {
    const auto gpus = EvaluateText(
        "nccl_busbw", absl::StrCat("gpu,gpus,nodes,collective,bytes,time_us,busbw_gb_per_s\nA100,",
                                   group, ",all_reduce,1048576,1,\n"));
    EXPECT_THAT(std::string(gpus.status().message()), HasSubstr("rows.csv:2: column gpus: "));
  }
}

TEST(Evaluate, CalibrationRowsAreNoPredictions) {
  EvaluateOptions options;
  options.calibrations = {{"p", "nccl_busbw", {{"bytes", "1048576"}}}};
  options.targets = {{"nccl_busbw", "", "each", Statistic::kLargest, 0.5, ""},
                     {"nccl_busbw", "", "below 16 MiB", Statistic::kMean, 0, ""},
                     {"megascale", "", "", Statistic::kMean, 0, ""}};
  const auto evaluated = EvaluateText("nccl_busbw", kNccl, options);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(evaluated->calibration_rows(), 1);
  EXPECT_EQ(evaluated->predictions.errors.figures, 2);
  EXPECT_EQ(evaluated->all.errors.figures, 3);
  EXPECT_THAT(evaluated->rows[2].fitted, ::testing::ElementsAre("p"));
  // "each" is one target a group; without predictions there is nothing to judge.
  ASSERT_EQ(evaluated->targets.size(), 3U);
  EXPECT_EQ(evaluated->targets[0].group, "16 MiB and above");
  EXPECT_TRUE(evaluated->targets[0].value.has_value());
  EXPECT_FALSE(evaluated->targets[1].value.has_value());
  EXPECT_TRUE(evaluated->met());
}

TEST(Evaluate, TargetsAreJudged) {
  EvaluateOptions options;
  options.targets = {{"nccl_busbw", "", "", Statistic::kLargest, 0, ""}};
  auto evaluated = EvaluateText("nccl_busbw", kNccl, options);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_FALSE(evaluated->met());
  options.targets = {{"nccl_busbw", "all_reduce", "", Statistic::kKendall, 0.5, ""}};
  evaluated = EvaluateText("nccl_busbw", kNccl, options);
  EXPECT_TRUE(evaluated->met());
  options.targets[0].limit = 1.01;
  evaluated = EvaluateText("nccl_busbw", kNccl, options);
  EXPECT_FALSE(evaluated->met());
}

// The appendix of Narayanan et al. (SC 2021) in its own form.
TEST(MegatronFlops, PublishedForms) {
  const GptShape shape = {
      .name = "x", .hidden = 12288, .heads = 96, .layers = 80, .vocabulary = 51200};
  const double b = 2304, s = 2048, l = 80, h = 12288, v = 51200;
  const double recompute = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const double plain = 72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_NEAR(MegatronFlops(shape, b, s, true) / recompute, 1, 1e-12);
  EXPECT_NEAR(MegatronFlops(shape, b, s, false) / plain, 1, 1e-12);
}

step::Experiment SmallJob() {
  const GptShape shape = {
      .name = "small", .hidden = 4096, .heads = 32, .layers = 24, .vocabulary = 51200};
  step::Experiment experiment = MegatronJob(shape, {.profile = "a100-80gb",
                                                    .gpus = 32,
                                                    .tensor_parallel = 4,
                                                    .pipeline_parallel = 4,
                                                    .global_batch = 64,
                                                    .sequence = 2048});
  experiment.mutable_plan()->set_recompute(step::Plan::RECOMPUTE_FULL);
  return experiment;
}

// The slow twin: every size and every count of chunks by itself.
TEST(FastestCut, IsTheFastestOfAllThatFit) {
  Simulator simulator(&RunAlone);
  const auto cut = FastestCut(SmallJob(), {1, 2, 3}, simulator);
  ASSERT_TRUE(cut.ok()) << cut.status();
  Picoseconds best(std::numeric_limits<std::int64_t>::max());
  int fit = 0;
  for (int micro_batch = 1; micro_batch <= 32; ++micro_batch) {
    for (const int chunks : {1, 2, 3}) {
      if (32 % micro_batch != 0 || (chunks > 1 && 32 / micro_batch % 4 != 0)) continue;
      step::Experiment experiment = SmallJob();
      experiment.mutable_batch()->set_micro_batch(micro_batch);
      experiment.mutable_plan()->set_model_chunks(chunks);
      if (chunks > 1) experiment.mutable_plan()->set_schedule(step::Plan::INTERLEAVED);
      const auto step = simulator.Build(experiment);
      ASSERT_TRUE(step.ok()) << step.status();
      if (!*simulator.Fits(*step)) continue;
      ++fit;
      best = std::min(best, simulator.Run(*step)->step);
    }
  }
  EXPECT_EQ(cut->step, best);
  EXPECT_EQ(cut->simulated, fit);
  EXPECT_GT(fit, 3);
}

TEST(FastestCut, SaysWhenNothingFits) {
  step::Experiment experiment = SmallJob();
  experiment.mutable_inline_llm()->set_hidden_size(65536);
  experiment.mutable_inline_llm()->set_ffn_hidden_size(262144);
  Simulator simulator(&RunAlone);
  const auto cut = FastestCut(experiment, {1}, simulator);
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("fits into the memory of a100-80gb"));
  experiment = SmallJob();
  experiment.mutable_batch()->set_global_batch(63);
  EXPECT_THAT(std::string(FastestCut(experiment, {1}, simulator).status().message()),
              HasSubstr("global batch 63 is not a multiple of 2"));
  experiment.mutable_plan()->set_data_parallel(0);
  EXPECT_THAT(std::string(FastestCut(experiment, {1}, simulator).status().message()),
              HasSubstr("32 GPUs are fewer than"));
}

TEST(Divisors, Ascending) {
  EXPECT_THAT(Divisors(12), ::testing::ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(Divisors(1), ::testing::ElementsAre(1));
  EXPECT_THAT(Divisors(0), ::testing::IsEmpty());
  EXPECT_THAT(Divisors(2147483647), ::testing::ElementsAre(1, 2147483647));
  // The slow twin.
  for (int n = 1; n <= 400; ++n) {
    std::vector<int> all;
    for (int d = 1; d <= n; ++d) {
      if (n % d == 0) all.push_back(d);
    }
    EXPECT_EQ(Divisors(n), all) << n;
  }
}

}  // namespace
}  // namespace optimus::validation
