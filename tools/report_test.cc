#include "tools/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/report_json.h"
#include "tools/report_text.h"

namespace optimus::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

hw::ProfileCostModel Costs() {
  auto profile = hw::LoadProfile("h100-80gb");
  EXPECT_TRUE(profile.ok()) << profile.status();
  return hw::ProfileCostModel(*std::move(profile));
}

// Two stages of 3 x 2 GPUs; 1 s a step.
step::Step MakeStep() {
  step::Step step;
  step.experiment.set_name("hand_made");
  step.experiment.add_assumptions("an assumption");
  step.experiment.mutable_plan()->set_schedule(step::Plan::ONE_F_ONE_B);
  step.schedule.world = {3, 2, 2};
  step.schedule.micro_batches = 4;
  step.schedule.modules = {{"llm", 4, false}};
  step.schedule.programs.resize(2);
  step.model_flops = Flops(4e15);
  step.hardware_flops = Flops(5e15);
  step.memory.resize(2);
  step.memory[0].parameters = Bytes(10 * kGib);
  step.memory[1] = {Bytes(1 * kGib), Bytes(2 * kGib), Bytes(3 * kGib), Bytes(4 * kGib),
                    Bytes(5 * kGib)};
  step.contents = {{0, 0, "llm 0-1"}, {1, 0, "llm 2-3"}};
  step.notes = {"a note"};
  return step;
}

// Stage 0: 2 GPUs compute 0.4 s, 4 compute 0.7 s; stage 1: all compute 0.9 s.
ir::Timeline MakeTimeline() {
  ir::Timeline timeline;
  timeline.step = FromSeconds(1);
  auto add = [&](int rank, int stage, int gpus, double compute) {
    ir::EntityAccount entity;
    entity.rank = rank;
    entity.stage = stage;
    entity.gpus = gpus;
    entity.account.compute = FromSeconds(compute);
    entity.account.optimizer = FromSeconds(0.05);
    entity.account.bubbles[static_cast<int>(ir::BubbleClass::kTp)] = FromSeconds(0.95 - compute);
    timeline.entities.push_back(entity);
  };
  add(0, 0, 2, 0.4);
  add(2, 0, 4, 0.7);
  add(6, 1, 6, 0.9);
  timeline.operations = 42;
  timeline.fidelity = "group";
  timeline.fidelity_reason = "asked for";
  return timeline;
}

