// Every plan is carried out in memory, block by block, and compared with a plain computation of
// what the collective means.

#include "executor/mpi/exchange_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "executor/mpi/plain_collective.h"

namespace optimus::executor {
namespace {

using testing::HasSubstr;

struct Member {
  ExchangePlan plan;
  std::vector<float> input, output, scratch;
  std::vector<float>& At(Place place) {
    return place == Place::kInput ? input : place == Place::kOutput ? output : scratch;
  }
};

// One wire between each pair, in order.
using Wires = std::map<std::pair<int, int>, std::deque<std::vector<float>>>;

void Send(std::vector<Member>& members, std::size_t round, Wires& wires) {
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    Member& member = members[static_cast<std::size_t>(rank)];
    if (round >= member.plan.rounds.size()) continue;
    for (const Block& block : member.plan.rounds[round].sends) {
      const auto first = member.At(block.place).begin() + block.offset;
      wires[{rank, block.peer}].emplace_back(first, first + block.floats);
    }
  }
}

void Receive(std::vector<Member>& members, std::size_t round, Wires& wires) {
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    Member& member = members[static_cast<std::size_t>(rank)];
    if (round >= member.plan.rounds.size()) continue;
    for (const Block& block : member.plan.rounds[round].receives) {
      auto& wire = wires[{block.peer, rank}];
      ASSERT_FALSE(wire.empty()) << "rank " << rank << " waits for rank " << block.peer;
      ASSERT_EQ(static_cast<std::int64_t>(wire.front().size()), block.floats);
      std::copy(wire.front().begin(), wire.front().end(),
                member.At(block.place).begin() + block.offset);
      wire.pop_front();
    }
  }
}

void SumAndCopyOwn(std::vector<Member>& members) {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    Member& member = members[rank];
    const ExchangePlan& plan = member.plan;
    std::copy_n(member.input.begin() + plan.own_input, plan.own_floats,
                member.output.begin() + plan.own_output);
    for (std::int64_t i = 0; i < plan.sum_floats; ++i) {
      float sum = 0;
      std::size_t other = 0;
      for (std::size_t j = 0; j < members.size(); ++j) {
        sum += j == rank ? member.input[static_cast<std::size_t>(plan.sum_input + i)]
                         : member.scratch[other++ * static_cast<std::size_t>(plan.sum_floats) +
                                          static_cast<std::size_t>(i)];
      }
      member.output[static_cast<std::size_t>(plan.sum_output + i)] = sum;
    }
  }
}

void CheckPlan(CollectiveKind kind, std::int64_t floats, int size) {
  SCOPED_TRACE(testing::Message() << ToString(kind) << " of " << floats << " between " << size);
  const auto inputs = PlainInputs(kind, floats, size);
  const auto expected = PlainCollective(kind, inputs);
  std::vector<Member> members;
  std::size_t rounds = 0;
  for (int rank = 0; rank < size; ++rank) {
    auto plan = PlanExchange(kind, floats, rank, size);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Member member;
    member.plan = *std::move(plan);
    member.input = inputs[static_cast<std::size_t>(rank)];
    ASSERT_EQ(member.plan.input, static_cast<std::int64_t>(member.input.size()));
    member.output.resize(static_cast<std::size_t>(member.plan.output), -1);
    member.scratch.resize(static_cast<std::size_t>(member.plan.scratch), -1);
    rounds = std::max(rounds, member.plan.rounds.size());
    members.push_back(std::move(member));
  }
  Wires wires;
  for (std::size_t round = 0; round < std::max<std::size_t>(rounds, 1); ++round) {
    Send(members, round, wires);
    Receive(members, round, wires);
    if (testing::Test::HasFatalFailure()) return;
    if (round == 0) SumAndCopyOwn(members);
  }
  for (const auto& [ends, wire] : wires) EXPECT_TRUE(wire.empty());
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(members[static_cast<std::size_t>(rank)].output,
              expected[static_cast<std::size_t>(rank)])
        << "rank " << rank;
  }
}

TEST(PlanExchangeTest, EveryPlanDoesWhatItsCollectiveMeans) {
  for (const CollectiveKind kind : kCollectiveKinds) {
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      for (const std::int64_t count : {0, 1, 2, 3, 7, 16, 33}) {
        CheckPlan(kind, FloatsFor(kind, Bytes(count * 4), size), size);
      }
    }
  }
}

// Two ranks: one round where it is small, two where it is large.
TEST(PlanExchangeTest, AllReduceOfTwoRanksOnBothSidesOfTheLimit) {
  for (const std::int64_t floats : {32768, 32769}) {
    CheckPlan(CollectiveKind::kAllReduce, floats, 2);
    const auto plan = PlanExchange(CollectiveKind::kAllReduce, floats, 0, 2);
    EXPECT_EQ(plan->rounds.size(), floats == 32768 ? 1U : 2U);
  }
}

// Nobody sends more than the algorithms of the field: (size - 1) / size of the whole (all-gather,
// reduce-scatter, all-to-all), twice that (all-reduce).
TEST(PlanExchangeTest, SendsNoMoreThanARing) {
  const std::int64_t floats = 64000;
  for (const auto& [kind, factor] :
       {std::pair(CollectiveKind::kAllGather, 1), std::pair(CollectiveKind::kReduceScatter, 1),
        std::pair(CollectiveKind::kAllToAll, 1), std::pair(CollectiveKind::kAllReduce, 2)}) {
    for (const int size : {2, 4, 8}) {
      const auto plan = PlanExchange(kind, floats, 1, size);
      ASSERT_TRUE(plan.ok());
      std::int64_t sent = 0;
      for (const ExchangeRound& round : plan->rounds) {
        for (const Block& block : round.sends) sent += block.floats;
      }
      EXPECT_EQ(sent, factor * floats * (size - 1) / size) << ToString(kind) << " " << size;
    }
  }
}

TEST(PlanExchangeTest, RefusesWhatDoesNotDivide) {
  const auto plan = PlanExchange(CollectiveKind::kReduceScatter, 7, 0, 2);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("reduce_scatter of 7 floats between 2 ranks"));
  EXPECT_FALSE(PlanExchange(CollectiveKind::kAllReduce, -1, 0, 2).ok());
}

TEST(FloatsForTest, AtLeastTheBytesInEqualParts) {
  EXPECT_EQ(FloatsFor(CollectiveKind::kAllReduce, Bytes(0), 4), 0);
  EXPECT_EQ(FloatsFor(CollectiveKind::kAllReduce, Bytes(5), 4), 2);
  EXPECT_EQ(FloatsFor(CollectiveKind::kAllGather, Bytes(5), 4), 4);
  EXPECT_EQ(FloatsFor(CollectiveKind::kReduceScatter, Bytes(16), 4), 4);
  EXPECT_EQ(FloatsFor(CollectiveKind::kReduceScatter, Bytes(17), 4), 8);
}

}  // namespace
}  // namespace optimus::executor
