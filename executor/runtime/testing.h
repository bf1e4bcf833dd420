#pragma once
// For tests: a cluster inside one process. Every rank is a thread with a fake Device and fake
// Communicators whose streams run in random order, as far as events, messages and collectives let
// them. Its clock counts what happens, so that every two events have an order. Faults can be put
// in. Header only, so that tests of other folders can use it.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/world.h"

namespace optimus::executor::testing {

// What goes wrong; null: nothing.
struct Faults {
  // A wait for an event that the device forgets.
  std::function<bool(int rank, ir::Stream stream, Event event)> skip_wait;
  // Under which id a message arrives (-1: it is lost).
  std::function<std::int32_t(int from, std::int32_t message)> retag;
  // The stamp that a rank really brings to a collective.
  std::function<Stamp(int rank, const Stamp& stamp)> restamp;
  // Streams are tried in order of their numbers instead of a random one.
  bool in_order = false;
};

// What the threads of the ranks share. Everything is done under its mutex.
struct Cluster {
  explicit Cluster(int ranks, std::uint32_t its_seed = 1) : size(ranks), seed(its_seed) {}

  struct Member {
    int rank = 0;  // in the communicator
    Stamp stamp;
    std::vector<float> input;
  };
  struct Message {
    Stamp stamp;
    Bytes bytes;
    std::vector<float> data;
  };

  const int size;
  const std::uint32_t seed;
  Faults faults;
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  std::int64_t clock = 0;
  // By communicator (its name and first rank) and order of issue.
  std::map<std::tuple<std::string, int, std::int64_t>, std::vector<Member>> collectives;
  std::map<std::tuple<int, int, std::int32_t>, Message> messages;  // by from, to, id
  std::int64_t collectives_run = 0, messages_received = 0, kernels_run = 0;
  // World: what every rank gave in the current round.
  std::int64_t round = 0;
  int arrived = 0;
  std::vector<std::string> given, last_given;
  std::vector<std::deque<World::Note>> notes;

  void Fail() {
    failed = true;
    changed.notify_all();
  }
};

class FakeWorld : public World {
 public:
  FakeWorld(Cluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return cluster_.size; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return cluster_.size; }
  std::string host() const override { return "fake"; }
  std::string launcher() const override { return "threads"; }
  void SetPatience(absl::Duration /*patience*/, std::function<absl::Status()> /*tick*/) override {}
  absl::Status Barrier() override { return Exchange("").status(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    absl::StatusOr<std::vector<std::string>> all = Exchange(mine);
    if (all.ok() && rank_ != 0) all->clear();
    return all;
  }
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override {
    absl::StatusOr<std::vector<std::string>> all = Exchange(from_rank_0);
    if (!all.ok()) return all.status();
    return all->front();
  }
  std::int64_t clock_offset_ns() const override { return 0; }
  void Post(int to, const std::string& text) override {
    const std::lock_guard lock(cluster_.mutex);
    cluster_.notes.resize(static_cast<std::size_t>(cluster_.size));
    cluster_.notes[to].push_back({rank_, text});
  }
  std::optional<Note> Poll() override {
    const std::lock_guard lock(cluster_.mutex);
    if (cluster_.notes.empty() || cluster_.notes[rank_].empty()) return std::nullopt;
    Note note = cluster_.notes[rank_].front();
    cluster_.notes[rank_].pop_front();
    return note;
  }
  [[noreturn]] void Abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine) {
    std::unique_lock lock(cluster_.mutex);
    cluster_.given.resize(static_cast<std::size_t>(cluster_.size));
    cluster_.given[rank_] = mine;
    const std::int64_t round = cluster_.round;
    if (++cluster_.arrived == cluster_.size) {
      cluster_.arrived = 0;
      cluster_.last_given = cluster_.given;
      ++cluster_.round;
      cluster_.changed.notify_all();
    }
    const auto over = [&] { return cluster_.round != round || cluster_.failed; };
    if (!cluster_.changed.wait_for(lock, std::chrono::seconds(60), over)) {
      return absl::DeadlineExceededError("fake world: ranks are missing");
    }
    if (cluster_.round == round) return absl::CancelledError("fake world: a rank failed");
    return cluster_.last_given;
  }

  Cluster& cluster_;
  const int rank_;
};

class FakeDevice : public Device {
 public:
  // Runs at the head of its stream, again and again until it says that it has ended.
  using Task = std::function<absl::StatusOr<bool>()>;

