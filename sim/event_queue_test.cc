#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace optimus::sim {
namespace {

TEST(EventQueueTest, PacksAndUnpacks) {
  const TimedEvent event(EventKind::kFlowEnd, 0xFFFFFFFF, 15, TimedEvent::kMaxExtra);
  EXPECT_EQ(event.kind(), EventKind::kFlowEnd);
  EXPECT_EQ(event.id(), 0xFFFFFFFF);
  EXPECT_EQ(event.stream(), 15U);
  EXPECT_EQ(event.extra(), TimedEvent::kMaxExtra);
}

TEST(EventQueueTest, NeighboursThatEndTogetherAreOneEvent) {
  EventQueue queue;
  for (std::uint32_t entity = 3; entity < 7; ++entity) {
    queue.Push(10, TimedEvent(EventKind::kStepEnd, entity, 2, 1));
  }
  queue.Push(10, TimedEvent(EventKind::kStepEnd, 7, 1, 1));  // another stream
  queue.Push(10, TimedEvent(EventKind::kStepEnd, 9, 1, 1));  // a gap
  std::vector<TimedEvent> events;
  EXPECT_EQ(queue.Pop(events), 10);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0], TimedEvent(EventKind::kStepEnd, 3, 2, 4));
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueueTest, TransfersAreNeverMerged) {
  EventQueue queue;
  queue.Push(1, TimedEvent(EventKind::kTransferEnd, 0, 0, 0));
  queue.Push(1, TimedEvent(EventKind::kTransferEnd, 0, 0, 0));
  std::vector<TimedEvent> events;
  queue.Pop(events);
  EXPECT_EQ(events.size(), 2U);
}

TEST(EventQueueTest, APushAtTheInstantBeingProcessedComesNext) {
  EventQueue queue;
  queue.Push(5, TimedEvent(EventKind::kTransferEnd, 1, 0, 0));
  queue.Push(6, TimedEvent(EventKind::kTransferEnd, 2, 0, 0));
  std::vector<TimedEvent> events;
  queue.Pop(events);
  queue.Push(5, TimedEvent(EventKind::kTransferEnd, 3, 0, 0));
  EXPECT_EQ(queue.Pop(events), 5);
  EXPECT_EQ(events.front().id(), 3U);
  EXPECT_EQ(queue.Pop(events), 6);
}

// The twin: a sorted map of sorted sets.
TEST(EventQueueTest, EqualsASortedMap) {
  std::mt19937 random(1);
  EventQueue queue;
  std::map<std::int64_t, std::multiset<TimedEvent>> twin;
  std::vector<TimedEvent> events;
  std::int64_t now = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 3 != 0 || twin.empty()) {
      const auto time = now + static_cast<std::int64_t>(random() % 20);
      const TimedEvent event(EventKind::kFlowEnd, random() % 5, random() % 16, random() % 3);
      queue.Push(time, event);
      twin[time].insert(event);
      continue;
    }
    ASSERT_EQ(queue.NextTime(), twin.begin()->first);
    now = queue.Pop(events);
    const auto& expected = twin.begin()->second;
    ASSERT_EQ(events, std::vector<TimedEvent>(expected.begin(), expected.end()));
    twin.erase(twin.begin());
  }
}

}  // namespace
}  // namespace optimus::sim
