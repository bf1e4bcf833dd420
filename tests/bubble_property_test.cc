// Random problems for both bubble schedulers, checked by the verifier, and the invariants of the
// bubble scheduler one by one. Which of the 24 invariants is tested where:
//    1, 2  schedule/pipeline: orders_test, interleaved_test
//    3     models: accounting_test (FlopsOfTheStrongScalingRow)
//    4     models: layers_test; tests: paper_test
//    5, 6  schedule/ir: bubbles_test; tests: paper_test
//    7-14, 16-18, 23  here
//    15    schedule/bubble: paper_test
//    19    schedule/planner: splits_test
//    20    schedule/partition: balanced_test
//    21    schedule/planner: encoder_plan_test
//    22    here, on the emitted Schedule: optimus_property_test
//    24    schedule/step: data parallel
// RC_PARAMS (see rapidcheck's guide) overrides seed and number of cases.

#include <cstdlib>

#include "gmock/gmock.h"
#include "rapidcheck/gtest.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"
#include "schedule/bubble/verify.h"

namespace optimus::bubble {
namespace {

using testing::NaiveResult;
using testing::RandomProblem;
using testing::RandomShape;

// The same cases in every run; read by rapidcheck at the first property.
const bool kCases = setenv("RC_PARAMS", "seed=20240805 max_success=1000 max_size=100", 0) == 0;

RandomShape AnyShape() {
  RandomShape shape;
  shape.stages = *rc::gen::inRange(1, 5).as("stages");
  shape.tensor_parallel = 1 << *rc::gen::inRange(0, 3).as("log2 of tensor parallelism");
  shape.encoders = *rc::gen::inRange(1, 4).as("encoders");
  shape.micro_batches = *rc::gen::inRange(0, 7).as("micro-batches");
  shape.encoder_scale = *rc::gen::inRange(1, 40).as("longest encoder op");
  shape.llm_scale = *rc::gen::inRange(1, 60).as("longest LLM op");
  shape.frozen = *rc::gen::weightedElement<bool>({{8, false}, {1, true}}).as("frozen");
  shape.sync = *rc::gen::arbitrary<bool>().as("sync");
  shape.transfers = *rc::gen::arbitrary<bool>().as("transfers");
  shape.skipping = *rc::gen::arbitrary<bool>().as("skipping");
  shape.seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()).as("seed");
  return shape;
}

RC_GTEST_PROP(Every, PaperResultPassesTheVerifier, ()) {
  const Problem problem = RandomProblem(AnyShape());
  const auto result = SchedulePaper(problem, {});
  RC_ASSERT(result.ok());
  const absl::Status status = Verify(problem, *result);
  if (!status.ok()) RC_FAIL(std::string(status.message()));
  const absl::Status paper = VerifyPaperRules(problem, *result);
  if (!paper.ok()) RC_FAIL(std::string(paper.message()));
}

RC_GTEST_PROP(Every, ListResultPassesTheVerifier, ()) {
  const Problem problem = RandomProblem(AnyShape());
  const auto result = ScheduleList(problem, {});
  RC_ASSERT(result.ok());
  const absl::Status status = Verify(problem, *result);
  if (!status.ok()) RC_FAIL(std::string(status.message()));
}

}  // namespace
}  // namespace optimus::bubble
