#include "executor/runtime/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace optimus::executor {
namespace {

// before[a][b]: a has ended when b begins.
using Relation = std::vector<std::vector<bool>>;

// Dependencies or waits, by operation.
using Lists = std::vector<std::vector<std::uint32_t>>;

Relation Closure(const ir::Program& program, const Lists& lists) {
  const std::size_t count = program.operations.size();
  Relation before(count, std::vector<bool>(count, false));
  for (std::size_t b = 0; b < count; ++b) {
    for (const std::uint32_t a : lists[b]) before[a][b] = true;
    for (std::size_t a = 0; a < b; ++a) {
      if (program.operations[a].stream == program.operations[b].stream) before[a][b] = true;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        if (before[a][k] && before[k][b]) before[a][b] = true;
      }
    }
  }
  return before;
}

bool HasCycle(const Relation& before) {
  for (std::size_t a = 0; a < before.size(); ++a) {
    if (before[a][a]) return true;
  }
  return false;
}

ir::Program WithDependencies(ir::Program program, const Lists& lists) {
  program.dependencies.clear();
  for (std::size_t id = 0; id < lists.size(); ++id) {
    ir::Operation& op = program.operations[id];
    op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(lists[id].size());
    program.dependencies.insert(program.dependencies.end(), lists[id].begin(), lists[id].end());
  }
  return program;
}

// Random operations on a few streams; dependencies may point either way, but never in a circle.
struct RandomProgram {
  explicit RandomProgram(std::uint32_t seed) {
    std::mt19937 random(seed);
    const std::size_t count = 4 + random() % 12;
    lists.resize(count);
    program.operations.resize(count);
    for (ir::Operation& op : program.operations) {
      op.stream = static_cast<ir::Stream>(random() % 4);
    }
    for (std::size_t tries = 3 * count; tries > 0; --tries) {
      const std::size_t a = random() % count;
      const std::size_t b = random() % count;
      if (a == b) continue;
      lists[b].push_back(static_cast<std::uint32_t>(a));
      if (HasCycle(Closure(program, lists))) lists[b].pop_back();
    }
    program = WithDependencies(program, lists);
  }
  ir::Program program;
  Lists lists;
};

TEST(OrderTest, EveryOperationComesAfterWhatItWaitsFor) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    const RandomProgram random(seed);
    const std::vector<std::uint32_t> order = EnqueueOrder(random.program);
    ASSERT_EQ(order.size(), random.program.operations.size());
    const Relation before = Closure(random.program, random.lists);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NE(order[i], order[j]);
        EXPECT_FALSE(before[order[i]][order[j]]) << seed;
      }
    }
  }
}

TEST(OrderTest, WithoutDependenciesOnLaterOperationsItIsTheOrderOfIssue) {
  RandomProgram random(3);
  for (std::uint32_t id = 0; id < random.lists.size(); ++id) {
    std::erase_if(random.lists[id], [id](std::uint32_t d) { return d > id; });
  }
  const ir::Program program = WithDependencies(random.program, random.lists);
  const std::vector<std::uint32_t> order = EnqueueOrder(program);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), program.operations.size());
}

TEST(OrderTest, NeededWaitsForceTheSameOrderAndNoneCanBeLeftOut) {
  std::size_t dependencies = 0;
  std::size_t kept = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    const RandomProgram random(seed);
    const Lists waits = NeededWaits(random.program, EnqueueOrder(random.program));
    const Relation expected = Closure(random.program, random.lists);
    ASSERT_EQ(Closure(random.program, waits), expected) << seed;
    for (std::size_t id = 0; id < waits.size(); ++id) {
      for (std::size_t i = 0; i < waits[id].size(); ++i) {
        Lists fewer = waits;
        fewer[id].erase(fewer[id].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(Closure(random.program, fewer), expected)
            << "seed " << seed << ": operation " << id << " need not wait for " << waits[id][i];
      }
      kept += waits[id].size();
      dependencies += random.lists[id].size();
    }
  }
  EXPECT_LT(kept, dependencies);
}

}  // namespace
}  // namespace optimus::executor
