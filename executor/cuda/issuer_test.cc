#include "executor/cuda/issuer.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "executor/cuda/command.h"
#include "executor/cuda/gate.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

void WaitFor(const Issuer& issuer) {
  while (!issuer.done()) std::this_thread::yield();
}

TEST(Issuer, RunsJobsOnAThreadOfItsOwn) {
  std::thread::id first;
  Issuer issuer([&first] {
    first = std::this_thread::get_id();
    return absl::OkStatus();
  });
  EXPECT_TRUE(issuer.done());
  for (int i = 0; i < 100; ++i) {
    int ran = 0;
    issuer.Run([&] {
      if (std::this_thread::get_id() == first) ran = i + 1;
      return i % 2 == 0 ? absl::OkStatus() : absl::InternalError("odd");
    });
    WaitFor(issuer);
    EXPECT_EQ(ran, i + 1);
    EXPECT_EQ(issuer.status().ok(), i % 2 == 0);
  }
}

TEST(Issuer, AFailedStartFailsEveryJob) {
  Issuer issuer([] { return absl::UnavailableError("no GPU"); });
  bool ran = false;
  issuer.Run([&ran] {
    ran = true;
    return absl::OkStatus();
  });
  WaitFor(issuer);
  EXPECT_FALSE(ran);
  EXPECT_EQ(issuer.status().message(), "no GPU");
}

TEST(Issuer, ItsEndStopsTheJob) {
  std::atomic<bool> seen{false};
  {
    Issuer issuer([] { return absl::OkStatus(); });
    issuer.Run([&] {
      while (!issuer.stopped()) std::this_thread::yield();
      seen = true;
      return absl::CancelledError("stopped");
    });
  }
  EXPECT_TRUE(seen);
}

TEST(Gate, HoldsUntilItIsOpened) {
  Gate gate;
  for (int round = 0; round < 20; ++round) {
    gate.Close();
    std::atomic<bool> through{false};
    std::thread stream([&] {
      gate.WaitUntilOpen();
      through = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(through);
    gate.Open();
    stream.join();
    EXPECT_TRUE(through);
  }
}

TEST(SameWork, ComparesWhatIsDoneAndWhere) {
  const auto work = [](int stream, std::uint64_t signature) {
    Command command;
    command.stream = stream;
    command.signature = signature;
    return command;
  };
  const auto record = [](int stream, Event event) {
    Command command;
    command.kind = Command::Kind::kRecord;
    command.stream = stream;
    command.event = event;
    return command;
  };
  const std::vector<Command> a = {work(0, 7), record(0, 3)};
  EXPECT_TRUE(SameWork(a, {work(0, 7), record(0, 3)}));
  EXPECT_FALSE(SameWork(a, {work(0, 8), record(0, 3)}));
  EXPECT_FALSE(SameWork(a, {work(1, 7), record(0, 3)}));
  EXPECT_FALSE(SameWork(a, {work(0, 7), record(0, 4)}));
  EXPECT_FALSE(SameWork(a, {work(0, 7)}));
  EXPECT_FALSE(SameWork(a, {record(0, 3), work(0, 7)}));
}

TEST(Signature, DependsOnWordsAndTheirOrder) {
  EXPECT_EQ(Signature().Add(1).Add(2).value(), Signature().Add(1).Add(2).value());
  EXPECT_NE(Signature().Add(1).Add(2).value(), Signature().Add(2).Add(1).value());
  EXPECT_NE(Signature().Add(1).value(), Signature().Add(1).Add(std::uint64_t{0}).value());
}

}  // namespace
}  // namespace optimus::executor::cuda