  FakeDevice(Cluster& cluster, int rank)
      : cluster_(cluster), rank_(rank), random_(cluster.seed * 1000 + rank) {}
  std::string Description() const override { return "fake"; }

  absl::Status Prepare(std::uint32_t events, std::uint32_t slots,
                       absl::Span<const Kernel> kernels) override {
    times_.resize(events);
    slots_.resize(slots);
    kernels_ = kernels;
    return absl::OkStatus();
  }
  absl::Status Begin() override {
    const std::lock_guard lock(cluster_.mutex);
    for (const std::deque<Task>& stream : streams_) {
      if (!stream.empty()) return absl::InternalError("fake device: the last step has not ended");
    }
    std::fill(times_.begin(), times_.end(), 0);
    std::fill(slots_.begin(), slots_.end(), Stamp());
    started_ = false;
    return absl::OkStatus();
  }
  void Enqueue(ir::Stream stream, Task task) {
    streams_[static_cast<std::size_t>(stream)].push_back(std::move(task));
  }
  void Wait(ir::Stream stream, Event event) override {
    const bool skip =
        cluster_.faults.skip_wait != nullptr && cluster_.faults.skip_wait(rank_, stream, event);
    if (!skip) Enqueue(stream, [this, event] { return times_[event] != 0; });
  }
  void Record(ir::Stream stream, Event event) override {
    Enqueue(stream, [this, event]() -> absl::StatusOr<bool> {
      if (times_[event] != 0) return absl::InternalError("fake device: an event was set twice");
      times_[event] = 1000 * ++cluster_.clock;
      return true;
    });
  }
  absl::Status Launch(ir::Stream stream, const Kernel& kernel) override {
    if (&kernel < kernels_.data() || &kernel >= kernels_.data() + kernels_.size()) {
      return absl::InternalError(absl::StrCat("kernel '", kernel.name, "' was not prepared"));
    }
    Enqueue(stream, [this] { return ++cluster_.kernels_run > 0; });
    return absl::OkStatus();
  }
  absl::Status LaunchHost(ir::Stream stream, std::function<absl::Status()> work) override {
    Enqueue(stream, [this, work = std::move(work)]() -> absl::StatusOr<bool> {
      ++cluster_.kernels_run;
      if (absl::Status done = work(); !done.ok()) return done;
      return true;
    });
    return absl::OkStatus();
  }
  void WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) override {
    Enqueue(stream, [this, slot, stamp] {
      slots_[slot] = stamp;
      return true;
    });
  }
  void CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                  const std::function<std::string(const Stamp&)>* text) override {
    Enqueue(stream, [this, slot, expected, text]() -> absl::StatusOr<bool> {
      if (slots_[slot] == expected) return true;
      return absl::DataLossError(
          absl::StrCat("expects ", (*text)(expected), ", found ", (*text)(slots_[slot])));
    });
  }
  absl::Status Start() override {
    started_ = true;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Synchronize(absl::Duration limit) override {
    const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(limit);
    std::unique_lock lock(cluster_.mutex);
    if (!started_) return absl::InternalError("fake device: not started");
    while (true) {
      if (cluster_.failed) return absl::CancelledError("fake device: another rank failed");
      absl::StatusOr<bool> moved = RunWhatCanRun();
      if (!moved.ok()) {
        cluster_.Fail();
        return moved;
      }
      if (*moved) cluster_.changed.notify_all();
      if (Empty()) return true;
      if (cluster_.changed.wait_until(lock, until) == std::cv_status::timeout) return false;
    }
  }
  bool HasHappened(Event event) const override {
    const std::lock_guard lock(cluster_.mutex);
    return times_[event] != 0;
  }
  std::int64_t TimeNs(Event event) const override { return times_[event]; }
  std::int64_t NominalNs(Event event) const override {
    return nominal == nullptr ? 0 : nominal(times_[event], event);
  }
  Bytes memory() const override { return Bytes(std::int64_t{1} << 30); }

  // Of an emulated device: the nominal time of an event, from its real one.
  std::function<std::int64_t(std::int64_t time_ns, Event event)> nominal;

  Cluster& cluster() { return cluster_; }
  int rank() const { return rank_; }

 private:
  bool Empty() const {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const std::deque<Task>& stream) { return stream.empty(); });
  }
  // One task at a time, of a random stream.
  absl::StatusOr<bool> RunWhatCanRun() {
    std::array<std::size_t, ir::kStreamCount> order{};
    for (std::size_t s = 0; s < order.size(); ++s) order[s] = s;
    bool moved = false;
    for (bool again = true; again;) {
      again = false;
      if (!cluster_.faults.in_order) std::shuffle(order.begin(), order.end(), random_);
      for (const std::size_t s : order) {
        if (streams_[s].empty()) continue;
        absl::StatusOr<bool> ended = streams_[s].front()();
        if (!ended.ok()) return ended;
        if (!*ended) continue;
        streams_[s].pop_front();
        again = moved = true;
        break;
      }
    }
    return moved;
  }

  Cluster& cluster_;
  const int rank_;
  std::mt19937 random_;
  absl::Span<const Kernel> kernels_;
  std::array<std::deque<Task>, ir::kStreamCount> streams_;
  std::vector<std::int64_t> times_;
  std::vector<Stamp> slots_;
  bool started_ = false;
};

