// Coverage of lanes, and of encoders whose pipelines share the micro-batches of one LLM pipeline.

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeTag;
using testing::ScheduleBuilder;

constexpr int kStages = 4, kLanes = 2, kMicroBatches = 6;
constexpr int kSkipped = 2;  // a micro-batch without images

// An LLM of 4 layers on 4 stages of TP 4 in 2 lanes; a ViT of 4 layers with TP 2 and 2 stages, so 4
// pipelines, in two slices; and an audio encoder of one layer with TP 4 and one stage, so 4
// pipelines too, each over both lanes.
class Complete {
 public:
  Complete() : builder_({1, kStages, 4}, kLanes) {
    Schedule& schedule = builder_.schedule();
    schedule.micro_batches = kMicroBatches;
    schedule.modules = {
        {"llm", 4, false}, {"vit", 4, false, 4, 2, {kSkipped}}, {"audio", 1, true, 4, 4, {}}};
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) AddLlm(micro_batch);
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
      if (micro_batch != kSkipped) AddVit(micro_batch, micro_batch % 4);
      AddAudio(micro_batch, micro_batch % 3);  // the last pipeline gets none
    }
  }
  ScheduleBuilder& builder() { return builder_; }
  Schedule Take() { return builder_.Take(); }

 private:
  void Add(int stage, int lane, const Tag& tag) {
    builder_.AddKernel(builder_.At(stage, lane), tag, 1);
  }
  void AddLlm(int micro_batch) {
    for (const Phase phase : {Phase::kForward, Phase::kRecompute, Phase::kBackward}) {
      for (int stage = 0; stage < kStages; ++stage) {
        for (int lane = 0; lane < kLanes; ++lane) {
          Add(stage, lane, MakeTag(0, stage, micro_batch, phase, -1, 0));
        }
      }
    }
  }
  void AddVit(int micro_batch, int pipeline) {
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      for (int layer = 0; layer < 4; ++layer) {
        for (int slice = 0; slice < 2; ++slice) {
          Add(pipeline / 2 * 2 + layer / 2, pipeline % 2,
              MakeTag(1, layer, micro_batch, phase, slice, 0));
        }
      }
    }
  }
  void AddAudio(int micro_batch, int pipeline) {
    for (int lane = 0; lane < kLanes; ++lane) {
      Add(pipeline, lane, MakeTag(2, 0, micro_batch, Phase::kForward, -1, 0));
    }
  }

  ScheduleBuilder builder_;
};

std::string Refusal(const Schedule& schedule) {
  const absl::Status status = Validate(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("; hint: "), ::testing::Not(HasSubstr("\n"))));
  return std::string(status.message());
}

// The operation with this tag in a program.
std::uint32_t Find(const Schedule& schedule, int program, const Tag& tag) {
  const std::vector<Operation>& operations = schedule.programs[program].operations;
  for (std::uint32_t id = 0; id < operations.size(); ++id) {
    if (operations[id].tag == tag) return id;
  }
  ADD_FAILURE() << "no such operation";
  return 0;
}

std::string RefusalWithout(int program, const Tag& tag) {
  Schedule schedule = Complete().Take();
  auto& operations = schedule.programs[program].operations;
  operations.erase(operations.begin() + Find(schedule, program, tag));
  return Refusal(schedule);
}

std::string RefusalWith(int program, const Tag& tag) {
  Complete complete;
  complete.builder().AddKernel(program, tag, 1);
  return Refusal(complete.Take());
}

TEST(PipelineCoverage, CompleteSchedulesAreAccepted) {
  const Schedule schedule = Complete().Take();
  EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
}

// No operation is one too many, and none can be missing, run twice or be somewhere else.
TEST(PipelineCoverage, EveryOperationCounts) {
  const Schedule complete = Complete().Take();
  for (std::size_t p = 0; p < complete.programs.size(); ++p) {
    for (std::uint32_t id = 0; id < complete.programs[p].operations.size(); ++id) {
      Schedule schedule = complete;
      auto& operations = schedule.programs[p].operations;
      const Operation op = operations[id];
      const auto place = operations.begin() + id;
      SCOPED_TRACE(Describe(complete, complete.programs[p], id));
      operations.insert(place, op);
      EXPECT_FALSE(Validate(schedule).ok());
      operations.erase(operations.begin() + id, operations.begin() + id + 2);
      EXPECT_FALSE(Validate(schedule).ok());
      for (std::size_t other = 0; other < schedule.programs.size(); ++other) {
        schedule.programs[other].operations.push_back(op);
        EXPECT_EQ(Validate(schedule).ok(), other == p) << Validate(schedule);
        schedule.programs[other].operations.pop_back();
      }
    }
  }
}

