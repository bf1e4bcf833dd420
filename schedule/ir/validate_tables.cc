// The world and the tables that operations point into.

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

absl::Status Error(const std::string& where, absl::string_view field, absl::string_view what,
                   absl::string_view hint) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, where.empty() ? "" : ".", field, ": ", what, "; hint: ", hint));
}

absl::Status AtLeast(const std::string& where, absl::string_view field, std::int64_t value,
                     std::int64_t least) {
  if (value >= least) return absl::OkStatus();
  return Error(where, field, absl::StrCat(value, " is too small"),
               absl::StrCat("at least ", least));
}

absl::Status CheckProgramOrder(const Schedule& schedule) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const Program& program = schedule.programs[p];
    const auto stage = static_cast<std::int32_t>(p) / schedule.lanes;
    const auto lane = static_cast<std::int32_t>(p) % schedule.lanes;
    if (program.stage == stage && program.lane == lane) continue;
    const bool wrong_stage = program.stage != stage;
    return Error(absl::StrCat("programs[", p, "]"), wrong_stage ? "stage" : "lane",
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
    return Error("", "lanes",
                 absl::StrCat(schedule.lanes, " lanes do not divide the ", world.tp,
                              " tensor-parallel ranks (world.tp)"),
                 "a lane is a block of tp / lanes ranks");
  }
  if (schedule.programs.size() == static_cast<std::size_t>(world.pp) * schedule.lanes) {
    return CheckProgramOrder(schedule);
  }
  const bool one = schedule.lanes == 1;
  return Error("", "programs",
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
    return Error("", "world",
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
  return Error(where, field,
               absl::StrCat(extent, " does not fit tp ", schedule.world.tp, " in ", schedule.lanes,
                            schedule.lanes == 1 ? " lane" : " lanes"),
               absl::StrCat("a multiple of a lane's ", width, " ranks that divides tp"));
}

absl::Status CheckGroup(const Schedule& schedule, const Group& group, const std::string& where) {
  const std::int32_t pp = schedule.world.pp;
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "pp_stride", group.pp_stride, 0));
  if (group.pp_stride > 0 && (!group.over_pp || pp % group.pp_stride != 0)) {
    return Error(where, "pp_stride",
                 group.over_pp ? absl::StrCat(group.pp_stride, " does not divide the ", pp,
                                              " pipeline stages")
                               : "narrows an axis that the group is not over",
                 group.over_pp ? "world.pp is a multiple of it" : "set over_pp, or leave it out");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckTensorExtent(schedule, where, "tp_block", group.tp_block));
  OPTIMUS_RETURN_IF_ERROR(CheckTensorExtent(schedule, where, "tp_stride", group.tp_stride));
  if (group.tp_block > 0 && group.tp_stride > 0) {
    return Error(where, "tp_stride", "is set together with tp_block", "leave one of them out");
  }
  if (group.over_tp || (group.tp_block == 0 && group.tp_stride == 0)) return absl::OkStatus();
  return Error(where, group.tp_block > 0 ? "tp_block" : "tp_stride",
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
    return Error(where, "tensor_parallel",
                 absl::StrCat(ranks, " of ", world.tp, " ranks, but the module has no pipelines"),
                 "only pipelines are on a part of the tensor-parallel ranks");
  }
  const std::int32_t blocks = world.tp / ranks;
  if (module.pipelines % blocks == 0 && world.pp % (module.pipelines / blocks) == 0) {
    return absl::OkStatus();
  }
  return Error(where, "pipelines",
               absl::StrCat(module.pipelines, " do not share ", world.pp, " stages with ", blocks,
                            " blocks of ranks each"),
               "pipelines = (pp / stages of a pipeline) * (tp / tensor_parallel)");
}

absl::Status CheckSkipped(const Schedule& schedule, const ModuleInfo& module,
                          const std::string& where) {
  std::int32_t before = -1;
  for (const std::int32_t micro_batch : module.skipped_micro_batches) {
    if (micro_batch > before && micro_batch < schedule.micro_batches) {
      before = micro_batch;
      continue;
    }
    return Error(where, "skipped_micro_batches",
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
    OPTIMUS_RETURN_IF_ERROR(CheckSkipped(schedule, module, where));
  }
  return absl::OkStatus();
}

absl::Status CheckGemm(const Kernel& kernel, const std::string& where) {
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "gemm.m", kernel.gemm.m, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "gemm.n", kernel.gemm.n, 1));
  return AtLeast(where, "gemm.k", kernel.gemm.k, 1);
}