class FakeCommunicator : public Communicator {
 public:
  // `ranks`: global ranks of the members.
  FakeCommunicator(FakeDevice& device, std::vector<std::int32_t> ranks, std::string name)
      : device_(device),
        cluster_(device.cluster()),
        ranks_(std::move(ranks)),
        name_(std::move(name)) {}
  // The world's.
  explicit FakeCommunicator(FakeDevice& device)
      : FakeCommunicator(device, AllRanks(device.cluster().size), "world") {}

  int rank() const override {
    return static_cast<int>(std::find(ranks_.begin(), ranks_.end(), device_.rank()) -
                            ranks_.begin());
  }
  int size() const override { return static_cast<int>(ranks_.size()); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) override {
    std::vector<std::int32_t> members;
    for (const std::int32_t rank : ranks) members.push_back(ranks_[rank]);
    return std::make_unique<FakeCommunicator>(device_, std::move(members),
                                              absl::StrCat(name_, "/", splits_++, " ", name));
  }
  absl::Status Connect(const ir::Schedule& /*schedule*/) override { return absl::OkStatus(); }
  absl::Status Reserve(Bytes largest) override {
    reserved = largest;
    return largest <= most ? absl::OkStatus() : absl::ResourceExhaustedError("too large");
  }
  absl::Status Expect(absl::Span<const MessageCall> calls) override {
    expected_.assign(calls.begin(), calls.end());
    return absl::OkStatus();
  }

  Bytes most{std::int64_t{1} << 40};  // that it makes room for
  Bytes reserved;

  absl::Status Collective(ir::Stream stream, const CollectiveCall& call) override {
    if (stream_.value_or(stream) != stream) {
      return absl::InternalError(absl::StrCat(name_, " is used on two streams"));
    }
    stream_ = stream;
    const std::tuple key(name_, ranks_.front(), issued_++);
    auto joined = std::make_shared<bool>(false);
    device_.Enqueue(stream, [this, key, call, joined]() -> absl::StatusOr<bool> {
      std::vector<Cluster::Member>& members = cluster_.collectives[key];
      if (!*joined) members.push_back(Join(call));
      *joined = true;
      if (static_cast<int>(members.size()) < size()) return false;
      if (absl::Status same = CheckMembers(members, call); !same.ok()) return same;
      return End(members, call);
    });
    return absl::OkStatus();
  }
  absl::Status Send(ir::Stream stream, const MessageCall& call) override {
    device_.Enqueue(stream, [this, call]() -> absl::StatusOr<bool> {
      std::int32_t id = call.message;
      if (cluster_.faults.retag != nullptr) id = cluster_.faults.retag(device_.rank(), id);
      Cluster::Message message{call.stamp, call.bytes, Input(call.payload)};
      if (id >= 0) cluster_.messages[{device_.rank(), call.peer, id}] = std::move(message);
      return true;
    });
    return absl::OkStatus();
  }
  absl::Status Receive(ir::Stream stream, const MessageCall& call) override {
    const bool known = std::any_of(expected_.begin(), expected_.end(), [&](const MessageCall& e) {
      return e.peer == call.peer && e.message == call.message && e.stamp == call.stamp;
    });
    if (!known) return absl::InternalError("a message that was not expected");
    device_.Enqueue(stream, [this, call]() -> absl::StatusOr<bool> {
      const auto found = cluster_.messages.find({call.peer, device_.rank(), call.message});
      if (found == cluster_.messages.end()) return false;
      const Cluster::Message message = std::move(found->second);
      cluster_.messages.erase(found);
      ++cluster_.messages_received;
      if (message.stamp != call.stamp || message.bytes != call.bytes) {
        return absl::DataLossError(absl::StrCat("expects ", (*call.text)(call.stamp), ", got ",
                                                (*call.text)(message.stamp)));
      }
      Output(call.payload, message.data);
      return true;
    });
    return absl::OkStatus();
  }

