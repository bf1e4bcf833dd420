#include "schedule/pipeline/zb_improve.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/pipeline/zb_replay.h"

namespace optimus::pipeline {
namespace {

constexpr int kReach = 6;

struct Move {
  int stage = 0;
  std::size_t from = 0, to = 0;  // the slot that is at `from` will be at `to`
};

struct Merit {
  ZbScore score;
  Picoseconds sum;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Merit&, const Merit&) = default;
};

struct At {
  int stage = 0;
  std::size_t slot = 0;
};

// Two slots that keep their order: passes of one micro-batch through one chunk, and one kind of
// pass through one chunk, whose micro-batches stay in turn as their messages do.
bool Ordered(const Slot& a, const Slot& b) {
  return a.chunk == b.chunk && (a.micro_batch == b.micro_batch || a.kind == b.kind);
}

class Improver {
 public:
  Improver(const ZbProblem& problem, const MicroBatchPath& path, Order order, std::int64_t budget)
      : problem_(problem),
        path_(path),
        order_(std::move(order)),
        budget_(budget),
        replay_(problem, path) {
    for (const auto& slots : order_.slots) slots_ += static_cast<std::int64_t>(slots.size());
  }

  Order Run() {
    if (!Replay()) return std::move(order_);
    merit_ = MeritNow();
    while (ImproveOnce()) {
    }
    return std::move(order_);
  }

 private:
  bool Replay() {
    budget_ -= slots_;
    return replay_.Run(order_);
  }

  Merit MeritNow() const { return {replay_.score(), replay_.sum_of_spans()}; }

  // The replay is that of the order when this starts, and when it returns true.
  bool ImproveOnce() {
    for (const Move& move : Moves()) {
      if (budget_ < slots_) return false;
      if (!Allowed(move)) continue;
      Apply(move);
      if (Replay() && MeritNow() < merit_) {
        merit_ = MeritNow();
        return true;
      }
      Apply({move.stage, move.to, move.from});
    }
    return false;
  }

  void Apply(const Move& move) {
    const auto begin = order_.slots[move.stage].begin();
    const auto from = begin + static_cast<std::ptrdiff_t>(move.from);
    const auto to = begin + static_cast<std::ptrdiff_t>(move.to);
    if (from < to) {
      std::rotate(from, from + 1, to + 1);
    } else {
      std::rotate(to, from, from + 1);
    }
  }

  // Nothing passes what it must stay behind or before, and the memory limit holds on the way.
  bool Allowed(const Move& move) const {
    const std::vector<Slot>& slots = order_.slots[move.stage];
    if (move.from == move.to || move.to >= slots.size()) return false;
    const auto [first, last] = std::minmax(move.from, move.to);
    for (std::size_t i = first; i <= last; ++i) {
      if (i != move.from && Ordered(slots[i], slots[move.from])) return false;
    }
    return FitsAfter(move, first, last);
  }

  bool FitsAfter(const Move& move, std::size_t first, std::size_t last) const {
    const std::vector<Slot>& slots = order_.slots[move.stage];
    Held held;
    for (std::size_t i = 0; i < first; ++i) held.Add(slots[i].kind);
    for (std::size_t i = first; i <= last; ++i) {
      std::size_t from = i;  // of the slot that will be at i
      if (i == move.to) {
        from = move.from;
      } else {
        from = move.from < move.to ? i + 1 : i - 1;
      }
      held.Add(slots[from].kind);
      if (!Fits(held, problem_.shares.Of(move.stage), problem_.memory_limit[move.stage])) {
        return false;
      }
    }
    return true;
  }

  // The stage whose end is what the objective counts.
  int WorstStage() const {
    const auto length = [this](int s) {
      return problem_.objective == ZbObjective::kSpan
                 ? replay_.last_end(s)
                 : replay_.last_end(s) - replay_.first_start(s);
    };
    int worst = 0;
    for (int s = 1; s < problem_.stages; ++s) {
      if (length(s) > length(worst)) worst = s;
    }
    return worst;
  }

