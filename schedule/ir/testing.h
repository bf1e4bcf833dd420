#pragma once
// For tests: a builder of small Schedules, known ones (1F1B), random ones, and a cost model that
// can be worked out by hand. Header only, so that tests of other folders can use it.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cost_model.h"
#include "schedule/ir/schedule.h"

namespace optimus::ir::testing {

// kFixed kernels last `fixed`, others a picosecond per byte. A collective lasts a picosecond per
// byte, plus 1000 for every node its group touches beyond the first. A message lasts a picosecond
// per byte, plus 500 between nodes.
class HandCosts : public CostModel {
 public:
  Picoseconds KernelTime(const Kernel& kernel) const override {
    return kernel.kind == KernelKind::kFixed ? kernel.fixed : Picoseconds(kernel.bytes.value());
  }
  TransferCost CollectiveCost(const CollectiveWork& work, GroupShape group) const override {
    const std::int64_t nodes = (group.ranks + group.ranks_per_node - 1) / group.ranks_per_node;
    return {Picoseconds(work.bytes.value() + 1000 * (nodes - 1)), Bytes(0), LinkScope::kNone};
  }
  TransferCost SendCost(Bytes bytes, bool same_node) const override {
    return {Picoseconds(bytes.value() + (same_node ? 0 : 500)), Bytes(0), LinkScope::kNone};
  }
  BytesPerSecond LinkBandwidth(LinkScope /*scope*/) const override { return BytesPerSecond(1e12); }
  int gpus_per_node() const override { return 0; }  // any
};

inline Tag MakeTag(int module, int layer, int micro_batch, Phase phase, int slice = -1,
                   int chunk = -1) {
  Tag tag;
  tag.module = static_cast<std::int16_t>(module);
  tag.layer = static_cast<std::int16_t>(layer);
  tag.slice = static_cast<std::int16_t>(slice);
  tag.chunk = static_cast<std::int16_t>(chunk);
  tag.micro_batch = micro_batch;
  tag.phase = phase;
  return tag;
}

inline Tag PhaseTag(Phase phase) { return MakeTag(-1, -1, -1, phase); }

// Adds operations one by one; every Add returns the operation's id in the program of its stage.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(Parallelism world) {
    schedule_.name = "test";
    schedule_.world = world;
    schedule_.programs.resize(world.pp);
    for (std::int32_t s = 0; s < world.pp; ++s) schedule_.programs[s].stage = s;
  }

  Schedule& schedule() { return schedule_; }
  Schedule Take() { return std::move(schedule_); }

  std::uint32_t Add(int stage, Operation op, const std::vector<std::uint32_t>& dependencies) {
    Program& program = schedule_.programs[stage];
    op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(dependencies.size());
    program.dependencies.insert(program.dependencies.end(), dependencies.begin(),
                                dependencies.end());
    program.operations.push_back(op);
    return static_cast<std::uint32_t>(program.operations.size() - 1);
  }

  std::uint32_t AddKernel(int stage, Tag tag, std::int64_t duration_ps,
                          const std::vector<std::uint32_t>& dependencies = {}) {
    Operation op;
    op.tag = tag;
    op.work = FixedKernel(duration_ps);
    return Add(stage, op, dependencies);
  }

  std::uint32_t AddCollective(int stage, Stream stream, Tag tag, std::int32_t collective,
                              const std::vector<std::uint32_t>& dependencies = {}) {
    Operation op;
    op.kind = OperationKind::kCollective;
    op.stream = stream;
    op.tag = tag;
    op.work = collective;
    return Add(stage, op, dependencies);
  }

  // `stream` says forward or backward.
  std::uint32_t AddSend(int stage, Stream stream, int peer, int message, std::int32_t transfer,
                        const std::vector<std::uint32_t>& dependencies = {}) {
    return AddMessage(stage, OperationKind::kSend, stream, peer, message, transfer, dependencies);
  }
  std::uint32_t AddReceive(int stage, Stream stream, int peer, int message, std::int32_t transfer,
                           const std::vector<std::uint32_t>& dependencies = {}) {
    return AddMessage(stage, OperationKind::kReceive, stream, peer, message, transfer,
                      dependencies);
  }

  // The work tables. Each returns the index of an equal entry, added if need be.
  std::int32_t FixedKernel(std::int64_t duration_ps) {
    Kernel kernel;
    kernel.name = absl::StrCat("work", duration_ps);
    kernel.fixed = Picoseconds(duration_ps);
    return Intern(schedule_.kernels, kernel);
  }
  std::int32_t AddGroup(const std::string& name, bool over_dp, bool over_pp, bool over_tp) {
    return Intern(schedule_.groups, Group{name, over_dp, over_pp, over_tp});
  }
  std::int32_t AddCollectiveWork(CollectiveKind kind, std::int64_t bytes, std::int32_t group) {
    return Intern(schedule_.collectives, Collective{{kind, ToString(kind), Bytes(bytes)}, group});
  }
  std::int32_t AddTransfer(const std::string& name, std::int64_t bytes, std::int64_t fixed_ps) {
    return Intern(schedule_.transfers, Transfer{name, Bytes(bytes), Picoseconds(fixed_ps)});
  }

 private:
  template <class T>
  static std::int32_t Intern(std::vector<T>& table, const T& value) {
    const auto found = std::find(table.begin(), table.end(), value);
    if (found != table.end()) return static_cast<std::int32_t>(found - table.begin());
    table.push_back(value);
    return static_cast<std::int32_t>(table.size() - 1);
  }

  std::uint32_t AddMessage(int stage, OperationKind kind, Stream stream, int peer, int message,
                           std::int32_t transfer, const std::vector<std::uint32_t>& dependencies) {
    Operation op;
    op.kind = kind;
    op.stream = stream;
    op.work = transfer;
    op.peer_stage = peer;
    op.message = message;
    const bool forward = stream == Stream::kForwardSend || stream == Stream::kForwardReceive;
    op.tag.phase = forward ? Phase::kForward : Phase::kBackward;
    return Add(stage, op, dependencies);
  }

  Schedule schedule_;
};

