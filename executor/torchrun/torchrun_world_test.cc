// Every rank a process of its own, over the loopback interface.
#include "executor/torchrun/torchrun_world.h"

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "executor/torchrun/testing_processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr absl::Duration kLong = absl::Seconds(60);

// The body of a rank: false fails the test, with the line printed.
#define REQUIRE_OR_FAIL(condition)                            \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      return 1;                                               \
    }                                                         \
  } while (false)

std::vector<int> InWorld(int ranks, const std::function<int(World&)>& body) {
  const int port = FreePort();
  return RunProcesses(ranks, [&](int rank) {
    auto world = JoinTorchrunWorld(RankOf(rank, ranks, port), {kLong});
    if (!world.ok()) {
      fprintf(stderr, "rank %d: %s\n", rank, std::string(world.status().message()).c_str());
      return 99;
    }
    return body(**world);
  });
}

TEST(TorchrunWorld, KnowsItsPlace) {
  EXPECT_THAT(InWorld(3,
                      [](World& world) {
                        REQUIRE_OR_FAIL(world.size() == 3 && world.local_size() == 3);
                        REQUIRE_OR_FAIL(world.rank() == world.local_rank());
                        REQUIRE_OR_FAIL(world.launcher() == "torchrun");
                        REQUIRE_OR_FAIL(world.clock_offset_ns() == 0);  // one machine, one clock
                        return 0;
                      }),
              Each(0));
}

TEST(TorchrunWorld, OneRankIsAWorld) {
  auto world = JoinTorchrunWorld(RankOf(0, 1, 0), {kLong});
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_TRUE((*world)->Barrier().ok());
  const auto all = (*world)->Gather("mine");
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(*all, ElementsAre("mine"));
  EXPECT_EQ((*world)->Broadcast("text").value(), "text");
  (*world)->Post(0, "to myself");
  EXPECT_EQ((*world)->Poll()->text, "to myself");
  EXPECT_FALSE((*world)->Poll());
}

TEST(TorchrunWorld, GathersAndBroadcastsInOrder) {
  EXPECT_THAT(InWorld(4,
                      [](World& world) {
                        for (int round = 0; round < 50; ++round) {
                          const auto all = world.Gather(absl::StrCat(round, " of ", world.rank()));
                          REQUIRE_OR_FAIL(all.ok());
                          REQUIRE_OR_FAIL(all->size() == (world.rank() == 0 ? 4U : 0U));
                          for (std::size_t rank = 0; rank < all->size(); ++rank) {
                            REQUIRE_OR_FAIL((*all)[rank] == absl::StrCat(round, " of ", rank));
                          }
                          const auto text =
                              world.Broadcast(absl::StrCat(round, " from ", world.rank()));
                          REQUIRE_OR_FAIL(text.ok() && *text == absl::StrCat(round, " from 0"));
                        }
                        return 0;
                      }),
              Each(0));
}

TEST(TorchrunWorld, CarriesLargeTexts) {
  EXPECT_THAT(InWorld(3,
                      [](World& world) {
                        const std::string large(20 << 20, static_cast<char>('a' + world.rank()));
                        const auto all = world.Gather(large);
                        REQUIRE_OR_FAIL(all.ok());
                        for (std::size_t rank = 0; rank < all->size(); ++rank) {
                          REQUIRE_OR_FAIL((*all)[rank] ==
                                          std::string(20 << 20, static_cast<char>('a' + rank)));
                        }
                        const auto text = world.Broadcast(large);
                        REQUIRE_OR_FAIL(text.ok() && *text == std::string(20 << 20, 'a'));
                        return 0;
                      }),
              Each(0));
}

// Nobody leaves a barrier before the last one has come to it.
TEST(TorchrunWorld, BarrierHoldsAll) {
  EXPECT_THAT(InWorld(3,
                      [](World& world) {
                        const absl::Time before = absl::Now();
                        if (world.rank() == 2) absl::SleepFor(absl::Milliseconds(300));
                        REQUIRE_OR_FAIL(world.Barrier().ok());
                        REQUIRE_OR_FAIL(absl::Now() - before > absl::Milliseconds(150));
                        return 0;
                      }),
              Each(0));
}