TEST(PipelineCoverage, AnLlmLayerRunsInEveryLane) {
  // Stage 2 lane 1.
  EXPECT_THAT(RefusalWithout(5, MakeTag(0, 2, 3, Phase::kForward, -1, 0)),
              HasSubstr("module 'llm' layer 2 micro-batch 3 lane 1 forward: is missing (other work "
                        "of the layer is at stage 2 lane 0 (rank 8), operation"));
  EXPECT_THAT(RefusalWithout(5, MakeTag(0, 2, 3, Phase::kRecompute, -1, 0)),
              HasSubstr("module 'llm' layer 2 micro-batch 3 lane 1 recompute: has 0 kernels, "
                        "micro-batch 0 lane 0 has 1 (from stage 2 lane 0 (rank 8), operation"));
  EXPECT_THAT(RefusalWith(5, MakeTag(0, 2, 0, Phase::kBackward, -1, 0)),
              HasSubstr("module 'llm' layer 2 micro-batch 0 lane 1 backward: has 2 kernels, "
                        "micro-batch 0 lane 0 has 1"));
  EXPECT_THAT(RefusalWith(5, MakeTag(0, 1, 0, Phase::kBackward, -1, 0)),
              AllOf(HasSubstr("stage 2 lane 1 (rank 10), operation"),
                    HasSubstr("tag.layer: this layer also runs at stage 1 lane 0 (rank 4)")));
}

TEST(PipelineCoverage, AnEncoderLayerRunsOnce) {
  // Micro-batch 1 is in pipeline 1: lane 1 of stages 0 and 1.
  EXPECT_THAT(
      RefusalWithout(3, MakeTag(1, 3, 1, Phase::kForward, 1, 0)),
      HasSubstr("module 'vit' layer 3 micro-batch 1 slice 1 forward: is missing (other work "
                "of the layer is at stage 1 lane 0 (rank 4), operation"));
  EXPECT_THAT(RefusalWith(3, MakeTag(1, 3, 1, Phase::kForward, 1, 0)),
              HasSubstr("module 'vit' layer 3 micro-batch 1 slice 1 forward: has 2 kernels, "
                        "micro-batch 0 has 1"));
  // The same layers, but of pipeline 3.
  EXPECT_THAT(
      RefusalWith(7, MakeTag(1, 3, 1, Phase::kForward, 1, 0)),
      AllOf(HasSubstr("stage 3 lane 1 (rank 14), operation"),
            HasSubstr("tag.micro_batch: is in encoder pipeline 3, but this micro-batch also "
                      "passes through pipeline 1, at stage 0 lane 1 (rank 2), operation"),
            HasSubstr("a micro-batch passes through one pipeline of a module")));
  // Layer 3 is on the second stage of every pipeline.
  EXPECT_THAT(RefusalWith(1, MakeTag(1, 3, 1, Phase::kForward, 1, 0)),
              AllOf(HasSubstr("tag.layer: this layer also runs at stage 0 lane 1 (rank 2)"),
                    HasSubstr("the same in all pipelines")));
}

TEST(PipelineCoverage, AMicroBatchThatNoPipelineRuns) {
  Complete complete;
  complete.builder().schedule().modules[1].skipped_micro_batches.clear();
  EXPECT_THAT(Refusal(complete.Take()),
              HasSubstr("module 'vit' layer 0 micro-batch 2 slice 0 forward: is missing"));
}

TEST(PipelineCoverage, BothLanesOfAPipelineOverTwo) {
  // Micro-batch 4 is in the audio pipeline of stage 1.
  EXPECT_THAT(RefusalWithout(3, MakeTag(2, 0, 4, Phase::kForward, -1, 0)),
              HasSubstr("module 'audio' layer 0 micro-batch 4 lane 1 forward: is missing"));
}

TEST(PipelineCoverage, ASkippedMicroBatchHasNoOperations) {
  const std::string refusal = RefusalWith(0, MakeTag(1, 0, kSkipped, Phase::kForward, 0, 0));
  EXPECT_THAT(refusal, AllOf(HasSubstr("stage 0 lane 0 (rank 0), operation"),
                             HasSubstr("tag.micro_batch: module 'vit' has no input in micro-batch "
                                       "2; hint: take it out of")));
  // Nor messages or a projector.
  Tag projector = MakeTag(1, kProjectorLayer, kSkipped, Phase::kForward);
  EXPECT_THAT(RefusalWith(0, projector), HasSubstr("has no input in micro-batch 2"));
  // Other modules have.
  EXPECT_THAT(RefusalWithout(0, MakeTag(0, 0, kSkipped, Phase::kForward, -1, 0)),
              HasSubstr("module 'llm' layer 0 micro-batch 2 lane 0 forward: is missing"));
}

TEST(PipelineCoverage, TheFirstMicroBatchMayBeSkipped) {
  Complete complete;
  Schedule schedule = complete.Take();
  schedule.modules[1].skipped_micro_batches = {0, kSkipped};
  for (Program& program : schedule.programs) {
    auto& operations = program.operations;
    operations.erase(std::remove_if(operations.begin(), operations.end(),
                                    [](const Operation& op) {
                                      return op.tag.module == 1 && op.tag.micro_batch == 0;
                                    }),
                     operations.end());
  }
  EXPECT_TRUE(Validate(schedule).ok()) << Validate(schedule);
  schedule.programs[2].operations.pop_back();
  EXPECT_THAT(Refusal(schedule), HasSubstr("is missing"));
}

TEST(PipelineCoverage, AModuleWithoutAnyInputHasNoOperations) {
  Complete complete;
  complete.builder().schedule().modules.push_back({"video", 7, false, 2, 0, {0, 1, 2, 3, 4, 5}});
  EXPECT_TRUE(Validate(complete.builder().schedule()).ok())
      << Validate(complete.builder().schedule());
  complete.builder().schedule().modules.back().skipped_micro_batches.pop_back();
  EXPECT_THAT(Refusal(complete.Take()), HasSubstr("module 'video': no operation belongs to it"));
}

}  // namespace
}  // namespace optimus::ir