 private:
  static std::vector<std::int32_t> AllRanks(int size) {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  static std::vector<float> Input(const Payload& payload) {
    if (payload.input == nullptr) return {};
    const absl::Span<const float> input = payload.input();
    return {input.begin(), input.end()};
  }
  static void Output(const Payload& payload, const std::vector<float>& data) {
    if (payload.output != nullptr) {
      const absl::Span<float> output = payload.output();
      std::copy_n(data.begin(), std::min(data.size(), output.size()), output.begin());
    }
    if (payload.done != nullptr) payload.done();
  }

  Cluster::Member Join(const CollectiveCall& call) {
    Stamp stamp = call.stamp;
    if (cluster_.faults.restamp != nullptr) {
      stamp = cluster_.faults.restamp(device_.rank(), stamp);
    }
    return {rank(), stamp, Input(call.payload)};
  }
  absl::Status CheckMembers(const std::vector<Cluster::Member>& members,
                            const CollectiveCall& call) const {
    for (const Cluster::Member& member : members) {
      if (SameCollective(member.stamp, call.stamp)) continue;
      return absl::DataLossError(
          absl::StrCat((*call.text)(call.stamp), " met ", (*call.text)(member.stamp)));
    }
    return absl::OkStatus();
  }
  // The members' data by rank: end to end for an all-gather, summed up for a reduction.
  absl::StatusOr<bool> End(std::vector<Cluster::Member> members, const CollectiveCall& call) {
    ++cluster_.collectives_run;
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.rank < b.rank; });
    std::vector<float> data;
    if (call.work->kind == CollectiveKind::kAllGather) {
      for (const auto& m : members) data.insert(data.end(), m.input.begin(), m.input.end());
    } else {
      for (const auto& m : members) {
        data.resize(std::max(data.size(), m.input.size()));
        for (std::size_t i = 0; i < m.input.size(); ++i) data[i] += m.input[i];
      }
    }
    if (call.work->kind == CollectiveKind::kReduceScatter) {
      const std::size_t part = data.size() / ranks_.size();
      data = std::vector<float>(data.begin() + static_cast<std::ptrdiff_t>(part * rank()),
                                data.begin() + static_cast<std::ptrdiff_t>(part * (rank() + 1)));
    }
    Output(call.payload, data);
    return true;
  }

  FakeDevice& device_;
  Cluster& cluster_;
  const std::vector<std::int32_t> ranks_;
  const std::string name_;
  std::vector<MessageCall> expected_;
  std::optional<ir::Stream> stream_;
  std::int64_t issued_ = 0;
  int splits_ = 0;
};

// Everything that one rank's thread needs.
struct FakeRank {
  FakeRank(Cluster& cluster, int rank) : world(cluster, rank), device(cluster, rank) {}
  FakeWorld world;
  FakeDevice device;
  FakeCommunicator ranks{device};
};

// Runs `body` once per rank, each in a thread of its own. An error of one ends the others.
inline std::vector<absl::Status> OnAllRanks(Cluster& cluster,
                                            const std::function<absl::Status(FakeRank&)>& body) {
  std::vector<absl::Status> results(static_cast<std::size_t>(cluster.size));
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (int rank = 0; rank < cluster.size; ++rank) {
    threads.emplace_back([&, rank] {
      FakeRank its(cluster, rank);
      results[rank] = body(its);
      if (results[rank].ok()) return;
      const std::lock_guard lock(cluster.mutex);
      cluster.Fail();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

// A `while_waiting` that gives up long after any of these clusters should have ended.
class GiveUp {
 public:
  absl::Status operator()() const {
    if (std::chrono::steady_clock::now() < end_) return absl::OkStatus();
    return absl::DeadlineExceededError("the step does not end");
  }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
};

}  // namespace optimus::executor::testing
