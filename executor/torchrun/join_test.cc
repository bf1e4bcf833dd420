#include "executor/torchrun/join.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "executor/runtime/this_host.h"
#include "executor/torchrun/testing_processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Milliseconds(500);

// 0 where `text` has `part`; else prints the text, so that a failing test says why.
int Has(const absl::Status& status, const std::string& part) {
  const std::string text(status.message());
  if (text.find(part) != std::string::npos) return 0;
  fprintf(stderr, "expected '%s' in '%s'\n", part.c_str(), text.c_str());
  return 1;
}

TEST(JoinRanks, AllFindEachOther) {
  const int port = FreePort();
  const auto codes = RunProcesses(5, [port](int rank) {
    const auto joined = JoinRanks(RankOf(rank, 5, port), {kLong});
    if (!joined.ok()) return 1;
    if (joined->hosts[0] != HostName() || joined->machine_of_rank_0 != ThisMachine()) return 2;
    return joined->connections.size() == (rank == 0 ? 5U : 1U) ? 0 : 3;
  });
  EXPECT_THAT(codes, Each(0));
}

TEST(JoinRanks, ThoseThatDoNotComeAreNamed) {
  const int port = FreePort();
  const auto codes = RunProcesses(2, [port](int rank) {
    const auto joined = JoinRanks(RankOf(rank, 4, port), {rank == 0 ? absl::Seconds(2) : kLong});
    return Has(joined.status(), "ranks 2, 3 of 4 did not come to rank 0 within 2s; hint: ");
  });
  EXPECT_THAT(codes, Each(0));
}

TEST(JoinRanks, NoRank0IsSaid) {
  const int port = FreePort();
  const auto joined = JoinRanks(RankOf(1, 2, port), {kShort});
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(joined.status().message()),
              HasSubstr("rank 1 cannot join rank 0 at 127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(std::string(joined.status().message()), HasSubstr(" within 500ms: cannot connect: "));
}

TEST(JoinRanks, AnAddressThatNobodyKnowsIsNotTriedAgain) {
  TorchrunEnvironment environment = RankOf(1, 2, FreePort());
  environment.address = "no.such.host.invalid";
  const auto joined = JoinRanks(environment, {absl::InfiniteDuration()});
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(joined.status().message()),
              AllOf(HasSubstr("rank 1 cannot join"), HasSubstr("no.such.host.invalid"),
                    HasSubstr("hint: MASTER_ADDR")));
}

// What ends the wait of rank 0 is heard by those that had come.
TEST(JoinRanks, ATicksErrorEndsTheWaitOfAll) {
  const int port = FreePort();
  const auto codes = RunProcesses(2, [port](int rank) {
    JoinOptions options = {kLong};
    const absl::Time begin = absl::Now();
    if (rank == 0) {
      options.tick = [begin] {
        return absl::Now() < begin + absl::Seconds(2) ? absl::OkStatus()
                                                      : absl::CancelledError("told to stop");
      };
    }
    const auto joined = JoinRanks(RankOf(rank, 4, port), options);
    const std::string why =
        absl::StrCat("told to stop while rank 0 waits for ranks 2, 3 of 4 at port ", port);
    if (rank == 0 && !absl::IsCancelled(joined.status())) return 2;
    return Has(joined.status(), why);
  });
  EXPECT_THAT(codes, Each(0));
}

TEST(JoinRanks, ATicksErrorEndsTheWaitForRank0) {
  const int port = FreePort();
  JoinOptions options = {absl::InfiniteDuration()};
  int ticks = 0;
  options.tick = [&ticks] {
    return ++ticks < 3 ? absl::OkStatus() : absl::CancelledError("told to stop");
  };
  const auto joined = JoinRanks(RankOf(1, 2, port), options);
  EXPECT_TRUE(absl::IsCancelled(joined.status()));
  EXPECT_THAT(std::string(joined.status().message()),
              HasSubstr(absl::StrCat(
                  "told to stop while rank 1 waits for rank 0 at 127.0.0.1:", port, ": ")));
}

struct Heard {
  int times = 0;
  std::string text;
};

