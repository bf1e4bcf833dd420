#include "executor/host/host_device.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/testing_sanitizer.h"
#include "executor/host/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::AllOf;
using testing::FunctionDevice;
using testing::FunctionTask;
using ::testing::HasSubstr;

constexpr auto kCompute = ir::Stream::kCompute;
constexpr auto kTp = ir::Stream::kTensorParallel;
constexpr auto kDp = ir::Stream::kDataParallel;
constexpr auto kForever = absl::InfiniteDuration();

// Counts the tasks that are alive.
struct CountedTask : FunctionTask {
  explicit CountedTask(std::atomic<int>& tasks) : alive(tasks) { ++alive; }
  ~CountedTask() override { --alive; }
  std::atomic<int>& alive;
};

std::unique_ptr<FunctionTask> EndlessTask() {
  auto task = std::make_unique<FunctionTask>();
  task->poll = [] { return std::optional<std::int64_t>(); };
  return task;
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(HostDevice, RunsNothingBeforeStartAndEverythingAfter) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(2, 0, {}).ok());
  std::atomic<int> runs{0};
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(device.Begin().ok());
    EXPECT_FALSE(device.HasHappened(0));
    ASSERT_TRUE(device.LaunchHost(kCompute, [&] { return ++runs, absl::OkStatus(); }).ok());
    device.Record(kCompute, 0);
    device.Wait(kTp, 0);
    ASSERT_TRUE(device.Enqueue(kTp, std::make_unique<FunctionTask>()).ok());
    device.Record(kTp, 1);
    EXPECT_EQ(runs, step - 1);
    ASSERT_TRUE(device.Start().ok());
    const auto ended = device.Synchronize(kForever);
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_TRUE(*ended);
    EXPECT_EQ(runs, step);
    EXPECT_TRUE(device.HasHappened(0) && device.HasHappened(1));
    EXPECT_LE(device.TimeNs(0), device.TimeNs(1));
    EXPECT_LE(device.TimeNs(1), NowNs());
  }
}

TEST(HostDevice, AnEmptyStepEnds) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  ASSERT_TRUE(device.Begin().ok());
  ASSERT_TRUE(device.Start().ok());
  EXPECT_TRUE(*device.Synchronize(kForever));
}

// A task that ends after the compute stream has waited for it, on both clocks.
TEST(HostDevice, NominalTimeIsTheLatestOfWhatWasWaitedFor) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(4, 0, {}).ok());
  std::int64_t start_ns = -1, after_task_ns = -1, after_both_ns = -1, alone_ns = -1;
  const Kernel kernel;
  int kernels = 0;
  device.set_run([&](const Kernel&, std::int64_t ready_ns) {
    ++kernels;
    (kernels == 1 ? start_ns : kernels == 2 ? after_task_ns : after_both_ns) = ready_ns;
    return ready_ns + 1000;
  });
  ASSERT_TRUE(device.Begin().ok());
  ASSERT_TRUE(device.Launch(kCompute, kernel).ok());
  auto slow = std::make_unique<FunctionTask>();
  slow->poll = [task = slow.get()] { return std::optional<std::int64_t>(task->ready_ns + 70000); };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(slow)).ok());
  device.Record(kTp, 0);
  auto quick = std::make_unique<FunctionTask>();
  quick->start = [&](std::int64_t ready_ns) { return alone_ns = ready_ns, absl::OkStatus(); };
  quick->poll = [task = quick.get()] { return std::optional<std::int64_t>(task->ready_ns + 10); };
  ASSERT_TRUE(device.Enqueue(kDp, std::move(quick)).ok());
  device.Record(kDp, 1);
  device.Wait(kCompute, 1);
  device.Wait(kCompute, 0);
  ASSERT_TRUE(device.Launch(kCompute, kernel).ok());
  device.Wait(kCompute, 1);  // earlier than what the stream has reached: changes nothing
  ASSERT_TRUE(device.Launch(kCompute, kernel).ok());
  ASSERT_TRUE(device.Start().ok());
  ASSERT_TRUE(device.Synchronize(kForever).ok());
  EXPECT_EQ(alone_ns, start_ns);
  EXPECT_EQ(after_task_ns, start_ns + 70000);
  EXPECT_EQ(after_both_ns, start_ns + 71000);
}

