#pragma once
// The program of one lane of one stage, while operations of several sources are merged into it.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/units.h"
#include "schedule/ir/schedule.h"

namespace optimus::colocate {

class LaneProgram {
 public:
  // Operations are known by their order of addition until Finish.
  using Item = std::uint32_t;

  // Operations of one stream run in order of `start`, ties in order of addition.
  Item Add(const ir::Operation& operation, Picoseconds start);
  // `item` waits for `before`. Dependencies keep the order in which they are given; those given
  // with WaitFirst come before the others.
  void Wait(Item item, Item before) { waits_.push_back({item, before, false}); }
  void WaitFirst(Item item, Item before) { waits_.push_back({item, before, true}); }

  const ir::Operation& operation(Item item) const { return operations_[item]; }
  ir::Operation& operation(Item item) { return operations_[item]; }
  Picoseconds start(Item item) const { return starts_[item]; }
  std::size_t size() const { return operations_.size(); }
  // Whether `a` is issued before `b`.
  bool Before(Item a, Item b) const {
    return starts_[a] != starts_[b] ? starts_[a] < starts_[b] : a < b;
  }

  ir::Program Finish(std::int32_t stage, std::int32_t lane) &&;

 private:
  struct Edge {
    Item item = 0, before = 0;
    bool first = false;
  };
  std::vector<ir::Operation> operations_;
  std::vector<Picoseconds> starts_;
  std::vector<Edge> waits_;
};

}  // namespace optimus::colocate
