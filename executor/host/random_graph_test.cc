// Random steps over all streams against a slow twin that runs the operations one by one: every
// operation sees the data of all it depends on, no event comes before one that it waits for, and
// the nominal times are those of the longest path.

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

#include "executor/host/testing.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using testing::FunctionDevice;
using testing::FunctionTask;

struct Node {
  int stream = 0;
  std::vector<int> waits;  // earlier nodes
  std::int64_t duration_ns = 0;
  int polls = 1;
  bool sleeps = false;
  bool host_work = false;
};

std::vector<Node> RandomNodes(std::mt19937& random, int count) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Node> nodes(count);
  for (int i = 0; i < count; ++i) {
    Node& node = nodes[i];
    node.stream = below(2) == 0 ? 0 : below(ir::kStreamCount);
    for (int w = below(4); w > 0 && i > 0; --w) node.waits.push_back(std::max(0, i - 1 - below(6)));
    node.duration_ns = std::int64_t{1000} * below(50);
    node.polls = 1 + below(3);
    node.sleeps = below(8) == 0;
  }
  nodes[0].waits.clear();
  return nodes;
}

struct Outcome {
  std::vector<std::int64_t> data, ready_ns;  // by node; ready from the start of the step
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::int64_t Mix(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(a) * 31 + b) % 1'000'000'007);
}

// Data of a node: a mix of what the data of its stream's last node and of all it waits for are.
std::int64_t DataOf(const std::vector<Node>& nodes, int i, int previous,
                    const std::vector<std::int64_t>& data) {
  std::int64_t value = i + 1;
  if (previous >= 0) value = Mix(value, data[previous]);
  for (const int wait : nodes[i].waits) value = Mix(value, data[wait]);
  return value;
}

// By node: the one before it in its stream, or -1.
std::vector<int> PreviousOf(const std::vector<Node>& nodes) {
  std::vector<int> previous(nodes.size());
  std::array<int, ir::kStreamCount> last{};
  last.fill(-1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    previous[i] = std::exchange(last[nodes[i].stream], static_cast<int>(i));
  }
  return previous;
}

Outcome Twin(const std::vector<Node>& nodes) {
  const std::vector<int> previous = PreviousOf(nodes);
  Outcome twin;
  std::vector<std::int64_t> ends;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    std::int64_t ready = previous[i] >= 0 ? ends[previous[i]] : 0;
    for (const int wait : nodes[i].waits) ready = std::max(ready, ends[wait]);
    twin.ready_ns.push_back(ready);
    ends.push_back(ready + nodes[i].duration_ns);
    twin.data.push_back(DataOf(nodes, i, previous[i], twin.data));
  }
  return twin;
}

// Runs the nodes on a device, several steps with one device, as the runtime would.
class GraphRun {
 public:
  GraphRun(FunctionDevice& device, const std::vector<Node>& nodes)
      : device_(device), nodes_(nodes), previous_(PreviousOf(nodes)), kernels_(nodes.size()) {
    outcome_.data.resize(nodes.size());
    outcome_.ready_ns.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      kernels_[i].flops = Flops(static_cast<double>(i));
    }
    device.set_run([this](const Kernel& kernel, std::int64_t ready_ns) {
      return RunKernel(static_cast<int>(kernel.flops.value()), ready_ns);
    });
  }

  absl::Status Step() {
    if (absl::Status begun = device_.Begin(); !begun.ok()) return begun;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) Enqueue(i);
    if (absl::Status started = device_.Start(); !started.ok()) return started;
    const auto ended = device_.Synchronize(absl::Seconds(60));
    if (!ended.ok()) return ended.status();
    return *ended ? absl::OkStatus() : absl::DeadlineExceededError("it hangs");
  }

  Outcome FromStart() const {
    Outcome outcome = outcome_;
    for (std::int64_t& ready : outcome.ready_ns) ready -= outcome_.ready_ns[0];
    return outcome;
  }

  void ExpectEventsInOrder() const {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::int64_t begin = device_.TimeNs(BeginEvent(i));
      EXPECT_LE(begin, device_.TimeNs(EndEvent(i)));
      if (previous_[i] >= 0) {
        EXPECT_GE(begin, device_.TimeNs(EndEvent(previous_[i])));
      }
      for (const int wait : nodes_[i].waits) EXPECT_GE(begin, device_.TimeNs(EndEvent(wait)));
    }
  }

 private:
  static Stamp StampOfNode(int i) {
    Stamp stamp;
    stamp.operation = i;
    return stamp;
  }

  void Enqueue(int i) {
    const auto stream = static_cast<ir::Stream>(nodes_[i].stream);
    for (const int wait : nodes_[i].waits) device_.Wait(stream, EndEvent(wait));
    device_.Record(stream, BeginEvent(i));
    for (const int wait : nodes_[i].waits) {
      device_.CheckStamp(stream, wait, StampOfNode(wait), nullptr);
    }
    if (stream == ir::Stream::kCompute) {
      EXPECT_TRUE(device_.Launch(stream, kernels_[i]).ok());
    } else {
      EXPECT_TRUE(device_.Enqueue(stream, TaskOf(i)).ok());
    }
    device_.WriteStamp(stream, i, StampOfNode(i));
    device_.Record(stream, EndEvent(i));
  }

  // Plain memory: the thread sanitizer sees whether waiting orders it.
  std::int64_t Run(int i, std::int64_t ready_ns) {
    outcome_.ready_ns[i] = ready_ns;
    outcome_.data[i] = DataOf(nodes_, i, previous_[i], outcome_.data);
    return ready_ns + nodes_[i].duration_ns;
  }

  std::int64_t RunKernel(int i, std::int64_t ready_ns) {
    const std::int64_t end_ns = Run(i, ready_ns);
    if (nodes_[i].sleeps) SleepUntilNs(NowNs() + 30'000);
    return end_ns;
  }

  std::unique_ptr<HostTask> TaskOf(int i) {
    auto task = std::make_unique<FunctionTask>();
    task->start = [this, i, t = task.get()](std::int64_t /*ready_ns*/) {
      if (nodes_[i].sleeps) t->not_before_ns = NowNs() + 30'000;
      return absl::OkStatus();
    };
    task->poll = [this, i, t = task.get(),
                  left = nodes_[i].polls]() mutable -> absl::StatusOr<std::optional<std::int64_t>> {
      if (--left > 0) return std::nullopt;
      return Run(i, t->ready_ns);
    };
    return task;
  }

  FunctionDevice& device_;
  const std::vector<Node>& nodes_;
  const std::vector<int> previous_;
  std::vector<Kernel> kernels_;
  Outcome outcome_;
};