TEST(HostDevice, DoesNotPollATaskBeforeItsMoment) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  ASSERT_TRUE(device.Begin().ok());
  auto task = std::make_unique<FunctionTask>();
  bool early = false;
  int polls = 0;
  FunctionTask* const t = task.get();
  task->start = [t](std::int64_t) {
    return t->not_before_ns = NowNs() + 3000000, absl::OkStatus();
  };
  task->poll = [&, t]() -> absl::StatusOr<std::optional<std::int64_t>> {
    early |= NowNs() < t->not_before_ns;
    if (++polls == 3) return NowNs();
    t->not_before_ns = NowNs() + 1000000;
    return std::nullopt;
  };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  ASSERT_TRUE(device.Synchronize(kForever).ok());
  EXPECT_FALSE(early);
  EXPECT_EQ(polls, 3);
}

TEST(HostDevice, PollsTheLessOftenTheLongerItWaits) {
  HostOptions options;
  options.poll_idle = absl::Microseconds(10);
  options.poll_idle_longest = absl::Milliseconds(10);
  FunctionDevice device(options);
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  ASSERT_TRUE(device.Begin().ok());
  auto task = std::make_unique<FunctionTask>();
  int polls = 0;
  std::int64_t end_ns = 0;
  task->start = [&](std::int64_t) { return end_ns = NowNs() + 50'000'000, absl::OkStatus(); };
  task->poll = [&] {
    ++polls;
    return NowNs() >= end_ns ? std::optional<std::int64_t>(1) : std::optional<std::int64_t>();
  };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  ASSERT_TRUE(device.Synchronize(kForever).ok());
  // 8 of 10 us, from where on each wait is 9/8 of the one before: ln(50 ms / 80 us) / ln(9/8) = 55.
  // Some come while the compute thread has not seen yet that it has nothing to do.
  EXPECT_LE(polls, 80);
}

TEST(HostDevice, TheComputeThreadPollsBetweenKernels) {
  HostOptions options;
  options.poll_busy = absl::ZeroDuration();
  options.poll_in_kernel = absl::Hours(1);
  FunctionDevice device(options);
  ASSERT_TRUE(device.Prepare(1, 0, {}).ok());
  ASSERT_TRUE(device.Begin().ok());
  std::atomic<bool> started{false};
  std::atomic<int> helped{0};
  std::atomic<bool> computed{false};
  std::thread::id compute_thread;
  auto task = std::make_unique<FunctionTask>();
  task->start = [&](std::int64_t) { return started = true, absl::OkStatus(); };
  task->poll = [&] {
    if (std::this_thread::get_id() == compute_thread) ++helped;
    return helped > 0 || computed ? std::optional<std::int64_t>(1) : std::optional<std::int64_t>();
  };
  ASSERT_TRUE(device
                  .LaunchHost(kCompute,
                              [&] {
                                compute_thread = std::this_thread::get_id();
                                return absl::OkStatus();
                              })
                  .ok());
  device.Record(kCompute, 0);
  device.Wait(kTp, 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(device
                    .LaunchHost(kCompute,
                                [&] {
                                  while (!started) std::this_thread::yield();
                                  if (helped == 0) SleepUntilNs(NowNs() + 1'000'000);
                                  return absl::OkStatus();
                                })
                    .ok());
  }
  ASSERT_TRUE(device.LaunchHost(kCompute, [&] { return computed = true, absl::OkStatus(); }).ok());
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  ASSERT_TRUE(device.Synchronize(kForever).ok());
  EXPECT_EQ(helped, 1);
}

