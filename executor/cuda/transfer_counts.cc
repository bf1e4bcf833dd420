#include "executor/cuda/transfer_counts.h"

namespace optimus::executor::cuda {
namespace {

std::int64_t Share(std::int64_t bytes, std::int64_t parts) {
  const std::int64_t unit = parts * kElementBytes;
  return (bytes + unit - 1) / unit;
}

}  // namespace

TransferCounts CountsOf(const CollectiveWork& work, int ranks) {
  const std::int64_t bytes = work.bytes.value();
  const std::int64_t part = Share(bytes, ranks);
  const std::int64_t whole = Share(bytes, 1);
  switch (work.kind) {
    case CollectiveKind::kAllGather:
      return {part, part * kElementBytes, part * ranks * kElementBytes};
    case CollectiveKind::kReduceScatter:
      return {part, part * ranks * kElementBytes, part * kElementBytes};
    case CollectiveKind::kAllToAll:
      return {part, part * ranks * kElementBytes, part * ranks * kElementBytes};
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
      break;
  }
  return {whole, whole * kElementBytes, whole * kElementBytes};
}

std::int64_t MessageCount(Bytes bytes) { return Share(bytes.value(), 1); }

}  // namespace optimus::executor::cuda
