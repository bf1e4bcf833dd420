// The world, the modules and the groups.

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

absl::Status CheckProgramOrder(const Schedule& schedule) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const Program& program = schedule.programs[p];
    const auto stage = static_cast<std::int32_t>(p) / schedule.lanes;
    const auto lane = static_cast<std::int32_t>(p) % schedule.lanes;
    if (program.stage == stage && program.lane == lane) continue;
    const bool wrong_stage = program.stage != stage;
    return FieldError(absl::StrCat("programs[", p, "]"), wrong_stage ? "stage" : "lane",
                      absl::StrCat("is ", wrong_stage ? program.stage : program.lane, ", not ",
                                   wrong_stage ? stage : lane),
                      schedule.lanes == 1 ? "programs are ordered by stage, from 0"
                                          : "programs are ordered by stage, then lane, from 0");
  }
  return absl::OkStatus();
}

// dp * pp * tp is known to be a number of 32 bits.
absl::Status CheckLanes(const Schedule& schedule) {
  const Parallelism& world = schedule.world;
  OPTIMUS_RETURN_IF_ERROR(AtLeast("", "lanes", schedule.lanes, 1));
  if (world.tp % schedule.lanes != 0) {
    return FieldError("", "lanes",
                      absl::StrCat(schedule.lanes, " lanes do not divide the ", world.tp,
                                   " tensor-parallel ranks (world.tp)"),
                      "a lane is a block of tp / lanes ranks");
  }
  if (schedule.programs.size() == static_cast<std::size_t>(world.pp) * schedule.lanes) {
    return CheckProgramOrder(schedule);
  }
  const bool one = schedule.lanes == 1;
  return FieldError("", "programs",
                    absl::StrCat(schedule.programs.size(), " programs for ", world.pp,
                                 " pipeline stages (world.pp)",
                                 one ? "" : absl::StrCat(" of ", schedule.lanes, " lanes")),
                    one ? "one program per stage" : "one program per stage and lane");
}

absl::Status CheckWorld(const Schedule& schedule) {
  const Parallelism& world = schedule.world;
  OPTIMUS_RETURN_IF_ERROR(AtLeast("world", "dp", world.dp, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast("world", "pp", world.pp, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast("world", "tp", world.tp, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast("", "gpus_per_node", schedule.gpus_per_node, 1));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t replicas = std::int64_t{world.dp} * world.pp;  // below 2^62
  if (replicas > kMost / world.tp) {
    return FieldError("", "world",
                      absl::StrCat("dp * pp * tp = ", world.dp, " * ", world.pp, " * ", world.tp,
                                   " GPUs are too many"),
                      absl::StrCat("at most ", kMost));
  }
  return CheckLanes(schedule);
}

// A block or a stride along the tensor-parallel axis, or a module's part of it.
absl::Status CheckTensorExtent(const Schedule& schedule, const std::string& where,
                               absl::string_view field, std::int32_t extent) {
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, field, extent, 0));
  const std::int32_t width = LaneWidth(schedule);
  if (extent == 0 || (extent % width == 0 && schedule.world.tp % extent == 0)) {
    return absl::OkStatus();
  }
  return FieldError(where, field,
                    absl::StrCat(extent, " does not fit tp ", schedule.world.tp, " in ",
                                 schedule.lanes, schedule.lanes == 1 ? " lane" : " lanes"),
                    absl::StrCat("a multiple of a lane's ", width, " ranks that divides tp"));
}

absl::Status CheckPair(const Schedule& schedule, const Group& group, const std::string& where) {
  if (!group.paired()) return absl::OkStatus();
  const auto [first, second] = group.pp_pair;
  if (!group.over_pp) {
    return FieldError(where, "pp_pair", "narrows an axis that the group is not over",
                      "set over_pp, or leave it out");
  }
  if (group.pp_stride > 0) {
    return FieldError(where, "pp_pair", "is set together with pp_stride", "leave one of them out");
  }
  if (first >= 0 && first < second && second < schedule.world.pp) return absl::OkStatus();
  return FieldError(where, "pp_pair",
                    absl::StrCat("stages ", first, " and ", second, " are not a pair of the ",
                                 schedule.world.pp, " pipeline stages"),
                    "two stages below world.pp, ascending");
}

absl::Status CheckGroup(const Schedule& schedule, const Group& group, const std::string& where) {
  const std::int32_t pp = schedule.world.pp;
  OPTIMUS_RETURN_IF_ERROR(CheckPair(schedule, group, where));
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "pp_stride", group.pp_stride, 0));
  if (group.pp_stride > 0 && (!group.over_pp || pp % group.pp_stride != 0)) {
    return FieldError(
        where, "pp_stride",
        group.over_pp
            ? absl::StrCat(group.pp_stride, " does not divide the ", pp, " pipeline stages")
            : "narrows an axis that the group is not over",
        group.over_pp ? "world.pp is a multiple of it" : "set over_pp, or leave it out");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckTensorExtent(schedule, where, "tp_block", group.tp_block));
  OPTIMUS_RETURN_IF_ERROR(CheckTensorExtent(schedule, where, "tp_stride", group.tp_stride));
  if (group.tp_block > 0 && group.tp_stride > 0) {
    return FieldError(where, "tp_stride", "is set together with tp_block", "leave one of them out");
  }
  if (group.over_tp || (group.tp_block == 0 && group.tp_stride == 0)) return absl::OkStatus();
  return FieldError(where, group.tp_block > 0 ? "tp_block" : "tp_stride",
                    "narrows an axis that the group is not over", "set over_tp, or leave it out");
}

