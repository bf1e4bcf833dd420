#include "executor/watch/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/status_macros.h"
#include "executor/watch/testing.h"

namespace optimus::executor {
namespace {

using testing::ForkedRanks;
using testing::SharedState;
using testing::SharedWorld;

std::vector<int> NodesOf(const std::vector<std::pair<std::string, int>>& ranks) {
  std::vector<RankHost> hosts;
  hosts.reserve(ranks.size());
  for (const auto& [host, local_rank] : ranks) hosts.push_back({host, local_rank});
  std::vector<int> nodes;
  for (const RankHost& host : NumberNodes(hosts)) nodes.push_back(host.node);
  return nodes;
}

TEST(NumberNodesTest, OneHostNameIsOneNodeUnlessLocalRanksMeet) {
  using ::testing::ElementsAre;
  EXPECT_THAT(NodesOf({{"a", 0}, {"a", 1}, {"b", 0}, {"b", 1}}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(NodesOf({{"a", 0}, {"b", 0}, {"a", 1}, {"b", 1}}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(NodesOf({{"x", 0}, {"x", 1}, {"x", 0}, {"x", 1}}), ElementsAre(0, 0, 1, 1));
}

// Lines of /proc/self/maps that name a status board.
std::vector<std::string> MappedBoards() {
  std::vector<std::string> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/optimus-") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST(NeighboursTest, FindEachOtherAndLeaveNoFile) {
  ForkedRanks ranks(5, 5, [](SharedWorld& world, SharedState&) -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Neighbours> neighbours, Neighbours::Meet(world));
    const std::vector<std::string> boards = MappedBoards();
    if (boards.size() != 1) return absl::InternalError("not one board");
    if (!boards[0].ends_with("(deleted)")) return absl::InternalError(boards[0]);
    neighbours->Write(absl::StrCat("text of ", world.rank()));
    OPTIMUS_RETURN_IF_ERROR(world.Barrier());
    for (int rank = 0; rank < 5; ++rank) {
      if (neighbours->Read(rank).text != absl::StrCat("text of ", rank)) {
        return absl::InternalError(neighbours->Read(rank).text);
      }
    }
    return world.Barrier();
  });
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_TRUE(ranks.ResultOf(rank).ok()) << ranks.ResultOf(rank);
  }
}

TEST(NeighboursTest, OfAnotherNodeAreNotOnTheBoard) {
  ForkedRanks ranks(4, 2, [](SharedWorld& world, SharedState&) -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Neighbours> neighbours, Neighbours::Meet(world));
    const int first = world.rank() / 2 * 2;
    if (neighbours->local_ranks() != std::vector<int>{first, first + 1}) {
      return absl::InternalError("other neighbours");
    }
    if (neighbours->IsLocal((first + 2) % 4)) return absl::InternalError("one node");
    return world.Barrier();
  });
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(ranks.ResultOf(rank).ok()) << ranks.ResultOf(rank);
  }
}

TEST(NeighboursTest, WhoIsNotOnTheBoardOfItsHostIsRefused) {
  ForkedRanks ranks(1, 1, [](SharedWorld& world, SharedState& state) {
    // Rank 0 of two, whose other rank never joins the board.
    class Lonely : public SharedWorld {
     public:
      using SharedWorld::SharedWorld;
      absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
        return std::vector<std::string>{mine, "1\nnode0\n"};
      }
      absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override {
        return from_rank_0;
      }
    };
    Lonely lonely(state, world.rank(), 2, 2);
    return Neighbours::Meet(lonely).status();
  });
  const absl::Status refused = ranks.ResultOf(0);
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("rank 1 is on host node0 like rank 0, but not on its status "
                                   "board; hint: "));
}

TEST(NeighboursTest, AllAreRefusedWhereOneHasNoBoard) {
  ForkedRanks ranks(3, 3, [](SharedWorld& world, SharedState& state) {
    class Failing : public SharedWorld {
     public:
      using SharedWorld::SharedWorld;
      absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
        return SharedWorld::Gather(rank() == 1 ? mine + "no memory left" : mine);
      }
    };
    Failing failing(state, world.rank(), 3, 3);
    return Neighbours::Meet(failing).status();
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(std::string(ranks.ResultOf(rank).message()), "rank 1: no memory left");
  }
}

}  // namespace
}  // namespace optimus::executor
