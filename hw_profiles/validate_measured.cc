// The measured tables: whatever the look-up relies on.

#include <initializer_list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "hw_profiles/measured_tables.h"

namespace optimus::hw {
namespace {

constexpr double kShortestUs = 1e-6;  // a picosecond
constexpr double kLongestUs = 1e10;   // almost three hours
constexpr std::int64_t kLargestBytes = std::int64_t{1} << 50;

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::Status CheckRange(const std::string& field, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();  // and no NaN
  return Bad(field, absl::StrCat("is ", value, "; must be from ", least, " to ", most));
}

absl::Status CheckTime(const std::string& field, bool present, const MeasuredTime& time) {
  if (!present) return Bad(field, "is missing");
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(absl::StrCat(field, ".median_us"), time.median_us(), kShortestUs, kLongestUs));
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(absl::StrCat(field, ".spread_us"), time.spread_us(), 0, kLongestUs));
  if (time.repetitions() < 1) {
    return Bad(absl::StrCat(field, ".repetitions"),
               absl::StrCat("is ", time.repetitions(), "; must be 1 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const std::string& field, int kind, bool known, const char* kinds) {
  if (kind == 0) return Bad(field, absl::StrCat("is missing; one of ", kinds));
  if (!known) return Bad(field, absl::StrCat("is ", kind, "; one of ", kinds));
  return absl::OkStatus();
}

// A shape belongs to one kind; with another, the row would match no kernel there can be.
absl::Status CheckShape(const std::string& field, bool present, bool wanted,
                        std::initializer_list<std::int64_t> extents) {
  if (present != wanted) {
    return Bad(field, present ? "is of another kind of kernel" : "is missing");
  }
  if (!present) return absl::OkStatus();
  for (const std::int64_t extent : extents) {
    if (extent < 1) return Bad(field, absl::StrCat("has an extent of ", extent));
  }
  return absl::OkStatus();
}

absl::Status CheckKernel(const std::string& field, const MeasuredKernel& row) {
  OPTIMUS_RETURN_IF_ERROR(CheckKind(absl::StrCat(field, ".kind"), row.kind(),
                                    MeasuredKernel::Kind_IsValid(row.kind()),
                                    "GEMM, ATTENTION, MEMORY_BOUND"));
  const MeasuredKernel::Gemm& g = row.gemm();
  const MeasuredKernel::Attention& a = row.attention();
  OPTIMUS_RETURN_IF_ERROR(CheckShape(absl::StrCat(field, ".gemm"), row.has_gemm(),
                                     row.kind() == MeasuredKernel::GEMM, {g.m(), g.n(), g.k()}));
  OPTIMUS_RETURN_IF_ERROR(
      CheckShape(absl::StrCat(field, ".attention"), row.has_attention(),
                 row.kind() == MeasuredKernel::ATTENTION,
                 {a.sequences(), a.heads(), a.kv_heads(), a.sequence_length(), a.head_dim()}));
  OPTIMUS_RETURN_IF_ERROR(CheckRange(absl::StrCat(field, ".flops"), row.flops(), 0, 1e24));
  OPTIMUS_RETURN_IF_ERROR(CheckRange(absl::StrCat(field, ".bytes"),
                                     static_cast<double>(row.bytes()), 0,
                                     static_cast<double>(kLargestBytes)));
  return CheckTime(absl::StrCat(field, ".time"), row.has_time(), row.time());
}

absl::Status CheckGroup(const std::string& field, const MeasuredTransfer& row) {
  const bool send = row.kind() == MeasuredTransfer::SEND;
  if (row.ranks() < 2 || (send && row.ranks() > 2)) {
    return Bad(absl::StrCat(field, ".ranks"),
               absl::StrCat("is ", row.ranks(), "; must be 2", send ? "" : " or more"));
  }
  const std::string node = absl::StrCat(field, ".ranks_per_node");
  const bool fits = row.between_nodes()
                        ? row.ranks_per_node() >= 1 && row.ranks_per_node() < row.ranks()
                        : row.ranks_per_node() == row.ranks();
  if (fits) return absl::OkStatus();
  return Bad(
      node, absl::StrCat("is ", row.ranks_per_node(), "; must be",
                         row.between_nodes() ? " from 1 to less than" : "", " ranks (", row.ranks(),
                         ") ", row.between_nodes() ? "between" : "inside", " nodes"));
}

absl::Status CheckPoints(const std::string& field, const MeasuredTransfer& row) {
  if (row.points().empty()) return Bad(absl::StrCat(field, ".points"), "is empty");
  std::int64_t previous = -1;
  for (int i = 0; i < row.points_size(); ++i) {
    const MeasuredTransfer::Point& point = row.points(i);
    const std::string name = absl::StrCat(field, ".points[", i, "]");
    if (point.bytes() <= previous || point.bytes() > kLargestBytes) {
      return Bad(absl::StrCat(name, ".bytes"),
                 absl::StrCat("is ", point.bytes(), "; sizes ascend from 0 to ", kLargestBytes));
    }
    previous = point.bytes();
    OPTIMUS_RETURN_IF_ERROR(CheckTime(absl::StrCat(name, ".time"), point.has_time(), point.time()));
  }
  return absl::OkStatus();
}

absl::Status CheckTransfer(const std::string& field, const MeasuredTransfer& row) {
  OPTIMUS_RETURN_IF_ERROR(CheckKind(
      absl::StrCat(field, ".kind"), row.kind(), MeasuredTransfer::Kind_IsValid(row.kind()),
      "ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST, ALL_TO_ALL, SEND"));
  OPTIMUS_RETURN_IF_ERROR(CheckGroup(field, row));
  return CheckPoints(field, row);
}

}  // namespace

absl::Status ValidateMeasuredTables(const HardwareProfile& profile) {
  absl::flat_hash_map<std::string, int> first;  // row of what is measured
  const auto check_new = [&](const std::string& field, const std::string& what, int i) {
    const auto [at, is_new] = first.try_emplace(what, i);
    if (is_new) return absl::OkStatus();
    return Bad(field, absl::StrCat("is the same as number ", at->second, "; leave one out"));
  };
  for (int i = 0; i < profile.measured_kernels_size(); ++i) {
    const std::string field = absl::StrCat("measured_kernels[", i, "]");
    MeasuredKernel row = profile.measured_kernels(i);
    OPTIMUS_RETURN_IF_ERROR(CheckKernel(field, row));
    row.clear_time();
    OPTIMUS_RETURN_IF_ERROR(check_new(field, row.SerializeAsString(), i));
  }
  first.clear();
  for (int i = 0; i < profile.measured_transfers_size(); ++i) {
    const std::string field = absl::StrCat("measured_transfers[", i, "]");
    MeasuredTransfer row = profile.measured_transfers(i);
    OPTIMUS_RETURN_IF_ERROR(CheckTransfer(field, row));
    row.clear_points();
    OPTIMUS_RETURN_IF_ERROR(check_new(field, row.SerializeAsString(), i));
  }
  return absl::OkStatus();
}

}  // namespace optimus::hw
