#include "schedule/pipeline/order_span.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/message_queues.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

using Table = std::vector<std::vector<Picoseconds>>;

absl::Status CheckTable(const Order& order, const char* field, const Table& table) {
  bool fits = table.size() == static_cast<std::size_t>(order.stages);
  for (const auto& row : table) {
    fits = fits && row.size() == static_cast<std::size_t>(order.chunks);
    for (const Picoseconds time : row) {
      if (time < Picoseconds(0)) {
        return absl::InvalidArgumentError(absl::StrCat(field, ": negative time ", time.value()));
      }
    }
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": needs ", order.stages, " stages x ",
                                                   order.chunks, " chunks of times"));
  }
  return absl::OkStatus();
}

class Evaluator {
 public:
  Evaluator(const Order& order, const SlotTimes& times)
      : order_(order),
        times_(times),
        forward_(Cells()),
        backward_(Cells()),
        next_(order.slots.size(), 0),
        messages_(order.stages) {
    span_.slots.resize(order.slots.size());
    span_.first_start.resize(order.slots.size());
    span_.last_end.resize(order.slots.size());
  }

  // Until nothing moves: sweeps over the stages, each as far as it can go. Empty if all came to
  // their end, else the circle that keeps them from it.
  std::vector<Wait> Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < next_.size(); ++stage) {
        while (next_[stage] < order_.slots[stage].size() && TryNext(stage)) {
          moved = true;
        }
      }
    }
    for (std::size_t stage = 0; stage < next_.size(); ++stage) {
      if (next_[stage] < order_.slots[stage].size()) return CircleFrom(stage);
    }
    return {};
  }

  // After a Run that came to its end.
  OrderSpan TakeSpan() {
    for (std::size_t stage = 0; stage < next_.size(); ++stage) {
      span_.first_start[stage] = span_.slots[stage].front().start;
      span_.last_end[stage] = span_.slots[stage].back().end;
      span_.span = std::max(span_.span, span_.last_end[stage]);
    }
    return std::move(span_);
  }

 private:
  // When the result of each chunk of each stage for each micro-batch is where it is needed; nullopt
  // where it is not made yet, or by nobody.
  using Arrivals = std::vector<std::optional<Picoseconds>>;

  Arrivals Cells() const {
    return Arrivals(order_.slots.size() * static_cast<std::size_t>(order_.chunks) *
                    static_cast<std::size_t>(order_.micro_batches));
  }

  std::size_t Cell(Place place, int micro_batch) const {
    return (static_cast<std::size_t>(place.stage) * static_cast<std::size_t>(order_.chunks) +
            static_cast<std::size_t>(place.chunk)) *
               static_cast<std::size_t>(order_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  // Whose result `slot` needs; nullopt at the ends of the model and for weight gradients.
  std::optional<Place> Needs(std::size_t stage, const Slot& slot) const {
    const Place place = PlaceOf(stage, slot);
    switch (slot.kind) {
      case SlotKind::kForward:
        return PreviousPlace(order_.placement, order_.stages, place);
      case SlotKind::kBackward:
      case SlotKind::kBackwardData:
        return NextPlace(order_.placement, order_.stages, order_.chunks, place);
      case SlotKind::kBackwardWeight:
        break;
    }
    return std::nullopt;
  }

  // Whom the result of `slot` goes to; nullopt as above.
  std::optional<Place> Feeds(std::size_t stage, const Slot& slot) const {
    const Place place = PlaceOf(stage, slot);
    if (slot.kind == SlotKind::kBackwardWeight) return std::nullopt;
    if (slot.kind == SlotKind::kForward) {
      return NextPlace(order_.placement, order_.stages, order_.chunks, place);
    }
    return PreviousPlace(order_.placement, order_.stages, place);
  }

  // When the neighbour's result has arrived: 0 if none is needed, nullopt if it is not made yet.
  // The stage's own forward needs no look: ValidateOrder put it earlier on the same stage.
  std::optional<Picoseconds> Arrival(std::size_t stage, const Slot& slot) const {
    const std::optional<Place> from = Needs(stage, slot);
    if (!from.has_value()) {
      return Picoseconds(0);
    }
    const Arrivals& arrivals = slot.kind == SlotKind::kForward ? forward_ : backward_;
    return arrivals[Cell(*from, slot.micro_batch)];
  }

  Picoseconds Duration(std::size_t stage, const Slot& slot) const {
    const auto chunk = static_cast<std::size_t>(slot.chunk);
    switch (slot.kind) {
      case SlotKind::kForward:
        return times_.forward[stage][chunk];
      case SlotKind::kBackward:
        if (!times_.backward.empty()) return times_.backward[stage][chunk];
        return times_.backward_data[stage][chunk] + times_.backward_weight[stage][chunk];
      case SlotKind::kBackwardData:
        return times_.backward_data[stage][chunk];
      case SlotKind::kBackwardWeight:
        return times_.backward_weight[stage][chunk];
    }
    return Picoseconds(0);
  }

  Picoseconds DurationTogether(std::size_t stage, const Slot& forward, const Slot& backward) const {
    if (!times_.together.empty()) {
      return times_.together[stage][static_cast<std::size_t>(forward.chunk)];
    }
    return Duration(stage, forward) + Duration(stage, backward);
  }

  void Record(std::size_t stage, const Slot& slot, SlotInterval when) {
    span_.slots[stage].push_back(when);
    ++next_[stage];
    const std::optional<Place> to = Feeds(stage, slot);
    if (!to.has_value()) return;
    const auto from = static_cast<int>(stage);
    Arrivals& arrivals = slot.kind == SlotKind::kForward ? forward_ : backward_;
    arrivals[Cell(PlaceOf(stage, slot), slot.micro_batch)] =
        to->stage == from ? when.end
                          : messages_.Send(from, slot.kind, when.end, times_.communication);
  }

  // The next slot of the stage, and its partner where it has one.
  bool TryNext(std::size_t stage) {
    const Slot& slot = order_.slots[stage][next_[stage]];
    const Slot* partner = slot.with_next ? &slot + 1 : nullptr;
    const auto arrival = Arrival(stage, slot);
    const auto other = partner == nullptr ? arrival : Arrival(stage, *partner);
    if (!arrival.has_value() || !other.has_value()) {
      return false;
    }
    const auto& done = span_.slots[stage];
    const Picoseconds free = done.empty() ? Picoseconds(0) : done.back().end;
    const Picoseconds start = std::max({*arrival, *other, free});
    const Picoseconds duration =
        partner == nullptr ? Duration(stage, slot) : DurationTogether(stage, slot, *partner);
    Record(stage, slot, {start, start + duration});
    if (partner != nullptr) Record(stage, *partner, {start, start + duration});
    return true;
  }

  Wait BlockedAt(std::size_t stage) const {
    std::size_t index = next_[stage];
    const std::vector<Slot>& slots = order_.slots[stage];
    // Of two that start together, the one that waits.
    if (slots[index].with_next && Arrival(stage, slots[index]).has_value()) ++index;
    const Place needs = Needs(stage, slots[index]).value_or(Place{});
    const auto needs_stage = static_cast<std::size_t>(needs.stage);
    return {stage, index, needs_stage, IndexOf(needs, slots[index])};
  }

  // Where `place` makes what `slot`, of another place, needs.
  std::size_t IndexOf(Place place, const Slot& slot) const {
    const auto stage = static_cast<std::size_t>(place.stage);
    const std::vector<Slot>& slots = order_.slots[stage];
    const auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot& other) {
      const bool same_way =
          other.kind == SlotKind::kForward
              ? slot.kind == SlotKind::kForward
              : other.kind != SlotKind::kBackwardWeight && slot.kind != SlotKind::kForward;
      return same_way && other.chunk == place.chunk && other.micro_batch == slot.micro_batch;
    });
    return static_cast<std::size_t>(found - slots.begin());
  }

  // What a blocked stage needs comes behind where another one is blocked. So the way from one to
  // the next ends in a circle.
  std::vector<Wait> CircleFrom(std::size_t stage) const {
    std::vector<Wait> way;
    std::vector<std::size_t> at(next_.size(), next_.size());  // by stage: index in `way`
    while (at[stage] == next_.size()) {
      at[stage] = way.size();
      way.push_back(BlockedAt(stage));
      stage = way.back().needs_stage;
    }
    way.erase(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(at[stage]));
    const auto lowest = std::min_element(
        way.begin(), way.end(), [](const Wait& a, const Wait& b) { return a.stage < b.stage; });
    std::rotate(way.begin(), lowest, way.end());
    return way;
  }

  const Order& order_;
  const SlotTimes& times_;
  Arrivals forward_, backward_;    // by the place that made the result
  std::vector<std::size_t> next_;  // by stage: the slot to run next
  MessageQueues messages_;
  OrderSpan span_;
};

