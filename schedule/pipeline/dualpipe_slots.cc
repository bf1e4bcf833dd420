#include "schedule/pipeline/dualpipe_slots.h"

#include <cstddef>
#include <utility>

namespace optimus::pipeline {
namespace {

class Builder {
 public:
  explicit Builder(const DualRank& rank)
      : rank_(rank), to_turn_(rank.depth - 1 - rank.distance), near_(rank.near), far_(rank.far) {
    slots_.reserve(static_cast<std::size_t>(rank.micro_batches) * 6);
  }

  std::vector<Slot> Build() {
    WarmUp();
    Steady();
    CoolDown();
    return std::move(slots_);
  }

 private:
  // A way, and the micro-batches whose turn is next.
  struct Turns {
    explicit Turns(const Way& way)
        : chunk(way.chunk),
          next_forward(way.first_micro_batch),
          next_backward(way.first_micro_batch) {}
    std::int32_t chunk, next_forward, next_backward;
  };

  void Forward(Turns& way) {
    slots_.push_back({SlotKind::kForward, way.chunk, way.next_forward++});
  }
  void Backward(Turns& way) {
    slots_.push_back({SlotKind::kBackward, way.chunk, way.next_backward++});
  }
  void Together(Turns& forward, Turns& backward) {
    Forward(forward);
    slots_.back().with_next = true;
    Backward(backward);
  }
  void BackwardData(Turns& way) {
    slots_.push_back({SlotKind::kBackwardData, way.chunk, way.next_backward});
    put_off_.push_back({SlotKind::kBackwardWeight, way.chunk, way.next_backward});
    ++way.next_backward;
  }
  // The oldest of those put off.
  void Weight() { slots_.push_back(put_off_[weights_done_++]); }

  void WarmUp() {
    for (int i = 0; i < 2 * to_turn_; ++i) Forward(near_);
    for (int i = 0; i <= rank_.distance; ++i) {
      Forward(near_);
      Forward(far_);
    }
    for (int i = 0; i < to_turn_; ++i) {
      BackwardData(far_);
      Weight();
      Forward(far_);
    }
  }

  void Steady() {
    const int rounds = rank_.micro_batches - 2 * rank_.depth + rank_.distance + 1;
    for (int i = 0; i < rounds; ++i) {
      if (i == 0 && to_turn_ == 0) {
        // Where the ways meet the first pair runs apart: its forward need not wait for the
        // gradient, and the next rank gets it sooner.
        Forward(near_);
        Backward(far_);
      } else {
        Together(near_, far_);
      }
      Together(far_, near_);
    }
    for (int i = 0; i < to_turn_; ++i) {
      Backward(far_);
      Together(far_, near_);
    }
  }

  // The last of the 2 (distance + 1) backwards in turn and all after them leave their weight
  // gradients for the gaps between the last backwards: one gap a rank on the way to the turn, and
  // as many behind the last of all as this rank is ahead of the others.
  void CoolDown() {
    const int in_turn = 2 * (rank_.distance + 1);
    for (int i = 0; i < in_turn; ++i) {
      Turns& way = i % 2 == 0 ? far_ : near_;
      if (i < rank_.distance + 1) {
        Backward(way);
      } else {
        BackwardData(way);
      }
    }
    for (int i = 0; i < to_turn_; ++i) {
      Weight();
      BackwardData(near_);
    }
    for (int i = 0; i <= rank_.distance; ++i) Weight();
  }

  const DualRank& rank_;
  const int to_turn_;  // ranks from this one to where the ways meet
  Turns near_, far_;
  std::vector<Slot> slots_;
  std::vector<Slot> put_off_;  // all weight gradients split off so far
  std::size_t weights_done_ = 0;
};

}  // namespace

std::vector<Slot> DualPipeSlots(const DualRank& rank) { return Builder(rank).Build(); }

}  // namespace optimus::pipeline
