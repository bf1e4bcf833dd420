#include "schedule/pipeline/interleaved.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {
namespace {

// The group sizes that Megatron-LM takes, as text: "5, 6, 10". Never empty: one group of all
// micro-batches is always allowed.
std::string AllowedGroups(int stages, int micro_batches) {
  constexpr int kShown = 8;
  std::vector<std::string> allowed;
  for (int group = stages; group <= micro_batches; ++group) {
    const int last = micro_batches % group;
    if (last != 0 && last < stages) {
      continue;
    }
    if (allowed.size() == kShown) {
      allowed.emplace_back("...");
      break;
    }
    allowed.push_back(absl::StrCat(group));
  }
  return absl::StrJoin(allowed, ", ");
}

// The rules by which Megatron-LM refuses an interleaved schedule.
absl::Status CheckGroup(const InterleavedOptions& o, int group) {
  if (o.micro_batches < o.stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro-batches: ", o.micro_batches, " with ", o.chunks, " model chunks; the interleaved ",
        "schedule needs at least one micro-batch per pipeline stage (", o.stages,
        "); use more micro-batches or one model chunk"));
  }
  if (group < o.stages || group > o.micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batch_group: ", group, " is outside the allowed range [", o.stages,
                     ", ", o.micro_batches, "] (pipeline stages to micro-batches)"));
  }
  const int last = o.micro_batches % group;
  if (last != 0 && last < o.stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro_batch_group: ", o.micro_batches, " micro-batches in groups of ", group,
        " leave a last group of ", last, ", which must be 0 or at least the ", o.stages,
        " pipeline stages; allowed groups: ", AllowedGroups(o.stages, o.micro_batches)));
  }
  return absl::OkStatus();
}

// Every (chunk, micro-batch) in the order of its turn: groups of micro-batches, and inside a group
// chunk by chunk. Backward goes through the chunks from the last.
std::vector<Slot> Turns(const InterleavedOptions& o, int group, SlotKind kind) {
  std::vector<Slot> turns;
  turns.reserve(static_cast<std::size_t>(o.chunks) * static_cast<std::size_t>(o.micro_batches));
  for (int first = 0; first < o.micro_batches; first += group) {
    const int end = std::min(first + group, o.micro_batches);
    for (int c = 0; c < o.chunks; ++c) {
      const int chunk = kind == SlotKind::kForward ? c : o.chunks - 1 - c;
      for (int m = first; m < end; ++m) {
        turns.push_back(Slot{kind, chunk, m});
      }
    }
  }
  return turns;
}

// Forwards of stage s before its first steady forward-backward pair.
int WarmUpForwards(const InterleavedOptions& o, int group, int stage) {
  const std::int64_t stages_after = o.stages - 1 - stage;
  // Deferred: as in plain 1F1B, one forward for each stage after this one. Fewer would starve those
  // stages; Megatron-LM's second one only runs ahead, which hides transfers.
  const std::int64_t ahead = o.warm_up == WarmUp::kMegatron ? 2 * stages_after : stages_after;
  const std::int64_t chunks_before = static_cast<std::int64_t>(o.chunks - 1) * group;
  const std::int64_t total = static_cast<std::int64_t>(o.chunks) * o.micro_batches;
  return static_cast<int>(std::min(total, chunks_before + ahead));
}

}  // namespace

absl::StatusOr<Order> Interleaved(const InterleavedOptions& options) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(options.stages, options.chunks, options.micro_batches));
  if (options.group_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat("micro_batch_group: ", options.group_size,
                                                   " is negative; 0 means the pipeline stages"));
  }
  // With one chunk there are no turns to take, and Megatron-LM runs its plain 1F1B.
  if (options.chunks == 1) {
    return OneForwardOneBackward(options.stages, options.micro_batches);
  }
  const int group = options.group_size == 0 ? options.stages : options.group_size;
  OPTIMUS_RETURN_IF_ERROR(CheckGroup(options, group));
  const auto forwards = Turns(options, group, SlotKind::kForward);
  const auto backwards = Turns(options, group, SlotKind::kBackward);
  Order order{options.stages, options.chunks, options.micro_batches, {}};
  for (int s = 0; s < options.stages; ++s) {
    order.slots.push_back(
        WarmUpThenAlternate(forwards, backwards, WarmUpForwards(options, group, s)));
  }
  return order;
}

}  // namespace optimus::pipeline
