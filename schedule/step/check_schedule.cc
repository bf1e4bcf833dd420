#include "schedule/step/check_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/step/check_fields.h"

namespace optimus::step {
namespace {

constexpr char kSchedules[] =
    "GPIPE, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZB_H2, ZB_1P, ZB_2P, ZB_V, DUALPIPE, DUALPIPE_V or "
    "CUSTOM";

constexpr char kOnlyWithLimit[] =
    "remove it: only the orders of ZB_1P, ZB_2P and ZB_V are made for a memory limit";

std::string NameOf(const Plan& plan) { return Plan::PipelineSchedule_Name(plan.schedule()); }

bool HasTwoChunks(Plan::PipelineSchedule schedule) {
  return schedule == Plan::ZB_V || schedule == Plan::DUALPIPE || schedule == Plan::DUALPIPE_V;
}

absl::Status CheckChunks(const Plan& plan) {
  const std::string given = absl::StrCat(plan.model_chunks(), " with ", NameOf(plan));
  switch (plan.schedule()) {
    case Plan::CUSTOM:  // as many as the file has
      return absl::OkStatus();
    case Plan::INTERLEAVED:
      if (plan.model_chunks() > 1) return absl::OkStatus();
      return Bad("plan.model_chunks", given, "set 2 or more, or use schedule ONE_F_ONE_B");
    case Plan::ZB_V:
    case Plan::DUALPIPE_V:
      if (plan.model_chunks() == 2) return absl::OkStatus();
      return Bad("plan.model_chunks", given,
                 "it places two chunks a stage as a V; set 2 (or 0, the default)");
    case Plan::DUALPIPE:
      if (plan.model_chunks() == 2) return absl::OkStatus();
      return Bad("plan.model_chunks", given,
                 "a stage holds one chunk for each direction; set 2 (or 0, the default)");
    default:
      if (plan.model_chunks() == 1) return absl::OkStatus();
      return Bad("plan.model_chunks", given,
                 "only INTERLEAVED, ZB_V, DUALPIPE and DUALPIPE_V (and CUSTOM) run several model "
                 "chunks per stage; set 1");
  }
}

absl::Status CheckForeignFields(const Plan& plan) {
  const bool interleaved = plan.schedule() == Plan::INTERLEAVED;
  if (!interleaved && plan.micro_batch_group() != 0) {
    return Bad("plan.micro_batch_group", "is set without INTERLEAVED", "remove it");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckKnown("plan.warm_up", plan.warm_up(),
                                     Plan::WarmUp_IsValid(plan.warm_up()),
                                     "MEGATRON, DEFERRED or BEST"));
  if (!interleaved && plan.warm_up() != Plan::MEGATRON) {
    return Bad("plan.warm_up",
               absl::StrCat(Plan::WarmUp_Name(plan.warm_up()), " without INTERLEAVED"),
               "remove it: other schedules have one warm-up");
  }
  if ((plan.schedule() == Plan::CUSTOM) == !plan.schedule_file().empty()) return absl::OkStatus();
  if (plan.schedule_file().empty()) {
    return Bad("plan.schedule_file", "is missing for schedule CUSTOM",
               "name a compute schedule in CSV, one line a stage, for example \"mine.csv\"");
  }
  return Bad("plan.schedule_file", absl::StrCat("is set with ", NameOf(plan)),
             "remove it, or set schedule: CUSTOM");
}

absl::Status CheckProfiledTimes(const Experiment& experiment) {
  if (!experiment.has_profiled()) return absl::OkStatus();
  const Plan& plan = experiment.plan();
  const ProfiledStages& times = experiment.profiled();
  if (SplitsBackward(plan.schedule()) && times.weight_ms() == 0) {
    return Bad("profiled.weight_ms", absl::StrCat("is 0 with ", NameOf(plan)),
               "weight gradients run apart there: give their time, and in backward_ms that of the "
               "data gradients alone");
  }
  if (!SharesStage(plan.schedule()) && times.together_ms() != 0) {
    return Bad("profiled.together_ms", absl::StrCat("is set with ", NameOf(plan)),
               "remove it: only DUALPIPE, DUALPIPE_V and CUSTOM run a forward and a backward "
               "together");
  }
  if (const double longer = std::max(times.forward_ms(), times.backward_ms() + times.weight_ms());
      times.together_ms() != 0 && times.together_ms() < longer * (1 - 1e-12)) {
    return Bad("profiled.together_ms",
               absl::StrCat("is ", times.together_ms(), ", less than the longer half alone"),
               absl::StrCat("give ", longer, " or more, or 0: one after the other"));
  }
  if (HasMemoryLimit(plan.schedule())) return absl::OkStatus();
  if (times.has_weight_share()) {
    return Bad("profiled.weight_share", absl::StrCat("is set with ", NameOf(plan)),
               "remove it: only the orders of ZB_1P, ZB_2P and ZB_V depend on it");
  }
  if (times.memory_limit_micro_batches() != 0) {
    return Bad("profiled.memory_limit_micro_batches", absl::StrCat("is set with ", NameOf(plan)),
               kOnlyWithLimit);
  }
  return absl::OkStatus();
}

absl::Status CheckMemoryLimit(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  const double gib = plan.activation_limit_gib();
  if (gib != 0 && !HasMemoryLimit(plan.schedule())) {
    return Bad("plan.activation_limit_gib", absl::StrCat("is set with ", NameOf(plan)),
               kOnlyWithLimit);
  }
  if (!(gib >= 0 && std::isfinite(gib))) {
    return Bad("plan.activation_limit_gib", absl::StrCat("is ", gib),
               "give the GiB that a stage may keep, or 0 (the default)");
  }
  if (!experiment.has_profiled()) return absl::OkStatus();
  if (gib != 0) {
    return Bad("plan.activation_limit_gib", "is set for profiled stages, which have no bytes",
               "set profiled.memory_limit_micro_batches");
  }
  const double held = experiment.profiled().memory_limit_micro_batches();
  if (held == 0 || (held >= 1 && std::isfinite(held))) return absl::OkStatus();
  return Bad("profiled.memory_limit_micro_batches", absl::StrCat("is ", held),
             "a stage keeps at least 1 micro-batch; 0 is the default");
}

absl::Status CheckTwoCopies(const Plan& plan) {
  if (plan.schedule() != Plan::DUALPIPE || plan.strategy() != Plan::OPTIMUS) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "plan.schedule: DUALPIPE under strategy OPTIMUS, whose encoders work for one LLM that "
      "begins on stage 0, not for a second copy that begins on the last; use DUALPIPE_V or "
      "another schedule");
}

}  // namespace

