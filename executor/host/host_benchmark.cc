// What the streams of a HostDevice cost: an operation with an empty kernel, as the runtime enqueues
// it (wait, event, stamp, kernel, stamp, event), on one stream, and in a chain that changes the
// thread at every operation; and what polling takes from a computing thread. Both threads share one
// core, the highest that this process may use.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

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

std::int64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Argument: tasks in flight (on as many streams) while the compute thread computes for 50 ms.
// polling_percent: CPU time of the communication thread in that time. stolen_percent: how much of
// it the compute thread did not have the core; the machine's other work counts too.
void BM_StolenByPolling(benchmark::State& state) {
  const Kernel kernel;
  FunctionDevice device(OnOneCore());
  Check(device.Prepare(1, 0, {}));
  double stolen = 0, polling = 0, steps = 0;
  std::atomic<bool> computed{false};
  device.set_run([&](const Kernel&, std::int64_t) {
    const std::int64_t begin_ns = NowNs(), begin_cpu_ns = ThreadCpuNs();
    while (NowNs() < begin_ns + kComputeNs) benchmark::ClobberMemory();
    const auto wall_ns = static_cast<double>(NowNs() - begin_ns);
    stolen += 1 - static_cast<double>(ThreadCpuNs() - begin_cpu_ns) / wall_ns;
    steps += 1;
    computed = true;
    return NowNs();
  });
  for (auto unused : state) {
    computed = false;
    Check(device.Begin());
    Check(device.Launch(ir::Stream::kCompute, kernel));
    for (int s = 1; s <= state.range(0); ++s) {
      auto task = std::make_unique<FunctionTask>();
      task->poll = [&, s, cpu_ns = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
        if (cpu_ns == 0) cpu_ns = ThreadCpuNs();
        if (!computed) return std::nullopt;
        if (s == 1) polling += static_cast<double>(ThreadCpuNs() - cpu_ns) / kComputeNs;
        return 1;
      };
      Check(device.Enqueue(static_cast<ir::Stream>(s), std::move(task)));
    }
    Check(device.Start());
    Check(device.Synchronize(absl::InfiniteDuration()).status());
  }
  state.counters["polling_percent"] = 100 * polling / steps;
  state.counters["stolen_percent"] = 100 * stolen / steps;
}
BENCHMARK(BM_StolenByPolling)
    ->ArgName("tasks")
    ->Arg(0)
    ->Arg(1)
    ->Arg(4)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optimus::executor

BENCHMARK_MAIN();