TEST(TorchrunWorld, NotesGoFromAnyRankToAny) {
  EXPECT_THAT(InWorld(4,
                      [](World& world) {
                        for (int to = 0; to < 4; ++to) world.Post(to, absl::StrCat("for ", to));
                        world.Post(17, "to nobody");
                        std::vector<int> from(4, 0);
                        const absl::Time deadline = absl::Now() + kLong;
                        for (int got = 0; got < 4 && absl::Now() < deadline;) {
                          const auto note = world.Poll();
                          if (!note) {
                            absl::SleepFor(absl::Milliseconds(1));
                            continue;
                          }
                          REQUIRE_OR_FAIL(note->text == absl::StrCat("for ", world.rank()));
                          ++from[static_cast<std::size_t>(note->from)];
                          ++got;
                        }
                        REQUIRE_OR_FAIL(from == std::vector<int>(4, 1));
                        REQUIRE_OR_FAIL(world.Barrier().ok());  // rank 0 has passed all on
                        return 0;
                      }),
              Each(0));
}

TEST(TorchrunWorld, WaitsNoLongerThanItsPatienceAndTicks) {
  EXPECT_THAT(
      InWorld(3,
              [](World& world) {
                if (world.rank() == 2) {  // never comes to the barrier
                  absl::SleepFor(absl::Seconds(4));
                  return 0;
                }
                int ticks = 0;
                world.SetPatience(absl::Milliseconds(600), [&ticks] {
                  ++ticks;
                  return absl::OkStatus();
                });
                const absl::Status status = world.Barrier();
                REQUIRE_OR_FAIL(absl::IsDeadlineExceeded(status));
                REQUIRE_OR_FAIL(
                    std::string(status.message()).find(world.rank() == 0 ? "rank 2" : "rank 0") !=
                    std::string::npos);
                REQUIRE_OR_FAIL(ticks >= 2);
                // Rank 1 is to wait in vain, not to find that rank 0 is gone.
                if (world.rank() == 0) absl::SleepFor(absl::Seconds(2));
                return 0;
              }),
      Each(0));
}

TEST(TorchrunWorld, ATicksErrorEndsTheWait) {
  EXPECT_THAT(InWorld(2,
                      [](World& world) {
                        if (world.rank() == 1) {
                          absl::SleepFor(absl::Seconds(1));
                          return 0;
                        }
                        world.SetPatience(kLong, [] { return absl::AbortedError("stop"); });
                        REQUIRE_OR_FAIL(absl::IsAborted(world.Barrier()));
                        return 0;
                      }),
              Each(0));
}

TEST(TorchrunWorld, ARankThatDiedIsNamed) {
  const auto codes = InWorld(3, [](World& world) {
    if (world.rank() == 1) kill(getpid(), SIGKILL);
    const absl::Status status = world.Barrier();
    if (world.rank() == 0) {
      REQUIRE_OR_FAIL(std::string(status.message()).find("rank 1 (") != std::string::npos);
      REQUIRE_OR_FAIL(std::string(status.message()).find("is gone") != std::string::npos);
      world.Abort(3);
    }
    return 0;  // never comes here: rank 0 ends it
  });
  EXPECT_THAT(codes, ElementsAre(3, 100 + SIGKILL, 3));
}

TEST(TorchrunWorld, AbortEndsAllRanks) {
  const auto codes = InWorld(4, [](World& world) {
    if (world.rank() == 2) world.Abort(2);
    while (true) {
      if (!world.Barrier().ok()) absl::SleepFor(kLong);
    }
    return 0;
  });
  EXPECT_THAT(codes, ElementsAre(2, 2, 2, 2));
}

}  // namespace
}  // namespace optimus::executor
