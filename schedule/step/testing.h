#pragma once
// Helpers of this folder's tests.

#include <string>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/validate.h"
#include "schedule/step/check.h"
#include "schedule/step/step.h"

namespace optimus::step::testing {

inline Experiment Parse(const std::string& text) {
  Experiment experiment;
  // Merging lets a later field replace an earlier one.
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &experiment)) << text;
  FillDefaults(experiment);
  return experiment;
}

inline hw::ProfileCostModel Costs(const std::string& profile = "h100-80gb") {
  auto loaded = hw::LoadProfile(profile);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return hw::ProfileCostModel(loaded.ok() ? *loaded : hw::HardwareProfile());
}

// Builds and validates.
inline Step Build(const Experiment& experiment, const hw::ProfileCostModel& costs) {
  auto step = BuildStep(experiment, costs);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return {};
  EXPECT_TRUE(ir::Validate(step->schedule).ok()) << ir::Validate(step->schedule);
  return std::move(step).value();
}
inline Step Build(const std::string& text) { return Build(Parse(text), Costs()); }

inline ir::Timeline Run(const Step& step, const hw::ProfileCostModel& costs) {
  ir::CriticalPathRunner runner(costs);
  auto timeline = runner.Run(step.schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : ir::Timeline();
}

inline Picoseconds StepTime(const Step& step, const hw::ProfileCostModel& costs) {
  return Run(step, costs).step;
}

// A small multimodal experiment on 2 stages, overridden by what is appended to it.
inline std::string SmallModel(const std::string& plan = "") {
  return R"(name: "small" llm: "gpt-11b"
    encoders { model: "vit-5b" sequences_per_sample: 4 sequence_length: 2048
               sequences_per_slice: 2 }
    hardware { profile: "h100-80gb" gpus: 16 }
    batch { global_batch: 8 micro_batch: 2 sequence_length: 2048 }
    plan { data_parallel: 1 pipeline_parallel: 2 tensor_parallel: 8 schedule: ONE_F_ONE_B
           layout: EQUAL_LAYERS recompute: RECOMPUTE_FULL )" +
         plan + "}";
}

}  // namespace optimus::step::testing
