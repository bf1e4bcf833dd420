#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/compute_schedule_cells.h"
#include "schedule/pipeline/compute_schedule_csv.h"
#include "schedule/pipeline/order_span.h"

namespace optimus::pipeline {
namespace {

// Every action, and every pair that shares the stage, lasts one step.
absl::StatusOr<OrderSpan> InSteps(const Order& order) {
  const Picoseconds step(1);
  SlotTimes times = UniformTimes(order, step, step, step, Picoseconds(0));
  times.backward = times.forward;
  times.together = times.forward;
  return EvaluateOrder(order, times);
}

CsvAction ActionOf(const Order& order, std::size_t rank, const Slot& slot) {
  return {slot.kind, VirtualStageOf(order, rank, slot), slot.micro_batch, slot.with_next};
}

std::string RowText(const Order& order, std::size_t rank,
                    const std::vector<SlotInterval>& intervals) {
  const std::vector<Slot>& slots = order.slots[rank];
  std::string row;
  std::int64_t column = 0;  // of the cell that `row` ends with
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::int64_t step = intervals[i].start.value();
    row.append(static_cast<std::size_t>(step - column), ',');
    column = step;
    const CsvAction action = ActionOf(order, rank, slots[i]);
    if (slots[i].with_next) {
      ++i;
      absl::StrAppend(&row, CellText(action, ActionOf(order, rank, slots[i])));
    } else {
      absl::StrAppend(&row, CellText(action));
    }
  }
  return row;
}

}  // namespace

absl::StatusOr<std::string> WriteComputeSchedule(const Order& order) {
  if (order.placement == Placement::kBidirectional) {
    return absl::InvalidArgumentError(
        "a bidirectional order (DualPipe) has every stage on two ranks, and a pipeline-schedule "
        "CSV has one rank a stage; DualPipeV is the same schedule on half the ranks, and can be "
        "written");
  }
  OPTIMUS_ASSIGN_OR_RETURN(const OrderSpan span, InSteps(order));
  std::string text;
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    absl::StrAppend(&text, RowText(order, rank, span.slots[rank]), "\n");
  }
  return text;
}

}  // namespace optimus::pipeline