// 1F1B (PipeDream-flush) of one layer per stage: forward lasts `forward_ps`, backward
// `backward_ps`, a message `transfer_ps` (0: free).
inline Schedule OneForwardOneBackward(int stages, int micro_batches, std::int64_t forward_ps,
                                      std::int64_t backward_ps, std::int64_t transfer_ps) {
  ScheduleBuilder builder({1, stages, 1});
  builder.schedule().micro_batches = micro_batches;
  builder.schedule().modules = {{"llm", stages, false}};
  const std::int32_t transfer = builder.AddTransfer("edge", 0, transfer_ps);
  auto message = [&](int boundary, int micro_batch, bool forward) {
    return 2 * (boundary * micro_batches + micro_batch) + (forward ? 0 : 1);
  };
  auto run = [&](int stage, int micro_batch, bool forward) {
    const int from = forward ? stage - 1 : stage + 1;
    const int to = forward ? stage + 1 : stage - 1;
    std::vector<std::uint32_t> dependencies;
    if (from >= 0 && from < stages) {
      const Stream stream = forward ? Stream::kForwardReceive : Stream::kBackwardReceive;
      dependencies.push_back(builder.AddReceive(
          stage, stream, from, message(std::min(stage, from), micro_batch, forward), transfer));
    }
    const Phase phase = forward ? Phase::kForward : Phase::kBackward;
    const std::uint32_t work =
        builder.AddKernel(stage, MakeTag(0, stage, micro_batch, phase, -1, 0),
                          forward ? forward_ps : backward_ps, dependencies);
    if (to < 0 || to >= stages) return;
    const Stream stream = forward ? Stream::kForwardSend : Stream::kBackwardSend;
    builder.AddSend(stage, stream, to, message(std::min(stage, to), micro_batch, forward), transfer,
                    {work});
  };
  for (int stage = 0; stage < stages; ++stage) {
    const int warm_up = std::min(stages - 1 - stage, micro_batches);
    for (int i = 0; i < warm_up; ++i) run(stage, i, true);
    for (int i = 0; i < micro_batches; ++i) {
      if (warm_up + i < micro_batches) run(stage, warm_up + i, true);
      run(stage, i, false);
    }
  }
  return builder.Take();
}

