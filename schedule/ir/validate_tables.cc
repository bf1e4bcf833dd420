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
  if (schedule.programs.size() != static_cast<std::size_t>(world.pp)) {
    return Error("", "programs",
                 absl::StrCat(schedule.programs.size(), " programs for ", world.pp,
                              " pipeline stages (world.pp)"),
                 "one program per stage");
  }
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    if (schedule.programs[p].stage == static_cast<std::int32_t>(p)) continue;
    return Error(absl::StrCat("programs[", p, "]"), "stage",
                 absl::StrCat("is ", schedule.programs[p].stage, ", not ", p),
                 "programs are ordered by stage, from 0");
  }
  return absl::OkStatus();
}

absl::Status CheckModules(const Schedule& schedule) {
  OPTIMUS_RETURN_IF_ERROR(
      AtLeast("", "micro_batches", schedule.micro_batches, schedule.modules.empty() ? 0 : 1));
  for (std::size_t i = 0; i < schedule.modules.size(); ++i) {
    const ModuleInfo& module = schedule.modules[i];
    OPTIMUS_RETURN_IF_ERROR(AtLeast(absl::StrCat("modules[", i, "] ('", module.name, "')"),
                                    "layers", module.layers, 1));
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
