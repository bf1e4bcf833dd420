// What the streams of a HostDevice cost: an operation with an empty kernel, as the runtime enqueues
// it (wait, event, stamp, kernel, stamp, event), on one stream, and in a chain that changes the
// thread at every operation; and what polling takes from a computing thread. Both threads share one
// core, the highest that this process may use.

#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "executor/host/testing.h"

namespace optimus::executor {
namespace {

using testing::FunctionDevice;
using testing::FunctionTask;

int LastCore() {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof(mine), &mine) != 0) return -1;
  int core = CPU_SETSIZE - 1;
  while (core >= 0 && !CPU_ISSET(core, &mine)) --core;
  return core;
}

void Check(const absl::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "host_benchmark: %s\n", status.ToString().c_str());
    std::exit(3);
  }
}

HostOptions OnOneCore() {
  HostOptions options;
  options.core = LastCore();
  return options;
}

void EnqueueOperation(FunctionDevice& device, std::uint32_t i, bool hops, const Kernel& kernel) {
  const bool communicates = hops && i % 2 == 1;
  const auto stream = communicates ? ir::Stream::kTensorParallel : ir::Stream::kCompute;
  if (hops && i > 0) device.Wait(stream, EndEvent(i - 1));
  device.Record(stream, BeginEvent(i));
  Stamp stamp;
  stamp.operation = static_cast<std::int32_t>(i);
  if (i > 0) {
    stamp.operation = static_cast<std::int32_t>(i - 1);
    device.CheckStamp(stream, i - 1, stamp, nullptr);
    stamp.operation = static_cast<std::int32_t>(i);
  }
  if (communicates) {
    Check(device.Enqueue(stream, std::make_unique<FunctionTask>()));
  } else {
    Check(device.Launch(stream, kernel));
  }
  device.WriteStamp(stream, i, stamp);
  device.Record(stream, EndEvent(i));
}

// Argument: 0, all on the compute stream; 1, every second one on a communication stream. Only what
// runs is timed, not enqueuing.
void BM_EmptyOperations(benchmark::State& state) {
  constexpr std::uint32_t kOperations = 2000;
  const Kernel kernel;
  FunctionDevice device(OnOneCore());
  Check(device.Prepare(2 * kOperations, kOperations, {}));
  for (auto unused : state) {
    Check(device.Begin());
    for (std::uint32_t i = 0; i < kOperations; ++i) {
      EnqueueOperation(device, i, state.range(0) == 1, kernel);
    }
    Check(device.Start());
    Check(device.Synchronize(absl::InfiniteDuration()).status());
    const std::int64_t took_ns =
        device.TimeNs(EndEvent(kOperations - 1)) - device.TimeNs(BeginEvent(0));
    state.SetIterationTime(static_cast<double>(took_ns) * 1e-9);
    state.counters["us_per_operation"] = static_cast<double>(took_ns) * 1e-3 / kOperations;
  }
}
BENCHMARK(BM_EmptyOperations)
    ->ArgName("hops")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

constexpr std::int64_t kComputeNs = 50'000'000;

std::int64_t CpuNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Runs a step with one task, to learn the communication thread's CPU clock.
clockid_t CommunicationClock(FunctionDevice& device) {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  auto task = std::make_unique<FunctionTask>();
  task->start = [&](std::int64_t /*ready_ns*/) {
    return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? absl::OkStatus()
                                                              : absl::InternalError("no clock");
  };
  Check(device.Begin());
  Check(device.Enqueue(ir::Stream::kTensorParallel, std::move(task)));
  Check(device.Start());
  Check(device.Synchronize(absl::InfiniteDuration()).status());
  return clock;
}

// Arguments: tasks in flight (on as many streams) while the compute thread computes for 50 ms, and
// the number of kernels that it does so in.
// polling_percent: CPU time of the communication thread in that time. stolen_percent: how much of
// it the compute thread did not have the core; the machine's other work counts too.
void BM_StolenByPolling(benchmark::State& state) {
  const Kernel kernel;
  FunctionDevice device(OnOneCore());
  Check(device.Prepare(1, 0, {}));
  const clockid_t polling_clock = CommunicationClock(device);
  const auto kernels = static_cast<int>(state.range(1));
  std::int64_t stolen_ns = 0, polling_ns = 0;
  device.set_run([&](const Kernel&, std::int64_t) {
    const std::int64_t begin_cpu_ns = CpuNs(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t begin_polling_ns = CpuNs(polling_clock);
    const std::int64_t begin_ns = NowNs();
    while (NowNs() < begin_ns + kComputeNs / kernels) benchmark::ClobberMemory();
    const std::int64_t wall_ns = NowNs() - begin_ns;
    polling_ns += CpuNs(polling_clock) - begin_polling_ns;
    stolen_ns +=
        std::max<std::int64_t>(0, wall_ns - (CpuNs(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns));
    return NowNs();
  });
  for (auto unused : state) {
    Check(device.Begin());
    for (int k = 0; k < kernels; ++k) Check(device.Launch(ir::Stream::kCompute, kernel));
    device.Record(ir::Stream::kCompute, 0);
    for (int s = 1; s <= state.range(0); ++s) {
      auto task = std::make_unique<FunctionTask>();
      task->poll = [&]() -> std::optional<std::int64_t> {
        if (!device.HasHappened(0)) return std::nullopt;
        return NowNs();
      };
      Check(device.Enqueue(static_cast<ir::Stream>(s), std::move(task)));
    }
    Check(device.Start());
    Check(device.Synchronize(absl::InfiniteDuration()).status());
  }
  const double all_ns = static_cast<double>(kComputeNs) * static_cast<double>(state.iterations());
  state.counters["polling_percent"] = 100 * static_cast<double>(polling_ns) / all_ns;
  state.counters["stolen_percent"] = 100 * static_cast<double>(stolen_ns) / all_ns;
}
BENCHMARK(BM_StolenByPolling)
    ->ArgNames({"tasks", "kernels"})
    ->Args({0, 1})
    ->Args({1, 1})
    ->Args({4, 1})
    ->Args({1, 500})
    ->Args({4, 500})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optimus::executor

BENCHMARK_MAIN();