// A valid Schedule without meaning: random operations with random dependencies, messages between
// random stages and collectives over random groups. Operations are added in an order in which they
// can run, so it never deadlocks.
class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint32_t seed)
      : random_(seed), builder_({Below(3) + 1, Below(4) + 1, Below(3) + 1}) {
    builder_.schedule().gpus_per_node = Below(8) + 1;
    groups_ = {builder_.AddGroup("dp", true, false, false),
               builder_.AddGroup("tp", false, false, true),
               builder_.AddGroup("model", false, true, true),
               builder_.AddGroup("pipeline", false, true, false)};
  }

  Schedule Build(int operations) {
    for (int i = 0; i < operations; ++i) AddOne();
    while (!in_flight_.empty()) Receive();
    return builder_.Take();
  }

 private:
  struct Message {
    int from = 0, to = 0, id = 0;
    std::int32_t transfer = -1;
    bool forward = true;
  };

  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  int Stages() { return builder_.schedule().world.pp; }

  std::vector<std::uint32_t> Dependencies(int stage) {
    std::vector<std::uint32_t> chosen;
    const auto count = static_cast<int>(builder_.schedule().programs[stage].operations.size());
    for (int i = Below(4); i > 0 && count > 0; --i) {
      // Mostly recent ones, so that streams do wait for each other.
      const int back = Below(4) == 0 ? Below(count) : Below(std::min(count, 6));
      chosen.push_back(static_cast<std::uint32_t>(count - 1 - back));
    }
    return chosen;
  }

  Tag RandomTag() {
    return MakeTag(Below(3) - 1, Below(8) - 4, Below(5) - 1, static_cast<Phase>(Below(7)),
                   Below(3) - 1, Below(3) - 1);
  }

  void AddOne() {
    const int stage = Below(Stages());
    switch (Below(8)) {
      case 0:
        return AddCollective(stage, Stream::kTensorParallel, 1);
      case 1:
        return AddCollective(stage, Stream::kDataParallel, 0);
      case 2:
        return AddOverPipeline();
      case 3:
        return Send(stage);
      case 4:
        return Receive();
      default:
        builder_.AddKernel(stage, RandomTag(), Below(50), Dependencies(stage));
    }
  }

  std::int32_t RandomCollective(std::size_t group) {
    return builder_.AddCollectiveWork(static_cast<CollectiveKind>(Below(5)), Below(40) + 1,
                                      groups_[group]);
  }

  void AddCollective(int stage, Stream stream, std::size_t group) {
    builder_.AddCollective(stage, stream, RandomTag(), RandomCollective(group),
                           Dependencies(stage));
  }

  void AddOverPipeline() {
    const std::int32_t work = RandomCollective(Below(2) == 0 ? 2 : 3);
    for (int stage = 0; stage < Stages(); ++stage) {
      const Stream stream = Below(2) == 0 ? Stream::kDataParallel : Stream::kEncoderCommunication;
      builder_.AddCollective(stage, stream, RandomTag(), work, Dependencies(stage));
    }
  }

  void Send(int stage) {
    if (Stages() == 1) return;
    Message message;
    message.from = stage;
    message.to = (stage + 1 + Below(Stages() - 1)) % Stages();
    message.id = next_message_++;
    message.transfer = builder_.AddTransfer("edge", Below(30), Below(2) * Below(30));
    message.forward = Below(2) == 0;
    builder_.AddSend(stage, message.forward ? Stream::kForwardSend : Stream::kBackwardSend,
                     message.to, message.id, message.transfer, Dependencies(stage));
    in_flight_.push_back(message);
  }

  void Receive() {
    if (in_flight_.empty()) return;
    const int index = Below(static_cast<int>(in_flight_.size()));
    const Message message = in_flight_[index];
    in_flight_.erase(in_flight_.begin() + index);
    builder_.AddReceive(message.to,
                        message.forward ? Stream::kForwardReceive : Stream::kBackwardReceive,
                        message.from, message.id, message.transfer, Dependencies(message.to));
  }

  std::mt19937 random_;
  ScheduleBuilder builder_;
  std::vector<std::int32_t> groups_;
  std::vector<Message> in_flight_;
  int next_message_ = 0;
};

}  // namespace optimus::ir::testing
