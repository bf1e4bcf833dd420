#include "hw_profiles/measured_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "absl/hash/hash.h"
#include "hw_profiles/collective_cost.h"

namespace optimus::hw {
namespace {

constexpr double kPicosecondsPerMicrosecond = 1e6;

KernelKind KindOf(const MeasuredKernel& row) {
  switch (row.kind()) {
    case MeasuredKernel::GEMM:
      return KernelKind::kGemm;
    case MeasuredKernel::ATTENTION:
      return KernelKind::kAttention;
    case MeasuredKernel::MEMORY_BOUND:
      return KernelKind::kMemoryBound;
    default:
      std::abort();
  }
}

// A group inside a node is one group, whether the table or the caller counts the places of the node
// or the members in it.
std::array<int, 3> Key(MeasuredTransfer::Kind kind, GroupShape group) {
  return {kind, group.ranks, std::min(group.ranks, group.ranks_per_node)};
}

double Interpolate(const std::vector<std::int64_t>& bytes, const std::vector<double>& times_ps,
                   std::int64_t size) {
  const auto above = std::lower_bound(bytes.begin(), bytes.end(), size);
  if (above == bytes.begin()) return times_ps.front();
  const auto right = static_cast<std::size_t>(above - bytes.begin());
  const std::size_t left = right - 1;
  const double share =
      static_cast<double>(size - bytes[left]) / static_cast<double>(bytes[right] - bytes[left]);
  return times_ps[left] + share * (times_ps[right] - times_ps[left]);
}

// A cost of exactly `time` alone on the link: `latency` of it, if there is as much, and the rest on
// the wire. What is left of a byte's time goes to the latency.
TransferCost Divide(Picoseconds time, Picoseconds latency, BytesPerSecond bandwidth,
                    LinkScope scope) {
  const double on_wire_s = ToSeconds(time - std::min(time, latency));
  Bytes wire(RoundSaturated(std::floor(on_wire_s * bandwidth.value())));
  if (TransferTime(wire, bandwidth) > time) wire -= Bytes(1);  // rounding, at no latency
  return {.latency = time - TransferTime(wire, bandwidth), .wire_bytes = wire, .scope = scope};
}

}  // namespace

Kernel KernelOf(const MeasuredKernel& row) {
  Kernel kernel;
  kernel.kind = KindOf(row);
  kernel.name = row.name();
  if (row.has_gemm()) kernel.gemm = {row.gemm().m(), row.gemm().n(), row.gemm().k()};
  if (row.has_attention()) {
    const MeasuredKernel::Attention& a = row.attention();
    kernel.attention = {a.sequences(), a.heads(),  a.kv_heads(), a.sequence_length(),
                        a.head_dim(),  a.causal(), a.backward()};
  }
  kernel.flops = Flops(row.flops());
  kernel.bytes = Bytes(row.bytes());
  return kernel;
}

MeasuredTransfer::Kind MeasuredKind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return MeasuredTransfer::ALL_GATHER;
    case CollectiveKind::kReduceScatter:
      return MeasuredTransfer::REDUCE_SCATTER;
    case CollectiveKind::kAllReduce:
      return MeasuredTransfer::ALL_REDUCE;
    case CollectiveKind::kBroadcast:
      return MeasuredTransfer::BROADCAST;
    case CollectiveKind::kAllToAll:
      return MeasuredTransfer::ALL_TO_ALL;
  }
  std::abort();
}

// Pool adjacent violators: neighbours in the wrong order are replaced by their mean.
std::vector<double> NeverFalling(const std::vector<double>& times) {
  struct Pool {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const double time : times) {
    pools.push_back({time, 1});
    while (pools.size() > 1 && pools.back().mean() < pools[pools.size() - 2].mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> result;
  for (const Pool& pool : pools) result.insert(result.end(), pool.count, pool.mean());
  return result;
}

MeasuredTables::MeasuredTables(const HardwareProfile& profile) : links_(profile) {
  links_.clear_measured_kernels();
  links_.clear_measured_transfers();
  for (const MeasuredKernel& row : profile.measured_kernels()) {
    kernels_[KernelOf(row)] =
        Picoseconds(RoundSaturated(row.time().median_us() * kPicosecondsPerMicrosecond));
  }
  for (const MeasuredTransfer& row : profile.measured_transfers()) {
    Transfer& transfer = transfers_[Key(row.kind(), {row.ranks(), row.ranks_per_node()})];
    for (const MeasuredTransfer::Point& point : row.points()) {
      transfer.bytes.push_back(point.bytes());
      transfer.times_ps.push_back(point.time().median_us() * kPicosecondsPerMicrosecond);
    }
    transfer.times_ps = NeverFalling(transfer.times_ps);
  }
}

std::size_t MeasuredTables::KernelHash::operator()(const Kernel& kernel) const {
  const GemmShape& g = kernel.gemm;
  const AttentionShape& a = kernel.attention;
  return absl::HashOf(kernel.kind, kernel.name, g.m, g.n, g.k, a.sequences, a.heads, a.kv_heads,
                      a.sequence_length, a.head_dim, a.causal, a.backward, kernel.flops.value(),
                      kernel.bytes.value());
}

std::optional<Picoseconds> MeasuredTables::KernelTime(const Kernel& kernel) const {
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end()) return std::nullopt;
  return found->second;
}

const MeasuredTables::Transfer* MeasuredTables::Find(MeasuredTransfer::Kind kind,
                                                     GroupShape group) const {
  const auto found = transfers_.find(Key(kind, group));
  return found == transfers_.end() ? nullptr : &found->second;
}

template <class ByRow>
TransferCost MeasuredTables::Price(const Transfer& transfer, Bytes bytes, ByRow by_row) const {
  const TransferCost row = by_row(bytes);
  const Link& link = row.scope == LinkScope::kNvlink ? links_.nvlink() : links_.nic();
  const BytesPerSecond bandwidth(link.bandwidth_gb_per_s().value() * 1e9);
  const Bytes largest(transfer.bytes.back());
  if (bytes <= largest) {
    const double time_ps = Interpolate(transfer.bytes, transfer.times_ps, bytes.value());
    return Divide(Picoseconds(RoundSaturated(time_ps)), row.latency, bandwidth, row.scope);
  }
  const Picoseconds more =
      TransferTime(row.wire_bytes, bandwidth) - TransferTime(by_row(largest).wire_bytes, bandwidth);
  return Divide(Picoseconds(RoundSaturated(transfer.times_ps.back())) + more, row.latency,
                bandwidth, row.scope);
}

std::optional<TransferCost> MeasuredTables::CollectiveCost(const CollectiveWork& work,
                                                           GroupShape group) const {
  if (group.ranks <= 1) return std::nullopt;
  const Transfer* transfer = Find(MeasuredKind(work.kind), group);
  if (transfer == nullptr) return std::nullopt;
  return Price(*transfer, work.bytes, [&](Bytes bytes) {
    return PriceRing(links_, {work.kind, work.name, bytes}, group);
  });
}

std::optional<TransferCost> MeasuredTables::SendCost(Bytes bytes, bool same_node) const {
  const Transfer* transfer = Find(MeasuredTransfer::SEND, {2, same_node ? 2 : 1});
  if (transfer == nullptr) return std::nullopt;
  return Price(*transfer, bytes, [&](Bytes size) { return PriceSend(links_, size, same_node); });
}

}  // namespace optimus::hw
