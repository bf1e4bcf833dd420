#include "schedule/pipeline/order_builder.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optimus::pipeline {
namespace {

// 1.2 GB of slots. The largest job published has some 10^5.
constexpr std::int64_t kMaxSlots = 100'000'000;

absl::Status CheckPositive(const char* field, int value) {
  if (value >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is not a positive number"));
}

}  // namespace

absl::Status CheckCounts(int stages, int chunks, int micro_batches) {
  for (const auto& [field, value] : {std::pair("pipeline stages", stages),
                                     {"model chunks", chunks},
                                     {"micro-batches", micro_batches}}) {
    if (absl::Status status = CheckPositive(field, value); !status.ok()) {
      return status;
    }
  }
  // Divided, not multiplied: the product of three ints does not fit in 64 bits.
  if (kMaxSlots / 2 / stages / chunks < micro_batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline order: ", stages, " stages x ", chunks, " chunks x ", micro_batches,
        " micro-batches x 2 is more than ", kMaxSlots, " slots; use fewer micro-batches"));
  }
  return absl::OkStatus();
}

std::vector<Slot> WarmUpThenAlternate(const std::vector<Slot>& forwards,
                                      const std::vector<Slot>& backwards, int warm_up) {
  const auto ahead = static_cast<std::size_t>(warm_up);
  std::vector<Slot> slots(forwards.begin(), forwards.begin() + warm_up);
  slots.reserve(forwards.size() + backwards.size());
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (ahead + i < forwards.size()) {
      slots.push_back(forwards[ahead + i]);
    }
    slots.push_back(backwards[i]);
  }
  return slots;
}

std::vector<Slot> MicroBatchesInTurn(SlotKind kind, int count) {
  std::vector<Slot> slots(count);
  for (int i = 0; i < count; ++i) {
    slots[i] = Slot{kind, 0, i};
  }
  return slots;
}

}  // namespace optimus::pipeline
