// The automatic schedules as steps: never longer than the handcrafted ones that fit their memory,
// and within a limit that the plan gives.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ::testing::AllOf;
using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using testing::Parse;

struct Times {
  int stages = 4, micro_batches = 8;
  double f_ms = 1, b_ms = 1, w_ms = 1, comm_ms = 0;
};

std::string Profiled(const Times& times, const std::string& plan, const std::string& more = "") {
  return absl::StrCat(
      "profiled { forward_ms: ", times.f_ms, " backward_ms: ", times.b_ms,
      " weight_ms: ", times.w_ms, " communication_ms: ", times.comm_ms, " ", more,
      " } hardware { profile: 'h100-80gb' gpus: ", times.stages,
      " } batch { global_batch: ", times.micro_batches,
      " micro_batch: 1 } plan { data_parallel: 1 tensor_parallel: 1 no_optimizer: true "
      "pipeline_parallel: ",
      times.stages, " schedule: ", plan, " }");
}

// The largest time from a stage's own first kernel to its own last, which is what the automatic
// schedules make short without an optimizer. By the contention-free runner, which knows nothing of
// the search.
Picoseconds LargestStageSpan(const std::string& experiment, const hw::ProfileCostModel& costs) {
  const Step step = Build(Parse(experiment), costs);
  const ir::Timeline timeline = testing::Run(step, costs);
  std::vector<Picoseconds> first(step.schedule.programs.size(), timeline.step);
  std::vector<Picoseconds> last(first.size());
  for (const ir::Span& span : timeline.spans) {
    const auto stage = static_cast<std::size_t>(span.rank);  // one GPU a stage
    if (step.schedule.programs[stage].operations[span.operation].stream != ir::Stream::kCompute) {
      continue;
    }
    first[stage] = std::min(first[stage], span.start);
    last[stage] = std::max(last[stage], span.end);
  }
  Picoseconds largest;
  for (std::size_t s = 0; s < first.size(); ++s) largest = std::max(largest, last[s] - first[s]);
  return largest;
}

void ExpectNotLonger(const Times& times, const hw::ProfileCostModel& costs) {
  const auto span = [&](const char* plan) {
    return LargestStageSpan(Profiled(times, plan), costs);
  };
  EXPECT_LE(span("ZB_1P"), span("ZB_H1")) << Profiled(times, "ZB_1P");
  if (times.micro_batches >= 2 * times.stages - 1) {
    EXPECT_LE(span("ZB_2P"), span("ZB_H2")) << Profiled(times, "ZB_2P");
  }
}

TEST(AutomaticSteps, NeverLongerThanHandcrafted) {
  const auto costs = Costs();
  // Found in use: messages of three forwards.
  ExpectNotLonger({4, 8, 1, 1, 2, 3}, costs);
  ExpectNotLonger({3, 6, 1, 1, 1, 3}, costs);
  std::mt19937 random(31);
  const auto draw = [&random](int least, int most) {
    return least + static_cast<int>(random() % (most - least + 1));
  };
  for (int i = 0; i < 200; ++i) {
    const int stages = draw(2, 6);
    ExpectNotLonger({stages, draw(1, 3 * stages), draw(1, 20) / 4.0, draw(1, 20) / 4.0,
                     draw(1, 20) / 4.0, draw(0, 30) / 4.0},
                    costs);
  }
}

// Measured stages count micro-batches.
TEST(MemoryLimit, OfMeasuredStages) {
  const auto costs = Costs();
  for (const double limit : {1.0, 2.5, 4.0, 6.0, 100.0}) {
    for (const char* plan : {"ZB_1P", "ZB_2P", "ZB_V"}) {
      const Step step = Build(Parse(Profiled({4, 12, 1, 1.5, 0.5, 0.125}, plan,
                                             absl::StrCat("weight_share: 0.5 ",
                                                          "memory_limit_micro_batches: ", limit))),
                              costs);
      ASSERT_TRUE(step.order.has_value());
      const auto peaks = pipeline::PeakActivations(*step.order, {.weight_share = 0.5});
      for (const double peak : *peaks) {
        EXPECT_LE(peak, limit * step.order->chunks + 1e-6) << plan << " " << limit;
      }
    }
  }
  // The limit takes the place of p and 2 p.
  const auto order = [&](const char* plan, const char* more) {
    return Build(Parse(Profiled({}, plan, more)), costs).order->slots;
  };
  EXPECT_EQ(order("ZB_1P", "memory_limit_micro_batches: 8"), order("ZB_2P", ""));
  EXPECT_EQ(order("ZB_2P", "memory_limit_micro_batches: 4"), order("ZB_1P", ""));
}