std::string NameOf(const Order& order, std::size_t stage, std::size_t index) {
  return absl::StrCat("stage ", stage, ", slot ", index, " (", ToString(order.slots[stage][index]),
                      ")");
}

absl::Status Deadlock(const Order& order, const std::vector<Wait>& circle) {
  std::string text = "order deadlocks: ";
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const Wait& wait = circle[i];
    absl::StrAppend(&text, i == 0 ? "" : "; ", NameOf(order, wait.stage, wait.index),
                    " waits for the ", ToString(order.slots[wait.needs_stage][wait.needs_index]),
                    " of stage ", wait.needs_stage, ", which cannot run before ",
                    i + 1 < circle.size() ? "the next of these" : "the first of these");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace

absl::Status CheckTimes(const Order& order, const SlotTimes& times) {
  OPTIMUS_RETURN_IF_ERROR(CheckTable(order, "forward", times.forward));
  OPTIMUS_RETURN_IF_ERROR(CheckTable(order, "backward_data", times.backward_data));
  OPTIMUS_RETURN_IF_ERROR(CheckTable(order, "backward_weight", times.backward_weight));
  if (!times.together.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckTable(order, "together", times.together));
  }
  if (!times.backward.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckTable(order, "backward", times.backward));
  }
  if (times.communication < Picoseconds(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("communication: negative time ", times.communication.value()));
  }
  return absl::OkStatus();
}

SlotTimes UniformTimes(const Order& order, Picoseconds forward, Picoseconds backward_data,
                       Picoseconds backward_weight, Picoseconds communication) {
  const auto table = [&order](Picoseconds time) {
    return Table(order.stages, std::vector<Picoseconds>(order.chunks, time));
  };
  return {table(forward), table(backward_data), table(backward_weight), communication};
}

absl::StatusOr<OrderSpan> EvaluateOrder(const Order& order, const SlotTimes& times) {
  OPTIMUS_RETURN_IF_ERROR(ValidateOrder(order));
  OPTIMUS_RETURN_IF_ERROR(CheckTimes(order, times));
  Evaluator evaluator(order, times);
  const std::vector<Wait> circle = evaluator.Run();
  if (!circle.empty()) return Deadlock(order, circle);
  return evaluator.TakeSpan();
}

std::vector<Wait> FindDeadlock(const Order& order) {
  const SlotTimes no_times =
      UniformTimes(order, Picoseconds(0), Picoseconds(0), Picoseconds(0), Picoseconds(0));
  return Evaluator(order, no_times).Run();
}

}  // namespace optimus::pipeline
