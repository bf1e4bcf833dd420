#include "sim/compiled_program.h"

#include <gtest/gtest.h>

#include "sim/testing.h"

namespace optimus::sim {
namespace {

using ir::testing::PhaseTag;
using ir::testing::ScheduleBuilder;

constexpr auto kCompute = static_cast<unsigned>(ir::Stream::kCompute);
constexpr auto kTensor = static_cast<unsigned>(ir::Stream::kTensorParallel);

struct Compiled {
  explicit Compiled(ir::Schedule s, Fidelity fidelity = Fidelity::kFolded)
      : schedule(std::move(s)),
        pricing(schedule, costs),
        layout(schedule, fidelity, true),
        compiler(schedule, layout, pricing),
        programs(compiler.CompileAll()) {}
  testing::WireCosts costs;
  ir::Schedule schedule;
  Pricing pricing;
  Layout layout;
  ProgramCompiler compiler;
  std::vector<CompiledProgram> programs;
};

// Three kernels, a tensor-parallel collective after the third, two kernels after it, an optimizer
// kernel.
ir::Schedule Small(int tp) {
  ScheduleBuilder builder({1, 1, tp});
  const auto group = builder.AddGroup("tp", false, false, true);
  const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, 100, group);
  const ir::Tag tag = PhaseTag(Phase::kForward);
  builder.AddKernel(0, tag, 1);
  const auto first = builder.AddKernel(0, tag, 2);
  const auto third = builder.AddKernel(0, tag, 4, {first});
  const auto gather =
      builder.AddCollective(0, ir::Stream::kTensorParallel, tag, work, {first, third});
  builder.AddKernel(0, tag, 8, {third, gather});
  builder.AddKernel(0, tag, 16, {gather});
  builder.AddKernel(0, PhaseTag(Phase::kOptimizer), 32);
  return builder.Take();
}

TEST(CompiledProgramTest, JoinsWhatNobodyWaitsForInTheMiddle) {
  const Compiled compiled(Small(2));
  const CompiledProgram& program = compiled.programs[0];
  const std::vector<Step>& steps = program.steps[kCompute];
  // Operation 1 is waited for by the collective, so it closes a step.
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].duration, 3);
  EXPECT_EQ(steps[0].wakes, 1U << kTensor);
  EXPECT_EQ(steps[1].duration, 4);
  EXPECT_EQ(steps[2].duration, 24);
  EXPECT_EQ(steps[3].duration, 32);
  EXPECT_EQ(steps[3].account, Account::kOptimizer);
  EXPECT_EQ(steps[4].kind, StepKind::kStreamEnd);
  EXPECT_EQ(program.OperationsOf(kCompute, 2).size(), 2U);
}

TEST(CompiledProgramTest, DropsImpliedDependencies) {
  const Compiled compiled(Small(2));
  const CompiledProgram& program = compiled.programs[0];
  // The collective waits for two steps, in listed order; the kernel after it for one.
  EXPECT_EQ(program.steps[kTensor][0].dependency_count, 2);
  const auto waits = program.DependenciesOf(program.steps[kCompute][2]);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].stream, kTensor);
  EXPECT_EQ(waits[0].position, 0U);
  EXPECT_EQ(waits[0].cause, ir::BubbleClass::kTp);
}

TEST(CompiledProgramTest, ACollectiveOfOneEntityIsLocal) {
  EXPECT_EQ(Compiled(Small(2), Fidelity::kGroup).programs[0].steps[kTensor][0].kind,
            StepKind::kFixed);
  EXPECT_EQ(Compiled(Small(2), Fidelity::kGpu).programs[0].steps[kTensor][0].kind,
            StepKind::kCollective);
  EXPECT_EQ(Compiled(Small(1), Fidelity::kGpu).programs[0].steps[kTensor][0].kind,
            StepKind::kFixed);
}

TEST(CompiledProgramTest, SlowedDurationsRoundEveryKernelByItself) {
  const Compiled compiled(Small(2));
  const auto durations = compiled.compiler.SlowedDurations(compiled.programs[0], 0, 1.4);
  EXPECT_EQ(durations[kCompute][0], 1 + 3);  // 1.4 and 2.8
  EXPECT_EQ(durations[kCompute][2], 11 + 22);
  EXPECT_EQ(durations[kTensor][0], 200);  // only kernels are slow
}

TEST(CompiledProgramTest, NvlinkContendsOnlyIfTwoStreamsUseIt) {
  ir::Schedule schedule = Small(2);
  EXPECT_FALSE(Compiled(schedule).pricing.nvlink_contends);
  ir::Operation other = schedule.programs[0].operations[3];
  other.stream = ir::Stream::kEncoderCommunication;
  schedule.programs[0].operations.push_back(other);
  EXPECT_TRUE(Compiled(schedule).pricing.nvlink_contends);
}

TEST(LayoutTest, MembersMeetByCoordinates) {
  ir::Schedule schedule;
  schedule.world = {2, 3, 4};
  const Layout layout(schedule, Fidelity::kGpu, false);
  const MemberSets dp(layout, schedule, {"dp", true, false, false});
  EXPECT_EQ(dp.instances(), 12);
  EXPECT_EQ(dp.members(), 2);
  const auto members = dp.Members(dp.InstanceOf(layout.Entity({1, 0, 2})));
  EXPECT_EQ(members[0], layout.Entity({1, 0, 2}));
  EXPECT_EQ(members[1], layout.Entity({1, 1, 2}));
  // In lockstep the ranks of a tensor-parallel group come along.
  const Layout lockstep(schedule, Fidelity::kGpu, true);
  EXPECT_EQ(MemberSets(lockstep, schedule, {"dp", true, false, false}).members(), 8);
  EXPECT_EQ(PortSets(lockstep, schedule).members(), 4);
  EXPECT_EQ(PortSets(layout, schedule).members(), 1);
}

}  // namespace
}  // namespace optimus::sim