Report MakeReportOrDie(const step::Step& step) {
  auto report = MakeReport(step, Costs(), MakeTimeline());
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

TEST(ReportTest, AveragesAreOverGpus) {
  const Report report = MakeReportOrDie(MakeStep());
  EXPECT_EQ(report.gpus, 12);
  EXPECT_DOUBLE_EQ(report.stages[0].time.compute_s, (2 * 0.4 + 4 * 0.7) / 6);
  EXPECT_DOUBLE_EQ(report.stages[1].time.compute_s, 0.9);
  EXPECT_DOUBLE_EQ(report.average.compute_s, (2 * 0.4 + 4 * 0.7 + 6 * 0.9) / 12);
  EXPECT_DOUBLE_EQ(report.average.optimizer_s, 0.05);
  double sum = report.average.compute_s + report.average.optimizer_s;
  for (const double bubble : report.average.bubbles_s) sum += bubble;
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

// Two lanes a stage: four programs, but still two stages of six GPUs each.
TEST(ReportTest, LanesOfAStageAreOneRow) {
  step::Step step = MakeStep();
  step.schedule.lanes = 2;
  step.schedule.programs.resize(4);
  const Report report = MakeReportOrDie(step);
  ASSERT_EQ(report.stages.size(), 2U);
  EXPECT_EQ(report.stages[0].gpus, 6);
  EXPECT_DOUBLE_EQ(report.stages[0].time.compute_s, (2 * 0.4 + 4 * 0.7) / 6);
  EXPECT_DOUBLE_EQ(report.stages[1].time.compute_s, 0.9);
}

TEST(ReportTest, EfficiencyByItsFormula) {
  const Report report = MakeReportOrDie(MakeStep());
  const double peak = Costs().peak_flops().value();
  EXPECT_DOUBLE_EQ(report.efficiency->mfu, 4e15 / (1.0 * 12 * peak));
  EXPECT_DOUBLE_EQ(report.efficiency->hfu, 5e15 / (1.0 * 12 * peak));
  EXPECT_DOUBLE_EQ(report.efficiency->aggregate_pflops_per_s, 4.0);
}

TEST(ReportTest, MemoryIsThatOfTheFullestStage) {
  const Report report = MakeReportOrDie(MakeStep());
  EXPECT_EQ(report.memory->fullest, 1);
  EXPECT_TRUE(report.memory->fits());
  const Json memory = Json::parse(ToJson({report}))["memory"];
  EXPECT_EQ(memory["total_gib"], 15.0);
  EXPECT_EQ(memory["workspace_gib"], 5.0);
}

TEST(ReportTest, OutOfMemoryIsMarkedEverywhere) {
  step::Step step = MakeStep();
  step.memory[0].activations = Bytes(1000 * kGib);
  const Report report = MakeReportOrDie(step);
  EXPECT_FALSE(report.memory->fits());
  EXPECT_EQ(Json::parse(ToJson({report}))["fits"], false);
  EXPECT_THAT(FullText(report), HasSubstr("OUT OF MEMORY: stage 0 needs 1010.00 GiB of"));
  EXPECT_THAT(ComparisonText({report, report}), HasSubstr("OUT OF MEMORY"));
  EXPECT_THAT(FullText(MakeReportOrDie(MakeStep())), Not(HasSubstr("OUT OF MEMORY")));
}

TEST(ReportTest, AnAccountThatDoesNotAddUpIsInternal) {
  ir::Timeline timeline = MakeTimeline();
  timeline.entities[1].account.compute += Picoseconds(1);
  const auto report = MakeReport(MakeStep(), Costs(), timeline);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("rank 2 (stage 0)"));

  timeline = MakeTimeline();
  timeline.entities.pop_back();
  EXPECT_EQ(MakeReport(MakeStep(), Costs(), timeline).status().code(), absl::StatusCode::kInternal);
}

// The names are a promise to whoever reads the files: this test is their list.
TEST(ReportJsonTest, Names) {
  const Json json = Json::parse(ToJson({MakeReportOrDie(MakeStep())}));
  EXPECT_THAT(Keys(json), ElementsAre("version", "experiment", "profile", "profile_hash",
                                      "fidelity", "fidelity_reason", "interference", "gpus",
                                      "iteration_time_s", "mfu", "hfu", "aggregate_pflops_per_s",
                                      "model_flops", "hardware_flops", "compute_s", "optimizer_s",
                                      "bubbles", "memory", "fits", "stages", "assumptions", "notes",
                                      "entities", "operations", "wall_s", "peak_memory_mib"));
  EXPECT_THAT(Keys(json["bubbles"]),
              ElementsAre("dp_all_gather_s", "dp_reduce_scatter_s", "pp_warmup_s", "pp_cooldown_s",
                          "pp_other_s", "tp_s"));
  EXPECT_THAT(Keys(json["memory"]),
              ElementsAre("parameters_gib", "gradients_gib", "optimizer_state_gib",
                          "activations_gib", "workspace_gib", "total_gib", "capacity_gib"));
  EXPECT_THAT(Keys(json["stages"][0]), ElementsAre("stage", "gpus", "compute_s", "optimizer_s",
                                                   "bubbles", "memory", "layers"));
  EXPECT_EQ(json["experiment"], "hand_made");
  EXPECT_EQ(json["iteration_time_s"], 1.0);
  EXPECT_EQ(json["operations"], 42);
  EXPECT_EQ(json["entities"], 3);
  EXPECT_EQ(json["assumptions"][0], "an assumption");
}

TEST(ReportJsonTest, EveryNameIsDocumentedInOrder) {
  std::vector<std::string> names;
  const Json json = Json::parse(ToJson({MakeReportOrDie(MakeStep())}));
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      names.push_back(key);
      continue;
    }
    for (const std::string& inner : Keys(value)) names.push_back(absl::StrCat(key, ".", inner));
  }
  std::vector<std::string> documented;
  for (const JsonField& field : JsonFields()) {
    // Only strategy OPTIMUS has it; optimus_report_test looks at it.
    if (std::string(field.name) != "optimus") documented.emplace_back(field.name);
  }
  EXPECT_EQ(names, documented);
}