void RunSeed(std::uint32_t seed, const HostOptions& options) {
  std::mt19937 random(seed);
  const int count = 1 + static_cast<int>(random() % 60);
  const std::vector<Node> nodes = RandomNodes(random, count);
  const Outcome twin = Twin(nodes);
  FunctionDevice device(options);
  ASSERT_TRUE(device.Prepare(2 * count, count, {}).ok());
  GraphRun run(device, nodes);
  for (int step = 0; step < 5; ++step) {
    const absl::Status status = run.Step();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(run.FromStart(), twin) << "seed " << seed << " step " << step;
    run.ExpectEventsInOrder();
  }
}

TEST(RandomGraph, EqualsTheTwin) {
  HostOptions options;
  options.poll_busy = absl::Microseconds(20);
  options.poll_in_kernel = absl::Microseconds(30);
  for (std::uint32_t seed = 0; seed < 400; ++seed) RunSeed(seed, options);
}

TEST(RandomGraph, EqualsTheTwinOnOneCore) {
  HostOptions options;
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
  for (options.core = 0; !CPU_ISSET(options.core, &mine);) ++options.core;
  for (std::uint32_t seed = 1000; seed < 1200; ++seed) RunSeed(seed, options);
}

TEST(RandomGraph, EqualsTheTwinWhereThePollingThreadYields) {
  HostOptions options;
  options.poll_idle = absl::ZeroDuration();
  for (std::uint32_t seed = 2000; seed < 2200; ++seed) RunSeed(seed, options);
}

// Given up at a random moment, by an error or by destruction: it never hangs.
TEST(RandomGraph, CanBeDroppedAtAnyMoment) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int count = 30;
    const std::vector<Node> nodes = RandomNodes(random, count);
    FunctionDevice device;
    ASSERT_TRUE(device.Prepare(2 * count, count, {}).ok());
    GraphRun run(device, nodes);
    const auto bad = static_cast<int>(random() % count);
    const auto fail = [&](const Kernel& kernel,
                          std::int64_t ready) -> absl::StatusOr<std::int64_t> {
      if (static_cast<int>(kernel.flops.value()) >= bad) return absl::InternalError("bad kernel");
      return ready;
    };
    device.set_run(fail);
    const bool has_bad = std::any_of(nodes.begin() + bad, nodes.end(),
                                     [](const Node& node) { return node.stream == 0; });
    EXPECT_EQ(run.Step(), has_bad ? absl::InternalError("bad kernel") : absl::OkStatus());
    if (!has_bad && seed % 2 == 0) {
      ASSERT_TRUE(device.Begin().ok());
    }
  }
}

TEST(RandomGraph, CanBeDestroyedAtAnyMoment) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Kernel kernel;  // outlives the step
    FunctionDevice device;
    constexpr int kPairs = 200;
    ASSERT_TRUE(device.Prepare(2 * kPairs, 0, {}).ok());
    ASSERT_TRUE(device.Begin().ok());
    for (std::uint32_t i = 0; i < kPairs; ++i) {  // a chain from thread to thread
      ASSERT_TRUE(device.Launch(ir::Stream::kCompute, kernel).ok());
      device.Record(ir::Stream::kCompute, 2 * i);
      device.Wait(ir::Stream::kTensorParallel, 2 * i);
      ASSERT_TRUE(
          device.Enqueue(ir::Stream::kTensorParallel, std::make_unique<FunctionTask>()).ok());
      device.Record(ir::Stream::kTensorParallel, 2 * i + 1);
      device.Wait(ir::Stream::kCompute, 2 * i + 1);
    }
    ASSERT_TRUE(device.Start().ok());
    SleepUntilNs(NowNs() + std::int64_t{seed} * 3000);
  }
}

}  // namespace
}  // namespace optimus::executor