// Pipelines of a module lie side by side: each on a block of tensor-parallel ranks, and on as many
// neighbouring stages as every other.
absl::Status CheckPipelines(const Schedule& schedule, const ModuleInfo& module,
                            const std::string& where) {
  const Parallelism& world = schedule.world;
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "pipelines", module.pipelines, 0));
  OPTIMUS_RETURN_IF_ERROR(
      CheckTensorExtent(schedule, where, "tensor_parallel", module.tensor_parallel));
  const std::int32_t ranks = module.tensor_parallel == 0 ? world.tp : module.tensor_parallel;
  if (module.pipelines == 0) {
    if (ranks == world.tp) return absl::OkStatus();
    return FieldError(
        where, "tensor_parallel",
        absl::StrCat(ranks, " of ", world.tp, " ranks, but the module has no pipelines"),
        "only pipelines are on a part of the tensor-parallel ranks");
  }
  const std::int32_t blocks = world.tp / ranks;
  if (module.pipelines % blocks == 0 && world.pp % (module.pipelines / blocks) == 0) {
    return absl::OkStatus();
  }
  return FieldError(where, "pipelines",
                    absl::StrCat(module.pipelines, " do not share ", world.pp, " stages with ",
                                 blocks, " blocks of ranks each"),
                    "pipelines = (pp / stages of a pipeline) * (tp / tensor_parallel)");
}

absl::Status CheckDirections(const ModuleInfo& module, const std::string& where) {
  if (!module.both_directions || module.pipelines == 0) return absl::OkStatus();
  return FieldError(where, "both_directions", "is set for a module with pipelines of its own",
                    "leave one of them out");
}

absl::Status CheckSkipped(const Schedule& schedule, const ModuleInfo& module,
                          const std::string& where) {
  std::int32_t before = -1;
  for (const std::int32_t micro_batch : module.skipped_micro_batches) {
    if (micro_batch > before && micro_batch < schedule.micro_batches) {
      before = micro_batch;
      continue;
    }
    return FieldError(where, "skipped_micro_batches",
                      absl::StrCat(micro_batch, " is out of range, twice or out of order"),
                      absl::StrCat("micro-batches below ", schedule.micro_batches, ", ascending"));
  }
  return absl::OkStatus();
}

absl::Status CheckModules(const Schedule& schedule) {
  OPTIMUS_RETURN_IF_ERROR(
      AtLeast("", "micro_batches", schedule.micro_batches, schedule.modules.empty() ? 0 : 1));
  for (std::size_t i = 0; i < schedule.modules.size(); ++i) {
    const ModuleInfo& module = schedule.modules[i];
    const std::string where = absl::StrCat("modules[", i, "] ('", module.name, "')");
    OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "layers", module.layers, 1));
    OPTIMUS_RETURN_IF_ERROR(CheckPipelines(schedule, module, where));
    OPTIMUS_RETURN_IF_ERROR(CheckDirections(module, where));
    OPTIMUS_RETURN_IF_ERROR(CheckSkipped(schedule, module, where));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTables(const Schedule& schedule) {
  OPTIMUS_RETURN_IF_ERROR(CheckWorld(schedule));
  OPTIMUS_RETURN_IF_ERROR(CheckModules(schedule));
  for (std::size_t i = 0; i < schedule.groups.size(); ++i) {
    const Group& group = schedule.groups[i];
    OPTIMUS_RETURN_IF_ERROR(
        CheckGroup(schedule, group, absl::StrCat("groups[", i, "] ('", group.name, "')")));
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