TEST(ReportJsonTest, LeavesOutWhatIsNotKnown) {
  step::Step step = MakeStep();
  step.model_flops = Flops(0);
  step.memory.assign(2, {});
  const Json json = Json::parse(ToJson({MakeReportOrDie(step)}));
  for (const char* name : {"mfu", "hfu", "aggregate_pflops_per_s", "memory", "fits"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
  EXPECT_TRUE(json.contains("iteration_time_s"));
}

TEST(ReportJsonTest, NumbersReadBackAsTheSameValue) {
  const Report report = MakeReportOrDie(MakeStep());
  const Json json = Json::parse(ToJson({report}));
  EXPECT_EQ(json["mfu"].get<double>(), report.efficiency->mfu);
  EXPECT_EQ(json["compute_s"].get<double>(), report.average.compute_s);
}

TEST(ReportJsonTest, SeveralAreAnArrayComparedWithTheFirst) {
  const Report slow = MakeReportOrDie(MakeStep());
  Report fast = slow;
  fast.step = FromSeconds(0.8);
  const Json json = Json::parse(ToJson({slow, fast}));
  ASSERT_THAT(Keys(json), ElementsAre("results"));
  EXPECT_EQ(json["results"][0]["speed_up"], 1.0);
  EXPECT_DOUBLE_EQ(json["results"][1]["speed_up"], 1.25);
  EXPECT_DOUBLE_EQ(json["results"][1]["reduction_percent"], 20.0);
  EXPECT_THAT(ComparisonText({slow, fast}), HasSubstr("1.25"));
  EXPECT_THAT(ComparisonText({slow, fast}), HasSubstr("20.0"));
}

TEST(ReportTextTest, WallTimeIsOnTheLastLineOnly) {
  Report report = MakeReportOrDie(MakeStep());
  const std::string before = FullText(report);
  report.wall_s = 123;
  report.peak_memory_mib = 456;
  const std::string after = FullText(report);
  const auto without_last = [](const std::string& text) {
    return text.substr(0, text.rfind('\n', text.size() - 2));
  };
  EXPECT_NE(before, after);
  EXPECT_EQ(without_last(before), without_last(after));
  EXPECT_EQ(after.substr(without_last(after).size() + 1), "wall 123.000 s, peak memory 456 MiB\n");
}

TEST(ReportTextTest, ShowsEveryStageInTimeAndPercent) {
  const std::string text = FullText(MakeReportOrDie(MakeStep()));
  EXPECT_THAT(text, HasSubstr("\n0          0.600 "));
  EXPECT_THAT(text, HasSubstr("\n0           60.0 "));
  EXPECT_THAT(text, HasSubstr("llm 2-3"));
  EXPECT_THAT(text, HasSubstr("  - an assumption\n"));
  EXPECT_THAT(text, HasSubstr("operations  42\n"));
}

TEST(ReportTest, ProfileHashFollowsTheContent) {
  hw::HardwareProfile profile = Costs().profile();
  const std::string hash = ProfileHash(profile);
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash, ProfileHash(Costs().profile()));
  profile.mutable_gpu()->mutable_gemm_efficiency()->set_value(0.5);
  EXPECT_NE(hash, ProfileHash(profile));
  hw::HardwareProfile measured = Costs().profile();
  measured.add_measured_kernels()->mutable_time()->set_median_us(1);
  const std::string with_kernel = ProfileHash(measured);
  EXPECT_NE(hash, with_kernel);
  measured.mutable_measured_kernels(0)->mutable_time()->set_median_us(1.0000001);
  EXPECT_NE(with_kernel, ProfileHash(measured));
  // FNV-1a, 64 bits, of nothing is its offset basis.
  EXPECT_EQ(ProfileHash({}), "cbf29ce484222325");
}

}  // namespace
}  // namespace optimus::tools
