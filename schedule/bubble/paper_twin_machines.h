#pragma once
// Lanes as the slow twin of the paper's scheduler sees them: plain maps and lists.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/bubble/problem.h"

namespace optimus::bubble::testing {

inline constexpr Picoseconds kLongAgo(-1'000'000'000'000'000);

// What one resource of one lane has free, and from when on it is free outside of the LLM.
struct Machine {
  std::vector<Interval> slots;
  Picoseconds before, after;
};
using MachineKey = std::tuple<std::int32_t, std::int32_t, Resource>;  // stage, lane, resource
using Machines = std::map<MachineKey, Machine>;

// The slots that all these machines have free.
inline std::set<std::pair<Picoseconds, Picoseconds>> Common(const Machines& machines,
                                                            const std::vector<MachineKey>& keys) {
  std::set<std::pair<Picoseconds, Picoseconds>> common = {{kLongAgo, -kLongAgo}};
  for (const MachineKey& key : keys) {
    std::set<std::pair<Picoseconds, Picoseconds>> next;
    for (const auto& [start, end] : common) {
      for (const Interval& slot : machines.at(key).slots) {
        const Picoseconds from = std::max(start, slot.start);
        const Picoseconds to = std::min(end, slot.end);
        if (from < to) next.insert({from, to});
      }
    }
    common = next;
  }
  return common;
}

// The first time from `ready` on at which all machines are free for so long.
inline std::optional<Picoseconds> FirstFit(const Machines& machines,
                                           const std::vector<MachineKey>& keys, Picoseconds ready,
                                           Picoseconds duration) {
  for (const auto& [start, end] : Common(machines, keys)) {
    const Picoseconds at = std::max(start, ready);
    if (at + duration <= end) return at;
  }
  return std::nullopt;
}

inline void TakeSlot(Machine& machine, Interval taken) {
  std::vector<Interval> left;
  for (const Interval& slot : machine.slots) {
    const Interval head{slot.start, std::min(slot.end, taken.start)};
    const Interval tail{std::max(slot.start, taken.end), slot.end};
    if (head.start < head.end) left.push_back(head);
    if (tail.start < tail.end) left.push_back(tail);
  }
  machine.slots = left;
}

}  // namespace optimus::bubble::testing