bool SplitsBackward(Plan::PipelineSchedule schedule) {
  switch (schedule) {
    case Plan::ZB_H1:
    case Plan::ZB_H2:
    case Plan::ZB_1P:
    case Plan::ZB_2P:
    case Plan::ZB_V:
    case Plan::DUALPIPE:
    case Plan::DUALPIPE_V:
      return true;
    default:
      return false;
  }
}

bool SharesStage(Plan::PipelineSchedule schedule) {
  return schedule == Plan::DUALPIPE || schedule == Plan::DUALPIPE_V || schedule == Plan::CUSTOM;
}

bool HasMemoryLimit(Plan::PipelineSchedule schedule) {
  return schedule == Plan::ZB_1P || schedule == Plan::ZB_2P || schedule == Plan::ZB_V;
}

int VirtualStages(const Plan& plan) {
  return plan.pipeline_parallel() * plan.model_chunks() / ModelCopies(plan);
}

int ModelCopies(const Plan& plan) { return plan.schedule() == Plan::DUALPIPE ? 2 : 1; }

std::int64_t OptimizerShards(const Plan& plan) {
  if (plan.no_distributed_optimizer()) return 1;
  return std::int64_t{plan.data_parallel()} * ModelCopies(plan);
}

void FillScheduleDefaults(Plan& plan) {
  if (plan.model_chunks() == 0) plan.set_model_chunks(HasTwoChunks(plan.schedule()) ? 2 : 1);
  if (plan.schedule() == Plan::INTERLEAVED && plan.micro_batch_group() == 0) {
    plan.set_micro_batch_group(plan.pipeline_parallel());
  }
}

void UseSchedule(Plan::PipelineSchedule schedule, Experiment& experiment) {
  Plan& plan = *experiment.mutable_plan();
  if (experiment.has_profiled()) {
    ProfiledStages& times = *experiment.mutable_profiled();
    if (!SharesStage(schedule)) times.clear_together_ms();
    if (!HasMemoryLimit(schedule)) {
      times.clear_weight_share();
      times.clear_memory_limit_micro_batches();
    }
  }
  if (!HasMemoryLimit(schedule)) plan.clear_activation_limit_gib();
  if (plan.schedule() != schedule || schedule != Plan::INTERLEAVED) {
    plan.clear_micro_batch_group();
    plan.clear_warm_up();
  }
  plan.set_schedule(schedule);
  plan.clear_schedule_file();
  if (schedule != Plan::INTERLEAVED) {
    plan.clear_model_chunks();  // the default
  } else if (plan.model_chunks() < 2) {
    plan.set_model_chunks(2);
  }
}

absl::Status CheckPipelineSchedule(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  OPTIMUS_RETURN_IF_ERROR(CheckChosen("plan.schedule", plan.schedule(),
                                      Plan::PipelineSchedule_IsValid(plan.schedule()), kSchedules));
  OPTIMUS_RETURN_IF_ERROR(CheckChunks(plan));
  OPTIMUS_RETURN_IF_ERROR(CheckForeignFields(plan));
  OPTIMUS_RETURN_IF_ERROR(CheckProfiledTimes(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckMemoryLimit(experiment));
  return CheckTwoCopies(plan);
}

}  // namespace optimus::step
