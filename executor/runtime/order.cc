#include "executor/runtime/order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace optimus::executor {
namespace {

std::size_t Index(ir::Stream stream) { return static_cast<std::size_t>(stream); }

// By operation: how many it comes after, and which come after it.
struct Edges {
  std::vector<std::uint32_t> before;
  std::vector<std::vector<std::uint32_t>> after;
};

Edges EdgesOf(const ir::Program& program) {
  const std::size_t count = program.operations.size();
  Edges edges{std::vector<std::uint32_t>(count), std::vector<std::vector<std::uint32_t>>(count)};
  auto add = [&](std::uint32_t from, std::uint32_t to) {
    edges.after[from].push_back(to);
    ++edges.before[to];
  };
  std::array<std::int64_t, ir::kStreamCount> last{};
  last.fill(-1);
  for (std::uint32_t id = 0; id < count; ++id) {
    const ir::Operation& op = program.operations[id];
    for (const std::uint32_t dependency : program.DependenciesOf(op)) add(dependency, id);
    std::int64_t& previous = last[Index(op.stream)];
    if (previous >= 0) add(static_cast<std::uint32_t>(previous), id);
    previous = id;
  }
  return edges;
}

// By stream, how many operations are known to have ended: the highest of their ids, plus one. As a
// stream runs in order, one number says it of all before it.
using Known = std::array<std::uint32_t, ir::kStreamCount>;

void Merge(const Known& other, Known& known) {
  for (std::size_t s = 0; s < known.size(); ++s) known[s] = std::max(known[s], other[s]);
}

class WaitFinder {
 public:
  WaitFinder(const ir::Program& program, const std::vector<std::uint32_t>& order)
      : program_(program), position_(order.size()), at_begin_(order.size()) {
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  }

  // Call it in order of enqueuing.
  std::vector<std::uint32_t> WaitsOf(std::uint32_t id) {
    const std::size_t own = Index(program_.operations[id].stream);
    Known known = on_stream_[own];
    std::vector<std::uint32_t> waits;
    for (const std::uint32_t candidate : Candidates(id)) {
      const std::size_t stream = Index(program_.operations[candidate].stream);
      if (candidate < known[stream]) continue;
      waits.push_back(candidate);
      Merge(at_begin_[candidate], known);
      known[stream] = candidate + 1;
    }
    std::sort(waits.begin(), waits.end());
    at_begin_[id] = known;
    known[own] = id + 1;
    on_stream_[own] = known;
    return waits;
  }

 private:
  // Dependencies on other streams, the last enqueued first: it says most about the others.
  std::vector<std::uint32_t> Candidates(std::uint32_t id) const {
    const ir::Operation& op = program_.operations[id];
    std::vector<std::uint32_t> candidates;
    for (const std::uint32_t dependency : program_.DependenciesOf(op)) {
      if (program_.operations[dependency].stream != op.stream) candidates.push_back(dependency);
    }
    std::sort(candidates.begin(), candidates.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position_[a] > position_[b]; });
    return candidates;
  }

  const ir::Program& program_;
  std::vector<std::uint32_t> position_;              // by operation: in the order
  std::vector<Known> at_begin_;                      // by operation
  std::array<Known, ir::kStreamCount> on_stream_{};  // after the stream's last operation so far
};

}  // namespace

std::vector<std::uint32_t> EnqueueOrder(const ir::Program& program) {
  Edges edges = EdgesOf(program);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t id = 0; id < edges.before.size(); ++id) {
    if (edges.before[id] == 0) ready.push(id);
  }
  std::vector<std::uint32_t> order;
  order.reserve(edges.before.size());
  while (!ready.empty()) {
    const std::uint32_t id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const std::uint32_t next : edges.after[id]) {
      if (--edges.before[next] == 0) ready.push(next);
    }
  }
  return order;
}

std::vector<std::vector<std::uint32_t>> NeededWaits(const ir::Program& program,
                                                    const std::vector<std::uint32_t>& order) {
  WaitFinder finder(program, order);
  std::vector<std::vector<std::uint32_t>> waits(order.size());
  for (const std::uint32_t id : order) waits[id] = finder.WaitsOf(id);
  return waits;
}

}  // namespace optimus::executor
