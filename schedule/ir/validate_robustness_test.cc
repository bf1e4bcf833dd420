// Whatever a file holds: Validate never crashes, and what it accepts runs to the end.

#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using testing::HandCosts;
using testing::OneForwardOneBackward;
using testing::RandomSchedule;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  // Changes one field of one operation, or of the tables, to something small or extreme.
  void Change(Schedule& schedule) {
    Program& program = schedule.programs[random_() % schedule.programs.size()];
    if (program.operations.empty()) return;
    Operation& op = program.operations[random_() % program.operations.size()];
    switch (random_() % 13) {
      case 0:
        op.kind = static_cast<OperationKind>(random_() % 5);
        break;
      case 1:
        op.stream = static_cast<Stream>(random_() % 11);
        break;
      case 2:
        op.work = Value();
        break;
      case 3:
        op.peer_stage = Value();
        break;
      case 4:
        op.message = Value();
        break;
      case 5:
        op.first_dependency = static_cast<std::uint32_t>(Value());
        break;
      case 6:
        op.dependency_count = static_cast<std::uint32_t>(Value());
        break;
      case 7:
        op.tag.micro_batch = Value();
        break;
      case 8:
        op.tag.layer = static_cast<std::int16_t>(Value());
        break;
      case 9:
        op.tag.phase = static_cast<Phase>(random_() % 8);
        break;
      case 10:
        std::swap(op, program.operations[random_() % program.operations.size()]);
        break;
      case 11:
        op.peer_lane = Value();
        break;
      default:
        ChangeTables(schedule, program);
    }
  }

 private:
  std::int32_t Value() {
    using Limits = std::numeric_limits<std::int32_t>;
    const unsigned choice = random_() % 8;
    if (choice == 0) return Limits::max();
    if (choice == 1) return Limits::min();
    return static_cast<std::int32_t>(random_() % 12) - 2;
  }

  void ChangeGroup(Schedule& schedule) {
    if (schedule.groups.empty()) return;
    Group& group = schedule.groups[random_() % schedule.groups.size()];
    std::int32_t* const fields[] = {&group.pp_stride, &group.tp_block, &group.tp_stride,
                                    &group.pp_pair[0], &group.pp_pair[1]};
    *fields[random_() % 5] = Value();
  }

  void ChangeTables(Schedule& schedule, Program& program) {
    switch (random_() % 11) {
      case 0:
        schedule.world.dp = Value();
        break;
      case 1:
        schedule.gpus_per_node = Value();
        break;
      case 2:
        schedule.micro_batches = Value();
        break;
      case 3:
        program.stage = Value();
        break;
      case 4:
        if (!schedule.collectives.empty()) schedule.collectives[0].group = Value();
        break;
      case 5:
        schedule.lanes = Value();
        break;
      case 6:
        program.lane = Value();
        break;
      case 7:
        if (!schedule.modules.empty()) schedule.modules[0].pipelines = Value();
        break;
      case 8:
        if (!schedule.modules.empty()) schedule.modules[0].skipped_micro_batches = {Value()};
        break;
      case 9:
        ChangeGroup(schedule);
        break;
      default:
        if (program.dependencies.empty()) return;
        program.dependencies[random_() % program.dependencies.size()] =
            static_cast<std::uint32_t>(Value());
    }
  }

  std::mt19937 random_;
};

TEST(ValidateRobustness, WhatIsAcceptedRunsToTheEnd) {
  const HandCosts costs;
  int accepted = 0, refused = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    Schedule schedule =
        seed % 2 == 0
            ? RandomSchedule(seed, /*encoders=*/seed % 4 == 0, /*pairs=*/seed % 3 == 0).Build(40)
            : OneForwardOneBackward(3, 3, 1, 2, 1);
    Mutator mutator(seed);
    for (std::uint32_t changes = seed % 3 + 1; changes > 0; --changes) mutator.Change(schedule);
    // Shapes of groups are counted rank by rank; that is not what is tested here.
    if (schedule.world.dp > 1000) schedule.world.dp = 1000;
    const absl::Status status = Validate(schedule);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      ++refused;
      continue;
    }
    ++accepted;
    const absl::StatusOr<Timeline> timeline = CriticalPathRunner(costs).Run(schedule);
    ASSERT_TRUE(timeline.ok()) << "seed " << seed << ": " << timeline.status();
    for (const EntityAccount& entity : timeline->entities) {
      EXPECT_EQ(entity.account.total(), timeline->step) << "seed " << seed;
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace optimus::ir
