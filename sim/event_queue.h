#pragma once
// What happens when, for everything of known duration. Identical GPUs do the same things at the
// same instants, so this is a heap of DISTINCT times with a bucket of events each: a tie costs one
// append, not one heap operation.
//
// Events of one instant come sorted by identity (kind, id, stream), never by order of insertion.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schedule/ir/schedule.h"

namespace optimus::sim {

// The order is the order within one instant: what ends before what begins.
enum class EventKind : std::uint8_t {
  kTransferEnd,      // `id`: transfer that uses no shared link
  kFlowEnd,          // `id`: transfer, `extra`: generation of its flow
  kStepEnd,          // `id`: first entity, `extra`: how many entities, in sequence
  kFlowStart,        // `id`: transfer whose latency is paid
  kCollectiveStart,  // `id`: transfer that has to know what runs beside it
};

// Packed in a word: kind (3 bits) | id (32) | stream (4) | extra (25), so that the word's order is
// the order of identity.
class TimedEvent {
 public:
  static constexpr std::uint32_t kMaxExtra = (1U << 25) - 1;
  TimedEvent() = default;
  TimedEvent(EventKind kind, std::uint32_t id, unsigned stream, std::uint32_t extra)
      : word_(static_cast<std::uint64_t>(kind) << 61 | static_cast<std::uint64_t>(id) << 29 |
              static_cast<std::uint64_t>(stream) << 25 | extra) {}
  EventKind kind() const { return static_cast<EventKind>(word_ >> 61); }
  std::uint32_t id() const { return static_cast<std::uint32_t>(word_ >> 29); }
  unsigned stream() const { return static_cast<unsigned>(word_ >> 25) & 15U; }
  std::uint32_t extra() const { return static_cast<std::uint32_t>(word_) & kMaxExtra; }
  // True if `next` is the step end, on the same stream, of the entity that follows the ones of
  // this event: then it is counted in.
  bool Absorb(TimedEvent next) {
    const bool follows = kind() == EventKind::kStepEnd && next.kind() == EventKind::kStepEnd &&
                         stream() == next.stream() && id() + extra() == next.id() &&
                         extra() + next.extra() <= kMaxExtra;
    if (follows) word_ += next.extra();
    return follows;
  }
  friend bool operator==(TimedEvent, TimedEvent) = default;
  friend bool operator<(TimedEvent a, TimedEvent b) { return a.word_ < b.word_; }

 private:
  std::uint64_t word_ = 0;
};
static_assert(ir::kStreamCount <= 16);

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  // In picoseconds; the queue must not be empty.
  std::int64_t NextTime() const { return heap_.front().first; }

  // Whether an event of this kind is among those of the earliest time.
  bool NextHas(EventKind kind) const {
    const std::vector<TimedEvent>& next = buckets_[heap_.front().second];
    return std::any_of(next.begin(), next.end(),
                       [kind](TimedEvent event) { return event.kind() == kind; });
  }

  void Push(std::int64_t time, TimedEvent event) {
    std::vector<TimedEvent>& bucket = buckets_[BucketAt(time)];
    if (bucket.empty() || !bucket.back().Absorb(event)) bucket.push_back(event);
  }

  // Moves the events of the earliest time into `events`, sorted, and returns the time. A later Push
  // at the same time opens a new bucket.
  std::int64_t Pop(std::vector<TimedEvent>& events) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto [time, bucket] = heap_.back();
    heap_.pop_back();
    bucket_of_.erase(time);
    if (time == last_time_) last_time_ = kNever;
    events.clear();
    events.swap(buckets_[bucket]);
    free_.push_back(bucket);
    if (!std::is_sorted(events.begin(), events.end())) std::sort(events.begin(), events.end());
    return time;
  }

 private:
  static constexpr std::int64_t kNever = -1;

  std::uint32_t BucketAt(std::int64_t time) {
    if (time == last_time_) return last_bucket_;
    const auto [found, inserted] = bucket_of_.try_emplace(time, 0);
    if (inserted) {
      found->second = NewBucket();
      heap_.emplace_back(time, found->second);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    last_time_ = time;
    last_bucket_ = found->second;
    return last_bucket_;
  }
  std::uint32_t NewBucket() {
    if (free_.empty()) {
      buckets_.emplace_back();
      return static_cast<std::uint32_t>(buckets_.size() - 1);
    }
    const std::uint32_t bucket = free_.back();
    free_.pop_back();
    return bucket;
  }

  std::vector<std::pair<std::int64_t, std::uint32_t>> heap_;  // (time, bucket)
  absl::flat_hash_map<std::int64_t, std::uint32_t> bucket_of_;
  std::vector<std::vector<TimedEvent>> buckets_;
  std::vector<std::uint32_t> free_;
  std::int64_t last_time_ = kNever;  // neighbours mostly ask for the same time again
  std::uint32_t last_bucket_ = 0;
};

}  // namespace optimus::sim