TEST(HostDevice, SynchronizeGivesUpAtItsLimitAndCanBeCalledAgain) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  ASSERT_TRUE(device.Begin().ok());
  std::atomic<bool> may_end{false};
  auto task = std::make_unique<FunctionTask>();
  task->poll = [&] {
    return may_end ? std::optional<std::int64_t>(NowNs()) : std::optional<std::int64_t>();
  };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  EXPECT_FALSE(*device.Synchronize(absl::Milliseconds(2)));
  EXPECT_FALSE(*device.Synchronize(absl::ZeroDuration()));
  EXPECT_FALSE(device.Begin().ok());  // it still runs
  may_end = true;
  EXPECT_TRUE(*device.Synchronize(kForever));
  EXPECT_TRUE(*device.Synchronize(absl::ZeroDuration()));
}

// The first error ends the step, whichever thread it comes from; the rest is dropped unrun.
TEST(HostDevice, AnErrorDropsAllThatIsLeft) {
  for (const bool from_task : {false, true}) {
    std::atomic<int> alive{0};
    bool ran_after = false;
    FunctionDevice device;
    ASSERT_TRUE(device.Prepare(3, 0, {}).ok());
    ASSERT_TRUE(device.Begin().ok());
    const absl::Status error = absl::InternalError("broken");
    auto task = std::make_unique<CountedTask>(alive);
    task->poll = [&]() -> absl::StatusOr<std::optional<std::int64_t>> {
      if (from_task) return error;
      return std::nullopt;  // would never end
    };
    ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
    ASSERT_TRUE(device.Enqueue(kTp, std::make_unique<CountedTask>(alive)).ok());
    device.Record(kTp, 0);
    if (!from_task) {
      ASSERT_TRUE(device.LaunchHost(kCompute, [&] { return absl::Status(error); }).ok());
    }
    device.Wait(kCompute, 0);
    ASSERT_TRUE(
        device.LaunchHost(kCompute, [&] { return ran_after = true, absl::OkStatus(); }).ok());
    ASSERT_TRUE(device.Start().ok());
    EXPECT_EQ(device.Synchronize(kForever).status(), error);
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(ran_after);
    const absl::Status refused = device.Begin();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(MessageOf(refused), HasSubstr("broken"));
  }
}

TEST(HostDevice, AStampThatDiffersNamesBoth) {
  const std::function<std::string(const Stamp&)> text = [](const Stamp& stamp) {
    return stamp == Stamp{} ? std::string("nothing") : absl::StrCat("op ", stamp.operation);
  };
  Stamp seven, eight;
  seven.operation = 7;
  eight.operation = 8;
  for (const auto* describe : {&text, static_cast<decltype(&text)>(nullptr)}) {
    for (const bool written : {true, false}) {
      FunctionDevice device;
      ASSERT_TRUE(device.Prepare(1, 2, {}).ok());
      ASSERT_TRUE(device.Begin().ok());
      if (written) device.WriteStamp(kTp, 1, eight);
      device.Record(kTp, 0);
      device.Wait(kCompute, 0);
      device.CheckStamp(kCompute, 1, seven, describe);
      ASSERT_TRUE(device.Start().ok());
      const absl::Status error = device.Synchronize(kForever).status();
      EXPECT_EQ(error.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(MessageOf(error), HasSubstr(describe != nullptr ? "op 7" : "operation 7"));
      EXPECT_THAT(MessageOf(error), HasSubstr(!written              ? "nothing"
                                              : describe != nullptr ? "op 8"
                                                                    : "operation 8"));
    }
  }
}

TEST(HostDevice, StampsAreForgottenBetweenSteps) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 1, {}).ok());
  Stamp stamp;
  stamp.operation = 1;
  ASSERT_TRUE(device.Begin().ok());
  device.WriteStamp(kCompute, 0, stamp);
  device.CheckStamp(kCompute, 0, stamp, nullptr);
  ASSERT_TRUE(device.Start().ok());
  EXPECT_TRUE(device.Synchronize(kForever).ok());
  ASSERT_TRUE(device.Begin().ok());
  device.CheckStamp(kCompute, 0, stamp, nullptr);
  ASSERT_TRUE(device.Start().ok());
  EXPECT_EQ(device.Synchronize(kForever).status().code(), absl::StatusCode::kDataLoss);
}