absl::Status CheckAttention(const Kernel& kernel, const std::string& where) {
  const AttentionShape& shape = kernel.attention;
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "attention.sequences", shape.sequences, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "attention.heads", shape.heads, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "attention.kv_heads", shape.kv_heads, 1));
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "attention.sequence_length", shape.sequence_length, 1));
  return AtLeast(where, "attention.head_dim", shape.head_dim, 1);
}

absl::Status CheckFlops(const Kernel& kernel, const std::string& where) {
  const double flops = kernel.flops.value();
  if (std::isfinite(flops) && flops > 0) return absl::OkStatus();
  return Error(where, "flops", absl::StrCat(flops, " is no amount of work"),
               "a finite number above 0");
}

absl::Status CheckKernel(const Kernel& kernel, const std::string& where) {
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "bytes", kernel.bytes.value(), 0));
  switch (kernel.kind) {
    case KernelKind::kGemm:
      OPTIMUS_RETURN_IF_ERROR(CheckGemm(kernel, where));
      return CheckFlops(kernel, where);
    case KernelKind::kAttention:
      OPTIMUS_RETURN_IF_ERROR(CheckAttention(kernel, where));
      return CheckFlops(kernel, where);
    case KernelKind::kMemoryBound:
      return AtLeast(where, "bytes", kernel.bytes.value(), 1);
    // Zero is allowed: a stage whose encoder costs nothing is a useful limit.
    case KernelKind::kFixed:
      return AtLeast(where, "fixed", kernel.fixed.value(), 0);
  }
  return Error(where, "kind", absl::StrCat(static_cast<int>(kernel.kind), " is no kernel kind"),
               "see base/kernel.h");
}

absl::Status CheckCollective(const Schedule& schedule, const Collective& collective,
                             const std::string& where) {
  if (collective.work.kind > CollectiveKind::kAllToAll) {
    return Error(where, "kind",
                 absl::StrCat(static_cast<int>(collective.work.kind), " is no collective kind"),
                 "see base/kernel.h");
  }
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "bytes", collective.work.bytes.value(), 1));
  if (collective.group >= 0 &&
      static_cast<std::size_t>(collective.group) < schedule.groups.size()) {
    return absl::OkStatus();
  }
  return Error(where, "group", absl::StrCat(collective.group, " is out of range"),
               absl::StrCat("the schedule has ", schedule.groups.size(), " groups"));
}

// A message may carry nothing (an edge without cost); it cannot carry less.
absl::Status CheckTransfer(const Transfer& transfer, const std::string& where) {
  OPTIMUS_RETURN_IF_ERROR(AtLeast(where, "bytes", transfer.bytes.value(), 0));
  return AtLeast(where, "fixed", transfer.fixed.value(), 0);
}

}  // namespace

absl::Status CheckTables(const Schedule& schedule) {
  OPTIMUS_RETURN_IF_ERROR(CheckWorld(schedule));
  OPTIMUS_RETURN_IF_ERROR(CheckModules(schedule));
  for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    OPTIMUS_RETURN_IF_ERROR(
        CheckKernel(kernel, absl::StrCat("kernels[", i, "] ('", kernel.name, "')")));
  }
  for (std::size_t i = 0; i < schedule.groups.size(); ++i) {
    const Group& group = schedule.groups[i];
    OPTIMUS_RETURN_IF_ERROR(
        CheckGroup(schedule, group, absl::StrCat("groups[", i, "] ('", group.name, "')")));
  }
  for (std::size_t i = 0; i < schedule.collectives.size(); ++i) {
    const Collective& collective = schedule.collectives[i];
    OPTIMUS_RETURN_IF_ERROR(CheckCollective(
        schedule, collective, absl::StrCat("collectives[", i, "] ('", collective.work.name, "')")));
  }
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    OPTIMUS_RETURN_IF_ERROR(
        CheckTransfer(transfer, absl::StrCat("transfers[", i, "] ('", transfer.name, "')")));
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
