#pragma once
// The small message of fixed size that goes beside every payload.

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "executor/runtime/stamp.h"

namespace optimus::executor {

struct WireHeader {
  Stamp stamp;
  std::int32_t number = 0;  // of the collective in its communicator; of a message, its id
  std::int32_t kind = 0;    // CollectiveKind, or kMessage
  std::int32_t reserved = 0;
  std::int64_t floats = 0;  // as PlanExchange counts them; of a message
  // Rank 0's clock. Of a collective: when its sender was ready; of a message: nominal arrival.
  std::int64_t ready_ns = 0;
};
static_assert(std::is_trivially_copyable_v<WireHeader> && sizeof(WireHeader) == 56);
inline constexpr std::int32_t kMessage = -1;
// Of a rank that learns from the root of a broadcast how much comes.
inline constexpr std::int64_t kUnknownFloats = -1;

using StampText = std::function<std::string(const Stamp&)>;

// By `text`; where that is null, "rank 3: operation 17 of step 4".
std::string StampLine(const Stamp& stamp, const StampText* text);
// StampLine with "(all_gather 12 of 4096 bytes)" or "(message 7 of 4096 bytes)".
std::string HeaderLine(const WireHeader& header, const StampText* text);

}  // namespace optimus::executor
