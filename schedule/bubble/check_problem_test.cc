#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/functional/function_ref.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

using ::testing::HasSubstr;

Picoseconds Ps(std::int64_t value) { return Picoseconds(value); }

// Two stages, one pipeline over both.
Problem Good() {
  testing::RandomShape shape;
  shape.stages = 2;
  shape.skipping = false;
  for (shape.seed = 1;; ++shape.seed) {
    Problem problem = testing::RandomProblem(shape);
    const bool both = problem.encoders[0].plan.pipeline_parallel == 2;
    const bool trained = !problem.encoders[0].frozen;
    if (both && trained && problem.llm.stages[0].compute_idle.size() > 1) return problem;
  }
}

std::string Fault(absl::FunctionRef<void(Problem&)> spoil) {
  Problem problem = Good();
  EXPECT_TRUE(CheckProblem(problem).ok()) << CheckProblem(problem);
  spoil(problem);
  return std::string(CheckProblem(problem).message());
}

TEST(CheckProblem, RandomProblemsAreWellFormed) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomShape shape;
    shape.seed = seed;
    shape.stages = 4;
    shape.tensor_parallel = 4;
    shape.encoders = 2;
    const absl::Status status = CheckProblem(testing::RandomProblem(shape));
    EXPECT_TRUE(status.ok()) << status << " seed " << seed;
  }
}

TEST(CheckProblem, NamesFaultsOfTheLlm) {
  EXPECT_THAT(Fault([](Problem& p) { p.lanes = 3; }), HasSubstr("lanes: 3"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.stages.clear(); }), HasSubstr("llm.stages"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.stages[1].first_start = Ps(-1); }),
              HasSubstr("llm.stages[1]"));
  EXPECT_THAT(Fault([](Problem& p) {
                std::swap(p.llm.stages[0].compute_idle[0], p.llm.stages[0].compute_idle[1]);
              }),
              HasSubstr("llm.stages[0].compute_idle[1]"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.backward_made.pop_back(); }),
              HasSubstr("4 micro-batches in forward_needed, 3 in backward_made"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.forward_needed[1] = Ps(-1); }),
              HasSubstr("llm.forward_needed"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.backward_made[3] = p.llm.forward_needed[3] - Ps(1); }),
              HasSubstr("llm.backward_made[3]"));
  EXPECT_THAT(Fault([](Problem& p) { p.llm.step += Ps(1); }), HasSubstr("llm.step"));
}

TEST(CheckProblem, NamesFaultsOfPlansAndShapes) {
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].plan.pipeline_parallel = 3; }),
              HasSubstr("encoders[0].plan: pipeline parallelism 3 does not divide the LLM's 2"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].plan.tensor_parallel = 2; }),
              HasSubstr("tensor parallelism 2 does not divide the LLM's 1"));
  EXPECT_THAT(Fault([](Problem& p) {
                p.encoders[0].micro_batches = {1, 0};
              }),
              HasSubstr("encoders[0].micro_batches"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].micro_batches = {4}; }), HasSubstr("below 4"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].forward.pop_back(); }),
              HasSubstr("an entry for each of its 2 stages"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].forward_hop.clear(); }),
              HasSubstr("must have 1 entries"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].to_llm = {Ps(-1)}; }),
              HasSubstr("negative time"));
  EXPECT_THAT(Fault([](Problem& p) { p.encoders[0].sync.gathers.resize(3); }),
              HasSubstr("encoders[0].sync.gathers: 3 entries"));
}

TEST(CheckProblem, NamesFaultsOfWork) {
  const auto op = [](Problem& p) -> WorkOp& { return p.encoders[0].forward[1].ops[1]; };
  const std::string name = "encoders[0].forward[1]";
  EXPECT_THAT(Fault([&](Problem& p) { op(p).duration = Ps(-1); }),
              HasSubstr(name + ".ops[1]: negative duration"));
  EXPECT_THAT(Fault([&](Problem& p) { op(p).input_part = 9; }),
              HasSubstr(name + ".ops[1]: input part 9"));
  EXPECT_THAT(Fault([&](Problem& p) { op(p).dependency_count = 1000; }),
              HasSubstr(name + ".ops[1]: dependencies end at"));
  EXPECT_THAT(Fault([&](Problem& p) {
                op(p).first_dependency = 0;
                op(p).dependency_count = 1;
                p.encoders[0].forward[1].dependencies[0] = 1;
              }),
              HasSubstr("depends on op 1, which is not before it"));
  EXPECT_THAT(Fault([&](Problem& p) { p.encoders[0].forward[1].chain.pop_back(); }),
              HasSubstr(name + ".chain"));
  EXPECT_THAT(Fault([&](Problem& p) { op(p).duration += Ps(1); }), HasSubstr("are not the sums"));
  EXPECT_THAT(Fault([&](Problem& p) { p.encoders[0].forward[1].outputs = {999}; }),
              HasSubstr(name + ".outputs: op 999"));
  EXPECT_THAT(Fault([&](Problem& p) { p.encoders[0].forward[0].outputs.push_back(0); }),
              HasSubstr("parts go out, the next stage takes"));
}

TEST(CheckProblem, RefusesTimesThatWouldOverflow) {
  EXPECT_THAT(Fault([](Problem& p) {
                StageWork& work = p.encoders[0].forward[0];
                const Picoseconds large(std::int64_t{1} << 60);
                for (WorkOp& op : work.ops) {
                  (op.resource == Resource::kCompute ? work.compute : work.link) +=
                      large - op.duration;
                  op.duration = large;
                  break;
                }
              }),
              HasSubstr("more than times can hold"));
}

}  // namespace
}  // namespace optimus::bubble
