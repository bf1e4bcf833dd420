#include "schedule/step/custom_order.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "schedule/pipeline/compute_schedule_csv.h"
#include "schedule/step/check.h"
#include "schedule/step/check_fields.h"

namespace optimus::step {
namespace {

// `where` names the file unless the message does.
absl::Status InField(const std::string& where, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("plan.schedule_file: ", where, std::string(status.message())));
}

absl::Status CheckCount(const Plan& plan, const std::string& field, int in_plan,
                        const std::string& what, int in_file) {
  if (in_plan == in_file) return absl::OkStatus();
  return Bad(
      field,
      absl::StrCat("makes ", in_plan, " ", what, ", but ", plan.schedule_file(), " has ", in_file),
      "make them the same");
}

bool RunsWeightsApart(const pipeline::Order& order) {
  return std::any_of(order.slots.begin(), order.slots.end(), [](const auto& slots) {
    return std::any_of(slots.begin(), slots.end(), [](const pipeline::Slot& slot) {
      return slot.kind == pipeline::SlotKind::kBackwardWeight;
    });
  });
}

absl::StatusOr<pipeline::ComputeSchedule> ReadSchedule(const Plan& plan) {
  const absl::StatusOr<std::string> text = ReadFile(plan.schedule_file());
  if (!text.ok()) return InField("", text.status());
  absl::StatusOr<pipeline::ComputeSchedule> read = pipeline::ReadComputeSchedule(*text);
  if (!read.ok()) return InField(plan.schedule_file() + ": ", read.status());
  return read;
}

}  // namespace

absl::StatusOr<pipeline::Order> ReadCustomOrder(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  OPTIMUS_ASSIGN_OR_RETURN(pipeline::ComputeSchedule read, ReadSchedule(plan));
  const pipeline::Order& order = read.order;
  OPTIMUS_RETURN_IF_ERROR(
      CheckCount(plan, "plan.pipeline_parallel", plan.pipeline_parallel(), "stages", order.stages));
  OPTIMUS_RETURN_IF_ERROR(CheckCount(plan, "plan.model_chunks", plan.model_chunks(),
                                     "model chunks a stage", order.chunks));
  OPTIMUS_RETURN_IF_ERROR(CheckCount(plan, "batch.global_batch", MicroBatches(experiment),
                                     "micro-batches of a pipeline", order.micro_batches));
  if (experiment.has_profiled() && experiment.profiled().weight_ms() == 0 &&
      RunsWeightsApart(order)) {
    return Bad("profiled.weight_ms",
               absl::StrCat("is 0, but ", plan.schedule_file(), " runs weight gradients apart"),
               "give their time, and in backward_ms that of the data gradients alone");
  }
  return std::move(read.order);
}

absl::StatusOr<std::string> CommunicationLeftOut(const Plan& plan) {
  OPTIMUS_ASSIGN_OR_RETURN(const pipeline::ComputeSchedule read, ReadSchedule(plan));
  if (read.left_out.empty()) return "";
  const std::string actions = absl::StrJoin(
      read.left_out, ", ", [](std::string* out, const std::pair<std::string, std::int64_t>& left) {
        absl::StrAppend(out, left.second, " ", left.first);
      });
  return absl::StrCat("schedule file: its communication is left out (", actions,
                      "); messages follow from the order, data-parallel communication from the "
                      "plan");
}

}  // namespace optimus::step
