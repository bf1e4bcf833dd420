#include "executor/runtime/stamp.h"

#include "absl/strings/str_cat.h"
#include "executor/runtime/runtime.h"

namespace optimus::executor {
namespace {

// What the tag in the stamp says, where the operation itself cannot be looked up.
std::string DescribeTag(const ir::Schedule& schedule, const Stamp& stamp) {
  ir::Program program;
  program.operations.resize(1);
  ir::Operation& operation = program.operations[0];
  operation.tag = {.module = stamp.module,
                   .layer = stamp.layer,
                   .chunk = stamp.chunk,
                   .slice = stamp.slice,
                   .micro_batch = stamp.micro_batch,
                   .phase = static_cast<Phase>(stamp.phase)};
  return ir::Describe(schedule, program, 0);
}

bool IsRank(const ir::Schedule& schedule, std::int32_t rank) {
  return rank >= 0 && rank < schedule.world.gpus();
}

}  // namespace

Stamp StampOf(const ir::Program& program, std::uint32_t operation, int rank, int step) {
  const ir::Operation& op = program.operations[operation];
  Stamp stamp;
  stamp.rank = rank;
  stamp.operation = static_cast<std::int32_t>(operation);
  stamp.step = step;
  stamp.micro_batch = op.tag.micro_batch;
  stamp.module = op.tag.module;
  stamp.layer = op.tag.layer;
  stamp.chunk = op.tag.chunk;
  stamp.slice = op.tag.slice;
  stamp.phase = static_cast<std::int16_t>(op.tag.phase);
  stamp.work = static_cast<std::int16_t>(op.work & 0x7fff);
  return stamp;
}

bool SameCollective(const Stamp& a, const Stamp& b) {
  Stamp of_a = a;
  of_a.rank = b.rank;
  of_a.operation = b.operation;
  return of_a == b;
}

std::string Describe(const ir::Schedule& schedule, const Stamp& stamp) {
  if (stamp == Stamp()) return "nothing";
  const std::string where =
      absl::StrCat(" (operation ", stamp.operation, ", step ", stamp.step, ")");
  if (IsRank(schedule, stamp.rank)) {
    const ir::Program& program = schedule.programs[PlaceOf(schedule, stamp.rank).program];
    const auto count = static_cast<std::int64_t>(program.operations.size());
    if (stamp.operation >= 0 && stamp.operation < count) {
      const auto id = static_cast<std::uint32_t>(stamp.operation);
      if (StampOf(program, id, stamp.rank, stamp.step) == stamp) {
        return absl::StrCat("rank ", stamp.rank, ": ", ir::Describe(schedule, program, id), where);
      }
    }
  }
  return absl::StrCat("rank ", stamp.rank, ": ", DescribeTag(schedule, stamp), where);
}

}  // namespace optimus::executor
