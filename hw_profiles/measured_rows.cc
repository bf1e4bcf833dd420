#include "hw_profiles/measured_rows.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "hw_profiles/measured_tables.h"

namespace optimus::hw {
namespace {

void Fill(const ::optimus::MeasuredTime& measured, MeasuredTime& time) {
  time.set_median_us(ToMicroseconds(measured.median));
  time.set_spread_us(ToMicroseconds(measured.spread));
  time.set_repetitions(measured.repetitions);
}

void FillGemm(const GemmShape& shape, MeasuredKernel::Gemm& gemm) {
  gemm.set_m(shape.m);
  gemm.set_n(shape.n);
  gemm.set_k(shape.k);
}

void FillAttention(const AttentionShape& shape, MeasuredKernel::Attention& attention) {
  attention.set_sequences(shape.sequences);
  attention.set_heads(shape.heads);
  attention.set_kv_heads(shape.kv_heads);
  attention.set_sequence_length(shape.sequence_length);
  attention.set_head_dim(shape.head_dim);
  attention.set_causal(shape.causal);
  attention.set_backward(shape.backward);
}

absl::StatusOr<MeasuredKernel> RowOf(const KernelMeasurement& measured) {
  const Kernel& kernel = measured.kernel;
  MeasuredKernel row;
  switch (kernel.kind) {
    case KernelKind::kGemm:
      row.set_kind(MeasuredKernel::GEMM);
      FillGemm(kernel.gemm, *row.mutable_gemm());
      break;
    case KernelKind::kAttention:
      row.set_kind(MeasuredKernel::ATTENTION);
      FillAttention(kernel.attention, *row.mutable_attention());
      break;
    case KernelKind::kMemoryBound:
      row.set_kind(MeasuredKernel::MEMORY_BOUND);
      break;
    case KernelKind::kFixed:
      return absl::InvalidArgumentError(
          absl::StrCat("measured kernel '", kernel.name, "': ", ToString(kernel.kind),
                       " kernels take their fixed time; hint: leave them out"));
  }
  row.set_name(kernel.name);
  row.set_flops(kernel.flops.value());
  row.set_bytes(kernel.bytes.value());
  Fill(measured.time, *row.mutable_time());
  if (KernelOf(row) == kernel) return row;
  return absl::InvalidArgumentError(absl::StrCat(
      "measured kernel '", kernel.name, "': a ", ToString(kernel.kind),
      " kernel has a shape of another kind or a fixed time; hint: leave what does not belong to it "
      "at its default"));
}

absl::StatusOr<MeasuredTransfer> RowOf(const TransferMeasurement& measured) {
  const std::string name = measured.send ? "send" : ToString(measured.kind);
  if (measured.scope == LinkScope::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("measured transfer ", name, ": goes over no link (scope none)"));
  }
  const bool inside = measured.scope == LinkScope::kNvlink;
  MeasuredTransfer row;
  row.set_kind(measured.send ? MeasuredTransfer::SEND : MeasuredKind(measured.kind));
  row.set_between_nodes(!inside);
  row.set_ranks(measured.group.ranks);
  const int outside = measured.send ? 1 : measured.group.ranks_per_node;
  row.set_ranks_per_node(inside ? measured.group.ranks : outside);
  for (const TransferPoint& point : measured.points) {
    MeasuredTransfer::Point& added = *row.add_points();
    added.set_bytes(point.bytes.value());
    Fill(point.time, *added.mutable_time());
  }
  return row;
}

}  // namespace

absl::Status FillMeasuredTables(const HardwareMeasurements& measured, HardwareProfile& profile) {
  profile.clear_measured_kernels();
  profile.clear_measured_transfers();
  for (const KernelMeasurement& kernel : measured.kernels) {
    OPTIMUS_ASSIGN_OR_RETURN(*profile.add_measured_kernels(), RowOf(kernel));
  }
  for (const TransferMeasurement& transfer : measured.transfers) {
    OPTIMUS_ASSIGN_OR_RETURN(*profile.add_measured_transfers(), RowOf(transfer));
  }
  return ValidateMeasuredTables(profile);
}

}  // namespace optimus::hw
