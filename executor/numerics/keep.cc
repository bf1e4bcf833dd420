#include "executor/numerics/keep.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor::numerics {
namespace {

using LastUses = std::map<const Slot*, std::uint32_t>;

const ir::Operation& OperationOf(const Context& context, std::uint32_t id) {
  return context.place.program->operations[id];
}

// By tensor: the last weight gradient that needs it.
LastUses LastWeightGradients(const Context& context, const std::deque<Task>& tasks) {
  LastUses last;
  for (std::uint32_t id = 0; id < tasks.size(); ++id) {
    if (OperationOf(context, id).tag.phase != Phase::kWeightGradient) continue;
    for (const Slot* slot : tasks[id].needs) last[slot] = id;
  }
  return last;
}

// Full recomputation makes a tensor again: what was dropped before is another one.
bool IsMadeBetween(const Slot& slot, std::uint32_t first, std::uint32_t last) {
  return std::any_of(slot.makers.begin(), slot.makers.end(),
                     [&](std::uint32_t maker) { return maker > first && maker < last; });
}

bool IsComputeKernel(const ir::Operation& op) {
  return op.kind == ir::OperationKind::kKernel && op.stream == ir::Stream::kCompute;
}

absl::Status CheckInOrder(const Context& context, std::uint32_t dropper, std::uint32_t last,
                          const Slot& slot) {
  if (IsComputeKernel(OperationOf(context, dropper)) &&
      IsComputeKernel(OperationOf(context, last))) {
    return absl::OkStatus();
  }
  const ir::Program& program = *context.place.program;
  return absl::UnimplementedError(absl::StrCat(
      "numerics: stage ", program.stage, ", operation ", last, " (",
      ir::Describe(context.schedule(), program, last), ") needs the ", Describe(slot.key),
      ", which operation ", dropper, " (", ir::Describe(context.schedule(), program, dropper),
      ") lets go on another stream; use a schedule of whole backwards (ONE_F_ONE_B), or run "
      "without --numerics"));
}

}  // namespace

absl::Status KeepForWeightGradients(const Context& context, std::deque<Task>& tasks) {
  const LastUses last_uses = LastWeightGradients(context, tasks);
  for (std::uint32_t id = 0; id < tasks.size(); ++id) {
    Task& task = tasks[id];
    const auto moved =
        std::stable_partition(task.drops.begin(), task.drops.end(), [&](const Slot* slot) {
          const auto last = last_uses.find(slot);
          return last == last_uses.end() || last->second <= id ||
                 IsMadeBetween(*slot, id, last->second);
        });
    task.keeps.assign(moved, task.drops.end());
    task.drops.erase(moved, task.drops.end());
    for (Slot* slot : task.keeps) {
      const std::uint32_t last = last_uses.at(slot);
      OPTIMUS_RETURN_IF_ERROR(CheckInOrder(context, id, last, *slot));
      tasks[last].drops.push_back(slot);
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::executor::numerics