  // Why the slot did not start earlier: the slot before it, without a break, or else what it needs
  // from another slot; nullopt at the start of the step.
  std::optional<At> Before(At at) const {
    const Picoseconds start = replay_.start(at.stage, at.slot);
    if (at.slot > 0 && replay_.end(at.stage, at.slot - 1) == start) {
      return At{at.stage, at.slot - 1};
    }
    const Slot& slot = order_.slots[at.stage][at.slot];
    if (slot.kind == SlotKind::kBackwardWeight) return std::nullopt;
    const int step = path_.StepOf({at.stage, slot.chunk}, slot.kind);
    if (step == 0) return std::nullopt;
    const At maker{path_.place(step - 1).stage, replay_.SlotOf(step - 1, slot.micro_batch)};
    return path_.Sends(step - 1) ? FirstOfQueue(maker, step - 1) : maker;
  }

  // The slot whose message went at once, and behind which those up to the message of `maker`, which
  // runs `step`, went without a break.
  At FirstOfQueue(At maker, int step) const {
    const std::vector<Slot>& slots = order_.slots[maker.stage];
    const Slot& made = slots[maker.slot];
    Picoseconds sent = replay_.arrival(step + 1, made.micro_batch) - path_.transfer(step);
    for (std::size_t i = maker.slot; replay_.end(maker.stage, maker.slot) < sent && i-- > 0;) {
      if (slots[i].kind != made.kind) continue;
      const int earlier = path_.StepOf({maker.stage, slots[i].chunk}, slots[i].kind);
      if (!path_.Sends(earlier)) continue;
      maker.slot = i;
      sent -= path_.transfer(earlier);
    }
    return maker;
  }

  void AddMoves(At at, std::vector<Move>& moves) const {
    const std::vector<Slot>& slots = order_.slots[at.stage];
    const bool waits =
        at.slot > 0 && replay_.end(at.stage, at.slot - 1) < replay_.start(at.stage, at.slot);
    if (waits) AddGapFill(at, moves);
    for (std::size_t r = 1; r <= kReach; ++r) {
      if (!waits && r <= at.slot) moves.push_back({at.stage, at.slot, at.slot - r});
      if (slots[at.slot].kind == SlotKind::kBackwardWeight) {
        moves.push_back({at.stage, at.slot, at.slot + r});
      }
    }
  }

  // The first weight gradient behind the gap whose data gradient is before it.
  void AddGapFill(At at, std::vector<Move>& moves) const {
    const std::vector<Slot>& slots = order_.slots[at.stage];
    for (std::size_t i = at.slot; i < slots.size(); ++i) {
      if (slots[i].kind != SlotKind::kBackwardWeight) continue;
      const int step = path_.BackwardStep({at.stage, slots[i].chunk});
      if (replay_.SlotOf(step, slots[i].micro_batch) < at.slot) {
        moves.push_back({at.stage, i, at.slot});
      }
      return;
    }
  }

  std::vector<Move> Moves() const {
    std::vector<Move> moves;
    const int worst = WorstStage();
    std::optional<At> at = At{worst, order_.slots[worst].size() - 1};
    // Slots of no length can be each other's reason; no path is longer than all slots.
    for (std::int64_t i = 0; i < slots_ && at.has_value(); ++i) {
      AddMoves(*at, moves);
      at = Before(*at);
    }
    return moves;
  }

  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  Order order_;
  std::int64_t budget_;
  std::int64_t slots_ = 0;
  ZbReplay replay_;
  Merit merit_;
};

}  // namespace

Order Improve(const ZbProblem& problem, const MicroBatchPath& path, Order order,
              std::int64_t budget) {
  return Improver(problem, path, std::move(order), budget).Run();
}

}  // namespace optimus::pipeline