std::string Model(const std::string& schedule, const std::string& recompute, double gib) {
  return absl::StrCat(R"(name: "small" llm: "gpt-11b" hardware { profile: "h100-80gb" gpus: 16 }
    batch { global_batch: 10 micro_batch: 1 sequence_length: 2048 }
    plan { data_parallel: 1 pipeline_parallel: 4 tensor_parallel: 4 layout: EQUAL_LAYERS
           allow_uneven: true schedule: )",
                      schedule, " recompute: ", recompute,
                      " activation_limit_gib: ", absl::StrFormat("%.9f", gib), " }");
}

double LargestGib(const Step& step) {
  Bytes largest;
  for (const StageMemory& stage : step.memory) largest = std::max(largest, stage.activations);
  return ToGib(largest);
}

TEST(MemoryLimit, OfModelsIsHonoured) {
  const auto costs = Costs();
  for (const char* schedule : {"ZB_1P", "ZB_2P", "ZB_V"}) {
    for (const char* recompute : {"RECOMPUTE_NONE", "RECOMPUTE_SELECTIVE", "RECOMPUTE_FULL"}) {
      const double as_today = LargestGib(Build(Parse(Model(schedule, recompute, 0)), costs));
      // Under full recomputation one micro-batch is already much of it.
      const bool full = std::string(recompute) == "RECOMPUTE_FULL";
      for (const double part : {0.9, 0.7, full ? 0.65 : 0.5}) {
        const double limit = std::round(as_today * part * 1e3) / 1e3;
        const Step step = Build(Parse(Model(schedule, recompute, limit)), costs);
        EXPECT_LE(LargestGib(step), limit) << schedule << " " << recompute;
        EXPECT_GT(LargestGib(step), 0.3 * limit) << schedule << " " << recompute;
        EXPECT_THAT(step.notes, ::testing::Contains(HasSubstr("plan.activation_limit_gib")));
      }
    }
  }
}

std::string Refusal(const std::string& experiment) {
  const auto step = BuildStep(Parse(experiment), Costs());
  EXPECT_FALSE(step.ok()) << experiment;
  return std::string(step.status().message());
}

// What the hint says will do; a little less will not.
TEST(MemoryLimit, NamesTheLeastThatWillDo) {
  for (const char* schedule : {"ZB_1P", "ZB_V"}) {
    for (const char* recompute : {"RECOMPUTE_NONE", "RECOMPUTE_FULL"}) {
      const std::string refusal = Refusal(Model(schedule, recompute, 0.001));
      EXPECT_THAT(refusal, AllOf(HasSubstr("plan.activation_limit_gib: 0.001, but one micro-batch"),
                                 HasSubstr("; set ")));
      double least = 0;
      const std::size_t at = refusal.find("; set ") + 6;
      ASSERT_TRUE(absl::SimpleAtod(refusal.substr(at, refusal.find(' ', at) - at), &least));
      EXPECT_LE(LargestGib(Build(Parse(Model(schedule, recompute, least)), Costs())), least);
      Refusal(Model(schedule, recompute, least - 2e-6));
    }
  }
}

TEST(MemoryLimit, Refusals) {
  EXPECT_THAT(Refusal(Model("ZB_H1", "RECOMPUTE_NONE", 10)),
              HasSubstr("plan.activation_limit_gib: is set with ZB_H1"));
  EXPECT_THAT(Refusal(Model("ZB_1P", "RECOMPUTE_NONE", -1)),
              HasSubstr("plan.activation_limit_gib: is -1"));
  Experiment nan = Parse(Model("ZB_1P", "RECOMPUTE_NONE", 1));
  nan.mutable_plan()->set_activation_limit_gib(std::nan(""));
  EXPECT_THAT(std::string(CheckPipelineSchedule(nan).message()), HasSubstr("is nan"));
  EXPECT_THAT(Refusal(Profiled({}, "ZB_1P activation_limit_gib: 1")),
              HasSubstr("set profiled.memory_limit_micro_batches"));
  EXPECT_THAT(Refusal(Profiled({}, "ZB_H1", "memory_limit_micro_batches: 2")),
              HasSubstr("profiled.memory_limit_micro_batches: is set with ZB_H1"));
  EXPECT_THAT(Refusal(Profiled({}, "ZB_V", "memory_limit_micro_batches: 0.5")),
              HasSubstr("profiled.memory_limit_micro_batches: is 0.5"));
}

TEST(MemoryLimit, GoesWithTheSchedule) {
  Experiment model = Parse(Model("ZB_1P", "RECOMPUTE_NONE", 10));
  UseSchedule(Plan::ZB_V, model);
  EXPECT_EQ(model.plan().activation_limit_gib(), 10);
  UseSchedule(Plan::ZB_H1, model);
  EXPECT_EQ(model.plan().activation_limit_gib(), 0);
  Experiment measured = Parse(Profiled({}, "ZB_1P", "memory_limit_micro_batches: 2"));
  UseSchedule(Plan::ONE_F_ONE_B, measured);
  EXPECT_EQ(measured.profiled().memory_limit_micro_batches(), 0);
}

}  // namespace
}  // namespace optimus::step
