#pragma once
// For tests: ranks whose devices and communicators take virtual time. Every rank is a thread that
// enqueues; once all have called Synchronize, one of them works out when everything happened, by
// the semantics of a Schedule. What takes how long is given by functions, so a test knows every
// time exactly.

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/testing.h"
#include "executor/runtime/world.h"

namespace optimus::executor::testing {

// Nanoseconds. `kernel`: `nth` counts the launches of a rank in a step, from 0.
struct VirtualCosts {
  std::function<std::int64_t(const Kernel& kernel, int rank, int nth)> kernel =
      [](const Kernel&, int, int) { return 0; };
  std::function<std::int64_t(const CollectiveWork& work, const std::vector<std::int32_t>& ranks)>
      collective = [](const CollectiveWork&, const std::vector<std::int32_t>&) { return 0; };
  std::function<std::int64_t(Bytes bytes, int from, int to)> message = [](Bytes, int, int) {
    return 0;
  };
  std::int64_t launch = 0;  // added to every kernel
  std::int64_t wake = 0;    // a stream that waited goes on so much later
};

class VirtualDevice;

struct VirtualCluster {
  explicit VirtualCluster(int size) : world(size), devices(static_cast<std::size_t>(size)) {}

  Cluster world;  // for FakeWorld
  VirtualCosts costs;
  std::vector<VirtualDevice*> devices;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  std::int64_t steps = 0;
  absl::Status result;
  // Of one step. By communicator and order of issue: who has come, and when the last did.
  struct Meeting {
    int arrived = 0;
    std::int64_t latest = 0;
  };
  std::map<std::pair<std::string, std::int64_t>, Meeting> meetings;
  std::map<std::tuple<int, int, std::int32_t>, std::int64_t> arrivals;  // by from, to, message

  absl::Status WorkOut();
};

class VirtualDevice : public Device {
 public:
  // Moves a stream's time on; false: it cannot go on yet.
  using Command = std::function<bool(std::int64_t& time)>;

  VirtualDevice(VirtualCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {
    cluster.devices[static_cast<std::size_t>(rank)] = this;
  }
  std::string Description() const override { return "virtual"; }
  absl::Status Prepare(std::uint32_t events, std::uint32_t /*slots*/,
                       absl::Span<const Kernel> /*kernels*/) override {
    times_.resize(events);
    return absl::OkStatus();
  }
  absl::Status Begin() override {
    std::fill(times_.begin(), times_.end(), -1);
    for (Stream& stream : streams_) stream = {};
    launched_ = 0;
    asked_ = false;
    return absl::OkStatus();
  }
  void Enqueue(ir::Stream stream, Command command) {
    streams_[static_cast<std::size_t>(stream)].commands.push_back(std::move(command));
  }
  void Wait(ir::Stream stream, Event event) override {
    Enqueue(stream, [this, event](std::int64_t& time) {
      if (times_[event] < 0) return false;
      if (times_[event] > time) time = times_[event] + cluster_.costs.wake;
      return true;
    });
  }
  void Record(ir::Stream stream, Event event) override {
    Enqueue(stream, [this, event](std::int64_t& time) {
      times_[event] = time;
      return true;
    });
  }
  absl::Status Launch(ir::Stream stream, const Kernel& kernel) override {
    Enqueue(stream, [this, &kernel](std::int64_t& time) {
      time += cluster_.costs.launch + cluster_.costs.kernel(kernel, rank_, launched_++);
      return true;
    });
    return absl::OkStatus();
  }
  absl::Status LaunchHost(ir::Stream /*stream*/, std::function<absl::Status()> /*work*/) override {
    return absl::UnimplementedError("virtual device");
  }
  void WriteStamp(ir::Stream /*stream*/, std::uint32_t /*slot*/, const Stamp& /*stamp*/) override {}
  void CheckStamp(ir::Stream /*stream*/, std::uint32_t /*slot*/, const Stamp& /*expected*/,
                  const std::function<std::string(const Stamp&)>* /*text*/) override {}
  absl::Status Start() override { return absl::OkStatus(); }
  // The first call of a step does not wait long enough.
  absl::StatusOr<bool> Synchronize(absl::Duration /*limit*/) override {
    if (!std::exchange(asked_, true)) return false;
    std::unique_lock lock(cluster_.mutex);
    const std::int64_t step = cluster_.steps;
    if (++cluster_.waiting == static_cast<int>(cluster_.devices.size())) {
      cluster_.waiting = 0;
      cluster_.result = cluster_.WorkOut();
      ++cluster_.steps;
      cluster_.changed.notify_all();
    } else {
      cluster_.changed.wait(lock, [&] { return cluster_.steps != step; });
    }
    if (!cluster_.result.ok()) return cluster_.result;
    return true;
  }
  bool HasHappened(Event event) const override { return times_[event] >= 0; }
  std::int64_t TimeNs(Event event) const override { return times_[event]; }
  Bytes memory() const override { return Bytes(std::int64_t{8} << 30); }

  // True if anything moved.
  bool Advance() {
    bool moved = false;
    for (Stream& stream : streams_) {
      while (stream.next < stream.commands.size() && stream.commands[stream.next](stream.time)) {
        ++stream.next;
        moved = true;
      }
    }
    return moved;
  }
  bool Done() const {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const Stream& s) { return s.next == s.commands.size(); });
  }
  VirtualCluster& cluster() { return cluster_; }
  int rank() const { return rank_; }