// Waits in vain with a `silence` that is short, and hears what is said meanwhile.
Heard HearWaiting(int rank, int port) {
  Heard heard;
  JoinOptions options = {absl::Seconds(2)};
  options.silence = absl::Milliseconds(200);
  options.say = [&heard](const std::string& text) {
    ++heard.times;
    heard.text = text;
  };
  EXPECT_FALSE(JoinRanks(RankOf(rank, 6, port), options).ok());
  return heard;
}

TEST(JoinRanks, SaysOnceWhomItWaitsFor) {
  const int port = FreePort();
  const Heard first = HearWaiting(0, port);
  EXPECT_EQ(first.times, 1);
  EXPECT_EQ(first.text,
            absl::StrCat("rank 0 waits for ranks 1-5 of 6 at port ", port, " (gives up after 2s)"));
  const Heard other = HearWaiting(2, port);
  EXPECT_EQ(other.times, 1);
  EXPECT_THAT(other.text, AllOf(HasSubstr(absl::StrCat("rank 2 waits for rank 0 at 127.0.0.1:",
                                                       port, ": cannot connect")),
                                HasSubstr("(gives up after 2s)")));
}

// Who listens there, but is no rank 0, is told from a rank 0 that waits for others.
TEST(JoinRanks, SaysThatNobodyAnswers) {
  const auto listening = Listen(0);
  ASSERT_TRUE(listening.ok());
  const Heard heard = HearWaiting(1, PortOf(*listening));
  EXPECT_EQ(heard.times, 1);
  EXPECT_THAT(heard.text, HasSubstr("who listens there does not answer"));
  close(*listening);
}

// Rank 0 says it for all that it knows.
TEST(JoinRanks, ARankThatRank0KnowsIsSilent) {
  const int port = FreePort();
  const auto codes = RunProcesses(2, [port](int rank) {
    JoinOptions options = {rank == 0 ? absl::Seconds(3) : kLong};
    options.silence = absl::Seconds(rank == 0 ? 1 : 2);
    int times = 0;
    options.say = [&times](const std::string&) { ++times; };
    const auto joined = JoinRanks(RankOf(rank, 3, port), options);
    return joined.ok() || times != (rank == 0 ? 1 : 0) ? 1 : 0;
  });
  EXPECT_THAT(codes, Each(0));
}

TEST(JoinRanks, TurnsAwayOtherJobsAndWorldsAndTwins) {
  const int port = FreePort();
  const auto codes = RunProcesses(5, [port](int process) {
    TorchrunEnvironment environment = RankOf(process, 2, port);
    if (process == 2) environment = RankOf(1, 3, port);
    if (process == 3) environment = RankOf(1, 2, port);
    if (process == 3) environment.job = "another";
    if (process == 4) {  // not one of ours at all
      for (int i = 0; i < 100; ++i) {
        const auto socket = ConnectOnce("127.0.0.1", port);
        if (socket.ok()) {
          const std::string request = "GET / HTTP/1.1\r\n\r\n";
          const bool sent = write(*socket, request.data(), request.size()) > 0;
          close(*socket);
          return sent ? 0 : 1;
        }
        usleep(20000);
      }
      return 2;
    }
    if (process == 1) usleep(700000);  // the others come first
    const auto joined = JoinRanks(environment, {process < 2 ? kLong : absl::Seconds(5)});
    if (process == 2) return Has(joined.status(), "rank 0 has WORLD_SIZE 2, this is rank 1 of 3");
    if (process == 3) return Has(joined.status(), "rank 0 belongs to job ''");
    return joined.ok() ? 0 : 1;
  });
  EXPECT_THAT(codes, ElementsAre(0, 0, 0, 0, 0));
}

TEST(JoinRanks, ATakenPortIsSaid) {
  const auto listening = Listen(0);
  ASSERT_TRUE(listening.ok());
  const auto joined = JoinRanks(RankOf(0, 2, PortOf(*listening)), {kShort});
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(joined.status().message()), HasSubstr("set OPTIMUS_PORT"));
  close(*listening);
}

}  // namespace
}  // namespace optimus::executor
