#include "schedule/colocate/lane_program.h"

#include <algorithm>
#include <numeric>

namespace optimus::colocate {

LaneProgram::Item LaneProgram::Add(const ir::Operation& operation, Picoseconds start) {
  operations_.push_back(operation);
  starts_.push_back(start);
  return static_cast<Item>(operations_.size() - 1);
}

ir::Program LaneProgram::Finish(std::int32_t stage, std::int32_t lane) && {
  std::vector<Item> order(operations_.size());
  std::iota(order.begin(), order.end(), Item{0});
  std::sort(order.begin(), order.end(), [this](Item a, Item b) { return Before(a, b); });
  std::vector<std::uint32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  std::stable_sort(waits_.begin(), waits_.end(), [&](const Edge& a, const Edge& b) {
    if (a.item != b.item) return place[a.item] < place[b.item];
    return a.first && !b.first;
  });
  ir::Program program;
  program.stage = stage;
  program.lane = lane;
  program.operations.reserve(order.size());
  program.dependencies.reserve(waits_.size());
  auto edge = waits_.begin();
  for (const Item item : order) {
    ir::Operation op = operations_[item];
    op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    for (; edge != waits_.end() && edge->item == item; ++edge) {
      const std::uint32_t before = place[edge->before];
      const auto begin = program.dependencies.begin() + op.first_dependency;
      if (std::find(begin, program.dependencies.end(), before) != program.dependencies.end()) {
        continue;
      }
      program.dependencies.push_back(before);
    }
    op.dependency_count =
        static_cast<std::uint32_t>(program.dependencies.size()) - op.first_dependency;
    program.operations.push_back(op);
  }
  return program;
}

}  // namespace optimus::colocate