 private:
  struct Stream {
    std::vector<Command> commands;
    std::size_t next = 0;
    std::int64_t time = 0;
  };
  VirtualCluster& cluster_;
  int rank_;
  int launched_ = 0;
  bool asked_ = false;
  std::vector<std::int64_t> times_;
  std::array<Stream, ir::kStreamCount> streams_;
};

inline absl::Status VirtualCluster::WorkOut() {
  meetings.clear();
  arrivals.clear();
  for (bool moved = true; moved;) {
    moved = false;
    for (VirtualDevice* device : devices) moved = device->Advance() || moved;
  }
  for (const VirtualDevice* device : devices) {
    if (!device->Done()) return absl::InternalError("virtual cluster: deadlock");
  }
  return absl::OkStatus();
}

class VirtualCommunicator : public Communicator {
 public:
  VirtualCommunicator(VirtualDevice& device, std::vector<std::int32_t> ranks, std::string name)
      : device_(device), ranks_(std::move(ranks)), name_(std::move(name)) {}
  int rank() const override {
    return static_cast<int>(std::find(ranks_.begin(), ranks_.end(), device_.rank()) -
                            ranks_.begin());
  }
  int size() const override { return static_cast<int>(ranks_.size()); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) override {
    std::vector<std::int32_t> members;
    for (const std::int32_t rank : ranks) members.push_back(ranks_[rank]);
    const std::string path = absl::StrCat(name_, "/", splits_++, " ", name, " of ", members[0]);
    return std::make_unique<VirtualCommunicator>(device_, std::move(members), path);
  }
  absl::Status Connect(const ir::Schedule& /*schedule*/) override { return absl::OkStatus(); }
  absl::Status Expect(absl::Span<const MessageCall> /*calls*/) override { return absl::OkStatus(); }
  absl::Status Collective(ir::Stream stream, const CollectiveCall& call) override {
    VirtualCluster& cluster = device_.cluster();
    const std::pair key(name_, issued_++);
    auto joined = std::make_shared<bool>(false);
    device_.Enqueue(stream, [this, &cluster, key, work = call.work, joined](std::int64_t& time) {
      VirtualCluster::Meeting& meeting = cluster.meetings[key];
      if (!std::exchange(*joined, true)) {
        ++meeting.arrived;
        meeting.latest = std::max(meeting.latest, time);
      }
      if (meeting.arrived < size()) return false;
      time = meeting.latest + cluster.costs.collective(*work, ranks_);
      return true;
    });
    return absl::OkStatus();
  }
  absl::Status Send(ir::Stream stream, const MessageCall& call) override {
    VirtualCluster& cluster = device_.cluster();
    const int from = device_.rank();
    const int to = ranks_[call.peer];
    device_.Enqueue(stream, [=, &cluster](std::int64_t& time) {
      time += cluster.costs.message(call.bytes, from, to);
      cluster.arrivals[{from, to, call.message}] = time;
      return true;
    });
    return absl::OkStatus();
  }
  absl::Status Receive(ir::Stream stream, const MessageCall& call) override {
    VirtualCluster& cluster = device_.cluster();
    const std::tuple key(ranks_[call.peer], device_.rank(), call.message);
    device_.Enqueue(stream, [&cluster, key](std::int64_t& time) {
      const auto found = cluster.arrivals.find(key);
      if (found == cluster.arrivals.end()) return false;
      time = std::max(time, found->second);
      return true;
    });
    return absl::OkStatus();
  }

 private:
  VirtualDevice& device_;
  std::vector<std::int32_t> ranks_;
  std::string name_;
  int splits_ = 0;
  std::int64_t issued_ = 0;
};

// A rank of a virtual run.
struct VirtualRank {
  World& world;
  VirtualDevice& device;
  Communicator& ranks;
};

// A world whose nodes have `per_node` ranks.
class VirtualWorld : public FakeWorld {
 public:
  VirtualWorld(Cluster& cluster, int rank, int per_node)
      : FakeWorld(cluster, rank), per_node_(per_node) {}
  int local_rank() const override { return rank() % per_node_; }
  int local_size() const override { return per_node_; }

 private:
  int per_node_;
};

// Runs `body` on all ranks at once.
inline void RunRanks(VirtualCluster& cluster, int per_node,
                     const std::function<void(VirtualRank)>& body) {
  std::vector<std::thread> threads;
  const int size = cluster.world.size;
  std::vector<std::unique_ptr<VirtualDevice>> devices;
  threads.reserve(static_cast<std::size_t>(size));
  devices.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    devices.push_back(std::make_unique<VirtualDevice>(cluster, rank));
  }
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      VirtualWorld world(cluster.world, rank, per_node);
      std::vector<std::int32_t> all(static_cast<std::size_t>(size));
      std::iota(all.begin(), all.end(), 0);
      VirtualCommunicator ranks(*devices[rank], all, "world");
      body({world, *devices[rank], ranks});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace optimus::executor::testing
