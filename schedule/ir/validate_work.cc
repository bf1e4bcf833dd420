// The tables of work that operations point into: kernels, collectives and transfers. Every size has
// an upper bound (kLargestSize and its neighbours), so that what a runner multiplies and adds fits
// 64 bits.

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

absl::Status InRange(const std::string& where, absl::string_view field, std::int64_t value,
                     std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return FieldError(where, field,
                    absl::StrCat(value, value < least ? " is too small" : " is too large"),
                    value < least ? absl::StrCat("at least ", least)
                                  : absl::StrCat("from ", least, " to ", most));
}

absl::Status CheckSize(const std::string& where, absl::string_view field, std::int64_t value,
                       std::int64_t least) {
  return InRange(where, field, value, least, kLargestSize);
}

struct Factor {
  const char* name;
  std::int64_t value;  // from 1 to kLargestSize
};

// The elements of a matrix or tensor: a product that may not fit 64 bits.
absl::Status CheckElements(const std::string& where, const char* field,
                           std::initializer_list<Factor> factors) {
  std::int64_t product = 1;
  for (const Factor& factor : factors) {
    if (product <= kLargestSize / factor.value) {
      product *= factor.value;
      continue;
    }
    const auto name = [](std::string* out, const Factor& f) { out->append(f.name); };
    const auto value = [](std::string* out, const Factor& f) { absl::StrAppend(out, f.value); };
    return FieldError(where, field,
                      absl::StrCat(absl::StrJoin(factors, " * ", name), " = ",
                                   absl::StrJoin(factors, " * ", value), " elements are too many"),
                      absl::StrCat("at most ", kLargestSize));
  }
  return absl::OkStatus();
}

absl::Status CheckGemm(const Kernel& kernel, const std::string& where) {
  const Factor m{"m", kernel.gemm.m}, n{"n", kernel.gemm.n}, k{"k", kernel.gemm.k};
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "gemm.m", m.value, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "gemm.n", n.value, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "gemm.k", k.value, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckElements(where, "gemm", {m, k}));
  OPTIMUS_RETURN_IF_ERROR(CheckElements(where, "gemm", {k, n}));
  return CheckElements(where, "gemm", {m, n});
}

absl::Status CheckAttention(const Kernel& kernel, const std::string& where) {
  const AttentionShape& shape = kernel.attention;
  const Factor sequences{"sequences", shape.sequences}, heads{"heads", shape.heads};
  const Factor tokens{"sequence_length", shape.sequence_length}, width{"head_dim", shape.head_dim};
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "attention.sequences", shape.sequences, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "attention.heads", shape.heads, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "attention.kv_heads", shape.kv_heads, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "attention.sequence_length", shape.sequence_length, 1));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "attention.head_dim", shape.head_dim, 1));
  if (shape.heads % shape.kv_heads != 0) {
    return FieldError(where, "attention.kv_heads",
                      absl::StrCat(shape.kv_heads, " do not divide the ", shape.heads, " heads"),
                      "each key/value head serves as many query heads");
  }
  // K and V are no larger than Q.
  OPTIMUS_RETURN_IF_ERROR(CheckElements(where, "attention", {sequences, heads, tokens, width}));
  return CheckElements(where, "attention", {tokens, tokens});
}

absl::Status CheckFlops(const Kernel& kernel, const std::string& where) {
  const bool counts = kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kAttention;
  const double flops = kernel.flops.value();
  if (std::isfinite(flops) && flops >= 0 && flops <= kMostFlops && (flops > 0 || !counts)) {
    return absl::OkStatus();
  }
  return FieldError(where, "flops", absl::StrCat(flops, " is no amount of work"),
                    absl::StrCat(counts ? "above 0" : "at least 0", ", at most ", kMostFlops));
}

absl::Status CheckFixed(const std::string& where, Picoseconds fixed) {
  return InRange(where, "fixed_ps", fixed.value(), 0, kLongestFixed.value());
}

absl::Status CheckKernel(const Kernel& kernel, const std::string& where) {
  const bool bound = kernel.kind == KernelKind::kMemoryBound;
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "hbm_bytes", kernel.bytes.value(), bound ? 1 : 0));
  switch (kernel.kind) {
    case KernelKind::kGemm:
      OPTIMUS_RETURN_IF_ERROR(CheckGemm(kernel, where));
      return CheckFlops(kernel, where);
    case KernelKind::kAttention:
      OPTIMUS_RETURN_IF_ERROR(CheckAttention(kernel, where));
      return CheckFlops(kernel, where);
    case KernelKind::kMemoryBound:
      return CheckFlops(kernel, where);
    // Zero is allowed: a stage whose encoder costs nothing is a useful limit.
    case KernelKind::kFixed:
      OPTIMUS_RETURN_IF_ERROR(CheckFlops(kernel, where));
      return CheckFixed(where, kernel.fixed);
  }
  return FieldError(where, "kind",
                    absl::StrCat(static_cast<int>(kernel.kind), " is no kernel kind"),
                    "see base/kernel.h");
}

absl::Status CheckCollective(const Schedule& schedule, const Collective& collective,
                             const std::string& where) {
  if (collective.work.kind > CollectiveKind::kAllToAll) {
    return FieldError(
        where, "kind",
        absl::StrCat(static_cast<int>(collective.work.kind), " is no collective kind"),
        "see base/kernel.h");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "bytes", collective.work.bytes.value(), 1));
  if (collective.group >= 0 &&
      static_cast<std::size_t>(collective.group) < schedule.groups.size()) {
    return absl::OkStatus();
  }
  return FieldError(where, "group", absl::StrCat(collective.group, " is out of range"),
                    absl::StrCat("the schedule has ", schedule.groups.size(), " groups"));
}

// A message may carry nothing (an edge without cost); it cannot carry less.
absl::Status CheckTransfer(const Transfer& transfer, const std::string& where) {
  OPTIMUS_RETURN_IF_ERROR(CheckSize(where, "bytes", transfer.bytes.value(), 0));
  return CheckFixed(where, transfer.fixed);
}

std::string Where(const char* table, std::size_t index, const std::string& name) {
  return absl::StrCat(table, "[", index, "] ('", name, "')");
}

}  // namespace

absl::Status CheckWork(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    OPTIMUS_RETURN_IF_ERROR(CheckKernel(kernel, Where("kernels", i, kernel.name)));
  }
  for (std::size_t i = 0; i < schedule.collectives.size(); ++i) {
    const Collective& collective = schedule.collectives[i];
    OPTIMUS_RETURN_IF_ERROR(
        CheckCollective(schedule, collective, Where("collectives", i, collective.work.name)));
  }
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    OPTIMUS_RETURN_IF_ERROR(CheckTransfer(transfer, Where("transfers", i, transfer.name)));
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
