#include "hw_profiles/measured_links.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "hw_profiles/collective_cost.h"
#include "hw_profiles/fit.h"
#include "hw_profiles/number_range.h"

namespace optimus::hw {
namespace {

struct Row {
  MeasuredTransfer::Kind kind;
  const char* field;
};
constexpr Row kRows[] = {
    {MeasuredTransfer::ALL_GATHER, "all_gather"},
    {MeasuredTransfer::REDUCE_SCATTER, "reduce_scatter"},
    {MeasuredTransfer::ALL_REDUCE, "all_reduce"},
    {MeasuredTransfer::BROADCAST, "broadcast"},
    {MeasuredTransfer::ALL_TO_ALL, "all_to_all"},
    {MeasuredTransfer::SEND, "send"},
};

CollectiveKind CollectiveOf(MeasuredTransfer::Kind kind) {
  switch (kind) {
    case MeasuredTransfer::ALL_GATHER:
      return CollectiveKind::kAllGather;
    case MeasuredTransfer::REDUCE_SCATTER:
      return CollectiveKind::kReduceScatter;
    case MeasuredTransfer::ALL_REDUCE:
      return CollectiveKind::kAllReduce;
    case MeasuredTransfer::BROADCAST:
      return CollectiveKind::kBroadcast;
    case MeasuredTransfer::ALL_TO_ALL:
      return CollectiveKind::kAllToAll;
    default:
      std::abort();
  }
}

// Bytes on the link of one GPU, were the protocol perfect: what PriceRing and PriceSend divide by
// the efficiency.
double LinkBytes(const MeasuredTransfer& transfer, std::int64_t bytes) {
  if (transfer.kind() == MeasuredTransfer::SEND) return static_cast<double>(bytes);
  const CollectiveWork work{CollectiveOf(transfer.kind()), "", Bytes(bytes)};
  if (!transfer.between_nodes()) return RingBytes(work, transfer.ranks());
  return NicBytes(work, {transfer.ranks(), transfer.ranks_per_node()});
}

struct Kind {
  std::string field;
  MeasuredTransfer::Kind kind = MeasuredTransfer::KIND_UNSPECIFIED;
  std::vector<Sample> samples;  // bytes on the link, seconds
  std::set<std::int64_t> sizes;
  std::int32_t repetitions = std::numeric_limits<std::int32_t>::max();
  Line line;        // seconds, seconds a byte
  double rate = 0;  // bytes a second; of several sizes

  bool one_size() const { return sizes.size() < 2; }
};

Kind Collect(const HardwareProfile& profile, LinkScope scope, const Row& row) {
  Kind kind;
  kind.field = row.field;
  kind.kind = row.kind;
  for (const MeasuredTransfer& transfer : profile.measured_transfers()) {
    const bool here = transfer.between_nodes() == (scope == LinkScope::kNic);
    if (!here || transfer.kind() != row.kind) continue;
    for (const MeasuredTransfer::Point& point : transfer.points()) {
      if (point.bytes() == 0) continue;  // says nothing about bytes
      kind.sizes.insert(point.bytes());
      kind.samples.push_back({LinkBytes(transfer, point.bytes()), point.time().median_us() * 1e-6});
      kind.repetitions = std::min(kind.repetitions, point.time().repetitions());
    }
  }
  return kind;
}

// Where even the largest transfer is nearly all latency, the slope is noise or 0, and its inverse
// no rate of a link. So no kind is taken to be faster than ten times its fastest transfer.
double RateOf(const Kind& kind) {
  double best = 0;
  for (const Sample& sample : kind.samples) best = std::max(best, sample.amount / sample.time);
  return kind.line.slope > 0 ? std::min(1 / kind.line.slope, 10 * best) : 10 * best;
}

double EfficiencyOf(const Link& link, MeasuredTransfer::Kind kind) {
  const RingCost& cost =
      kind == MeasuredTransfer::SEND ? link.send() : RingCostOf(link, CollectiveOf(kind));
  return cost.efficiency().value();
}

FittedRow RowOf(const Kind& kind, double bandwidth, const Link& link) {
  const NumberRange efficiency = RangeOf("efficiency"), latency = RangeOf("latency_us");
  FittedRow row;
  row.field = kind.field;
  row.one_size = kind.one_size();
  const double share = row.one_size ? EfficiencyOf(link, kind.kind) : kind.rate / bandwidth;
  row.efficiency = std::clamp(share, efficiency.least, efficiency.most);
  // Given the slope that the row will have, which is not the fitted one where that was 0 or out of
  // range.
  const double intercept_s = FitIntercept(kind.samples, 1 / (row.efficiency * bandwidth));
  row.latency_us = std::clamp(intercept_s * 1e6, latency.least, latency.most);
  row.points = static_cast<int>(kind.samples.size());
  row.repetitions = kind.repetitions;
  return row;
}

}  // namespace

FittedLink FitLink(const HardwareProfile& profile, LinkScope scope) {
  std::vector<Kind> kinds;
  const Kind* fastest = nullptr;
  for (const Row& row : kRows) {
    Kind kind = Collect(profile, scope, row);
    if (kind.samples.empty()) continue;
    if (!kind.one_size()) {
      kind.line = FitLine(kind.samples);
      kind.rate = RateOf(kind);
    }
    kinds.push_back(std::move(kind));
  }
  for (const Kind& kind : kinds) {
    if (!kind.one_size() && (fastest == nullptr || kind.rate > fastest->rate)) fastest = &kind;
  }
  const Link& before = scope == LinkScope::kNic ? profile.nic() : profile.nvlink();
  FittedLink link;
  link.bandwidth_gb_per_s = before.bandwidth_gb_per_s().value();
  if (fastest != nullptr) {
    const NumberRange range = RangeOf("bandwidth_gb_per_s");
    link.bandwidth_gb_per_s = std::clamp(fastest->rate / 1e9, range.least, range.most);
    link.fastest = fastest->field;
  }
  link.rows.reserve(kinds.size());
  for (const Kind& kind : kinds) {
    link.rows.push_back(RowOf(kind, link.bandwidth_gb_per_s * 1e9, before));
  }
  return link;
}

}  // namespace optimus::hw
