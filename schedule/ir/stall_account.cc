#include "schedule/ir/stall_account.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace optimus::ir {

void StallAccount::WaitUntil(Picoseconds until, BubbleClass cause) {
  if (until <= accounted_) return;
  account_.bubbles[static_cast<std::size_t>(cause)] += until - accounted_;
  accounted_ = until;
}

void StallAccount::Run(Picoseconds start, Picoseconds end, bool optimizer) {
  WaitUntil(start, BubbleClass::kPpOther);
  (optimizer ? account_.optimizer : account_.compute) += end - accounted_;
  accounted_ = end;
}

void StallAccount::OtherEnded(std::uint32_t id, Picoseconds end, BubbleClass tail) {
  if (std::tie(end, id) < std::tie(last_other_end_, last_other_)) return;
  last_other_end_ = end;
  last_other_ = id;
  tail_ = tail;
}

RankAccount StallAccount::Finish(Picoseconds step) const {
  StallAccount whole = *this;
  whole.WaitUntil(std::min(last_other_end_, step), tail_);
  whole.WaitUntil(step, BubbleClass::kPpCooldown);
  return whole.account_;
}

}  // namespace optimus::ir