TEST(HostDevice, DestructionInTheMiddleEndsTasksAndKernels) {
  std::atomic<int> alive{0};
  const Kernel kernel;
  {
    FunctionDevice device;
    device.set_run([&](const Kernel&, std::int64_t ready_ns) -> absl::StatusOr<std::int64_t> {
      const absl::Status slept = device.Sleep(NowNs() + 3600'000'000'000);
      if (!slept.ok()) return slept;
      return ready_ns;
    });
    ASSERT_TRUE(device.Prepare(1, 0, {}).ok());
    ASSERT_TRUE(device.Begin().ok());
    ASSERT_TRUE(device.Launch(kCompute, kernel).ok());
    device.Record(kCompute, 0);
    auto task = std::make_unique<CountedTask>(alive);
    task->poll = [] { return std::optional<std::int64_t>(); };
    ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
    device.Wait(kDp, 0);
    ASSERT_TRUE(device.Enqueue(kDp, std::make_unique<CountedTask>(alive)).ok());
    ASSERT_TRUE(device.Start().ok());
    EXPECT_FALSE(*device.Synchronize(absl::Milliseconds(1)));
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(HostDevice, GiveUpDropsTheTasksBeforeItReturns) {
  std::atomic<int> alive{0};
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  device.GiveUp();  // nothing to give up
  ASSERT_TRUE(device.Begin().ok());
  ASSERT_TRUE(device.Enqueue(kTp, std::make_unique<CountedTask>(alive)).ok());
  device.GiveUp();  // it had not started, so nothing has failed
  EXPECT_EQ(alive, 0);
  ASSERT_TRUE(device.Begin().ok());
  auto task = std::make_unique<CountedTask>(alive);
  task->poll = [] { return std::optional<std::int64_t>(); };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  device.GiveUp();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(device.Synchronize(kForever).status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(device.Begin().ok());
}

TEST(HostDevice, AStepThatWasEnqueuedAndNeverStartedIsDropped) {
  std::atomic<int> alive{0};
  {
    FunctionDevice device;
    ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
    ASSERT_TRUE(device.Begin().ok());
    ASSERT_TRUE(device.Enqueue(kTp, std::make_unique<CountedTask>(alive)).ok());
    ASSERT_TRUE(device.Begin().ok());
    EXPECT_EQ(alive, 0);
    ASSERT_TRUE(device.Enqueue(kTp, std::make_unique<CountedTask>(alive)).ok());
  }
  EXPECT_EQ(alive, 0);
}

TEST(HostDevice, RefusesWhatItsStreamsCannotDo) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  Kernel kernel;
  kernel.name = "fc1";
  EXPECT_EQ(device.Launch(kCompute, kernel).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(device.Start().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(device.Synchronize(kForever).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(device.Begin().ok());
  const absl::Status launch = device.Launch(kTp, kernel);
  EXPECT_EQ(launch.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(launch), HasSubstr("fc1"));
  EXPECT_EQ(device.LaunchHost(kTp, [] { return absl::OkStatus(); }).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(device.Enqueue(kCompute, EndlessTask()).code(), absl::StatusCode::kUnimplemented);
}

TEST(HostDevice, StartRefusesMisuseThatWouldHangOrOverrun) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(2, 1, {}).ok());
  const auto refused = [&](const std::function<void()>& enqueue) {
    EXPECT_TRUE(device.Begin().ok());
    enqueue();
    const absl::Status status = device.Start();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(status);
  };
  EXPECT_THAT(refused([&] { device.Wait(kTp, 1); }),
              AllOf(HasSubstr("waits for event 1"), HasSubstr(ir::ToString(kTp))));
  EXPECT_THAT(refused([&] { device.Wait(kTp, 2); }), HasSubstr("event 2 of 2"));
  EXPECT_THAT(refused([&] { device.Record(kTp, 2); }), HasSubstr("event 2 of 2"));
  EXPECT_THAT(refused([&] {
                device.Record(kTp, 1);
                device.Record(kCompute, 1);
              }),
              HasSubstr("second time"));
  EXPECT_THAT(refused([&] { device.WriteStamp(kTp, 1, {}); }), HasSubstr("slot 1 of 1"));
  ASSERT_TRUE(device.Begin().ok());  // none of this counts as a failed step
  ASSERT_TRUE(device.Start().ok());
  EXPECT_TRUE(*device.Synchronize(kForever));
}

TEST(HostDevice, CallsTheProgressHookBetweenStepsAndWithin) {
  FunctionDevice device;
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  std::atomic<int> calls{0};
  device.SetProgress([&] { ++calls; });
  while (calls < 3) std::this_thread::yield();
  // A task that needs the hook to have been called since it started.
  ASSERT_TRUE(device.Begin().ok());
  auto task = std::make_unique<FunctionTask>();
  int at_start = 0;
  task->start = [&](std::int64_t) { return at_start = calls, absl::OkStatus(); };
  task->poll = [&] {
    return calls > at_start + 5 ? std::optional<std::int64_t>(1) : std::optional<std::int64_t>();
  };
  ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
  ASSERT_TRUE(device.Start().ok());
  EXPECT_TRUE(*device.Synchronize(kForever));
  device.SetProgress(nullptr);
  const int last = calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls, last);
}

TEST(HostDevice, PinsItsThreadsOrSaysThatItCannot) {
  HostOptions options;
  options.core = 100000;
  FunctionDevice nowhere(options);
  const absl::Status status = nowhere.Prepare(0, 0, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("core 100000"));

  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
  for (options.core = 0; !CPU_ISSET(options.core, &mine);) ++options.core;
  FunctionDevice device(options);
  ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
  int compute_cpu = -1;
  ASSERT_TRUE(device.Begin().ok());
  ASSERT_TRUE(
      device.LaunchHost(kCompute, [&] { return compute_cpu = sched_getcpu(), absl::OkStatus(); })
          .ok());
  ASSERT_TRUE(device.Start().ok());
  ASSERT_TRUE(device.Synchronize(kForever).ok());
  EXPECT_EQ(compute_cpu, options.core);
}

TEST(HostDevice, OutOfMemoryOnItsThreadsIsAnError) {
  for (const bool on_compute : {true, false}) {
    FunctionDevice device;
    ASSERT_TRUE(device.Prepare(0, 0, {}).ok());
    ASSERT_TRUE(device.Begin().ok());
    if (on_compute) {
      ASSERT_TRUE(
          device.LaunchHost(kCompute, []() -> absl::Status { throw std::bad_alloc(); }).ok());
    } else {
      auto task = std::make_unique<FunctionTask>();
      task->start = [](std::int64_t) -> absl::Status { throw std::bad_alloc(); };
      ASSERT_TRUE(device.Enqueue(kTp, std::move(task)).ok());
    }
    ASSERT_TRUE(device.Start().ok());
    const absl::Status status = device.Synchronize(kForever).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(MessageOf(status), HasSubstr("out of memory within a step"));
  }
}

#if !OPTIMUS_SANITIZED_MEMORY
// In a process of its own, which may have no more memory for the stack of a thread.
TEST(HostDeviceDeathTest, WithoutThreadsItIsAnError) {
  const auto try_it = [] {
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGE_SIZE)) + (1 << 20);
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
    FunctionDevice device;
    const absl::Status status = device.Prepare(0, 0, {});
    std::cerr << status;
    std::_Exit(absl::IsResourceExhausted(status) ? 0 : 1);
  };
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(0), "cannot start the threads of a rank");
}
#endif

TEST(HostDevice, KnowsItsPartOfTheMemory) {
  HostOptions options;
  options.ranks_of_machine = 4;
  const FunctionDevice device(options);
  EXPECT_LE(device.memory_share().bytes, Bytes(device.memory().value() / 4));
  EXPECT_GT(device.memory_share().bytes, Bytes(0));
}

TEST(Clock, SleepsUntilTheMomentAndNotAtAllForThePast) {
  const std::int64_t until = NowNs() + 2'000'000;
  SleepUntilNs(until);
  EXPECT_GE(NowNs(), until);
  SleepUntilNs(until - 1'000'000'000);
  SleepUntilNs(0);
}

}  // namespace
}  // namespace optimus::executor
