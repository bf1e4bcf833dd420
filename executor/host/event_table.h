#pragma once
// The events of a device and the stamps of its tensors, shared by its threads without locks.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "executor/runtime/device.h"
#include "executor/runtime/stamp.h"

namespace optimus::executor {

// Who waits for an event: bits.
enum Waiter : std::uint8_t { kComputeThread = 1, kCommunicationThread = 2 };

class EventTable {
 public:
  void Resize(std::uint32_t count) {
    events_ = std::make_unique<State[]>(count);
    count_ = count;
  }
  std::uint32_t size() const { return count_; }
  // Between steps.
  void Reset() {
    for (std::uint32_t e = 0; e < count_; ++e) {
      events_[e].actual_ns.store(0, std::memory_order_relaxed);
      events_[e].waiters.store(0, std::memory_order_relaxed);
    }
  }

  bool HasHappened(Event event) const {
    return events_[event].actual_ns.load(std::memory_order_seq_cst) != 0;
  }
  // After HasHappened.
  std::int64_t ActualNs(Event event) const {
    return events_[event].actual_ns.load(std::memory_order_relaxed);
  }
  std::int64_t NominalNs(Event event) const { return events_[event].nominal_ns; }

  // Whoever waits says so before it looks once more and sleeps.
  void AnnounceWaiter(Event event, Waiter waiter) {
    events_[event].waiters.fetch_or(waiter, std::memory_order_seq_cst);
  }
  // Sets the event; true: `other` has announced that it waits.
  bool Record(Event event, std::int64_t nominal_ns, std::int64_t actual_ns, Waiter other) {
    State& state = events_[event];
    state.nominal_ns = nominal_ns;  // published by the next store
    state.actual_ns.store(actual_ns, std::memory_order_seq_cst);
    return (state.waiters.load(std::memory_order_seq_cst) & other) != 0;
  }

 private:
  struct State {
    std::atomic<std::int64_t> actual_ns{0};  // 0: it has not happened
    std::int64_t nominal_ns = 0;
    std::atomic<std::uint8_t> waiters{0};
  };
  std::unique_ptr<State[]> events_;
  std::uint32_t count_ = 0;
};

// A schedule that lacks a dependency reads a stamp while it is written. That is what stamps are to
// find, so it must be no undefined behaviour: a torn stamp is a wrong one.
class StampTable {
 public:
  void Resize(std::uint32_t count) {
    slots_ = std::make_unique<Slot[]>(count);
    count_ = count;
    Reset();
  }
  std::uint32_t size() const { return count_; }
  void Reset() {
    for (std::uint32_t s = 0; s < count_; ++s) Write(s, Stamp{});
  }
  void Write(std::uint32_t slot, const Stamp& stamp) {
    std::uint32_t words[kWords];
    std::memcpy(words, &stamp, sizeof(stamp));
    for (int w = 0; w < kWords; ++w) {
      slots_[slot].words[w].store(words[w], std::memory_order_relaxed);
    }
  }
  Stamp Read(std::uint32_t slot) const {
    std::uint32_t words[kWords];
    for (int w = 0; w < kWords; ++w) {
      words[w] = slots_[slot].words[w].load(std::memory_order_relaxed);
    }
    Stamp stamp;
    std::memcpy(&stamp, words, sizeof(stamp));
    return stamp;
  }

 private:
  static constexpr int kWords = sizeof(Stamp) / sizeof(std::uint32_t);
  static_assert(sizeof(Stamp) == kWords * sizeof(std::uint32_t));
  struct Slot {
    std::atomic<std::uint32_t> words[kWords];
  };
  std::unique_ptr<Slot[]> slots_;
  std::uint32_t count_ = 0;
};

}  // namespace optimus::executor
