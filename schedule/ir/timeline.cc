#include "schedule/ir/timeline.h"

namespace optimus::ir {

const char* ToString(BubbleClass bubble) {
  switch (bubble) {
    case BubbleClass::kDpAllGather:
      return "dp_all_gather";
    case BubbleClass::kDpReduceScatter:
      return "dp_reduce_scatter";
    case BubbleClass::kPpWarmup:
      return "pp_warmup";
    case BubbleClass::kPpCooldown:
      return "pp_cooldown";
    case BubbleClass::kPpOther:
      return "pp_other";
    case BubbleClass::kTp:
      return "tp";
  }
  return "invalid";
}

Picoseconds RankAccount::total() const {
  Picoseconds sum = compute + optimizer;
  for (const Picoseconds bubble : bubbles) sum += bubble;
  return sum;
}

}  // namespace optimus::ir
