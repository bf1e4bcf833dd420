#pragma once
// What a collective of so many bytes is in NCCL's terms: numbers of bf16 elements. A size that does
// not divide is rounded up to whole elements a rank.

#include <cstdint>

#include "base/kernel.h"

namespace optimus::executor::cuda {

inline constexpr std::int64_t kElementBytes = 2;

struct TransferCounts {
  // The count that NCCL's call takes. All-gather: of one rank's part; reduce-scatter: of the part
  // that a rank gets; all-reduce and broadcast: of the buffer; all-to-all: of the part for one
  // peer.
  std::int64_t count = 0;
  std::int64_t send_bytes = 0, receive_bytes = 0;  // of the two buffers
};

// `work.bytes` as base/kernel.h defines them; `ranks` at least 1.
TransferCounts CountsOf(const CollectiveWork& work, int ranks);
// Elements of a message.
std::int64_t MessageCount(Bytes bytes);

}  // namespace optimus::executor::cuda
