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
#include "schedule/ir/group_members.h"
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

// Adds operations one by one to a program, named by its index: the stage where there is one lane,
// At(stage, lane) otherwise. Every Add returns the operation's id in its program.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(Parallelism world, std::int32_t lanes = 1) {
    schedule_.name = "test";
    schedule_.world = world;
    schedule_.lanes = lanes;
    schedule_.programs.resize(static_cast<std::size_t>(world.pp) * lanes);
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
      schedule_.programs[p].stage = static_cast<std::int32_t>(p) / lanes;
      schedule_.programs[p].lane = static_cast<std::int32_t>(p) % lanes;
    }
  }

  Schedule& schedule() { return schedule_; }
  Schedule Take() { return std::move(schedule_); }
  int At(int stage, int lane) const { return ProgramIndex(schedule_, stage, lane); }

  std::uint32_t Add(int program, Operation op, const std::vector<std::uint32_t>& dependencies) {
    Program& target = schedule_.programs[program];
    op.first_dependency = static_cast<std::uint32_t>(target.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(dependencies.size());
    target.dependencies.insert(target.dependencies.end(), dependencies.begin(), dependencies.end());
    target.operations.push_back(op);
    return static_cast<std::uint32_t>(target.operations.size() - 1);
  }

  std::uint32_t AddKernel(int program, Tag tag, std::int64_t duration_ps,
                          const std::vector<std::uint32_t>& dependencies = {}) {
    Operation op;
    op.tag = tag;
    op.work = FixedKernel(duration_ps);
    return Add(program, op, dependencies);
  }

  std::uint32_t AddCollective(int program, Stream stream, Tag tag, std::int32_t collective,
                              const std::vector<std::uint32_t>& dependencies = {}) {
    Operation op;
    op.kind = OperationKind::kCollective;
    op.stream = stream;
    op.tag = tag;
    op.work = collective;
    return Add(program, op, dependencies);
  }

  // `stream` says forward or backward; `peer` is the other side's stage.
  std::uint32_t AddSend(int program, Stream stream, int peer, int message, std::int32_t transfer,
                        const std::vector<std::uint32_t>& dependencies = {}, int peer_lane = -1) {
    return AddMessage(program, OperationKind::kSend, stream, {peer, peer_lane}, message, transfer,
                      dependencies);
  }
  std::uint32_t AddReceive(int program, Stream stream, int peer, int message, std::int32_t transfer,
                           const std::vector<std::uint32_t>& dependencies = {},
                           int peer_lane = -1) {
    return AddMessage(program, OperationKind::kReceive, stream, {peer, peer_lane}, message,
                      transfer, dependencies);
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
  std::int32_t AddGroup(const Group& group) { return Intern(schedule_.groups, group); }
  std::int32_t AddCollectiveWork(CollectiveKind kind, std::int64_t bytes, std::int32_t group) {
    return Intern(schedule_.collectives, Collective{{kind, ToString(kind), Bytes(bytes)}, group});
  }
  std::int32_t AddTransfer(const std::string& name, std::int64_t bytes, std::int64_t fixed_ps) {
    return Intern(schedule_.transfers, Transfer{name, Bytes(bytes), Picoseconds(fixed_ps)});
  }

 private:
  struct Peer {
    std::int32_t stage = -1, lane = -1;
  };

  template <class T>
  static std::int32_t Intern(std::vector<T>& table, const T& value) {
    const auto found = std::find(table.begin(), table.end(), value);
    if (found != table.end()) return static_cast<std::int32_t>(found - table.begin());
    table.push_back(value);
    return static_cast<std::int32_t>(table.size() - 1);
  }

  std::uint32_t AddMessage(int program, OperationKind kind, Stream stream, Peer peer, int message,
                           std::int32_t transfer, const std::vector<std::uint32_t>& dependencies) {
    Operation op;
    op.kind = kind;
    op.stream = stream;
    op.work = transfer;
    op.peer_stage = peer.stage;
    op.peer_lane = peer.lane;
    op.message = message;
    const bool forward = stream == Stream::kForwardSend || stream == Stream::kForwardReceive;
    op.tag.phase = forward ? Phase::kForward : Phase::kBackward;
    return Add(program, op, dependencies);
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
// random stages (and lanes) and collectives over random groups. Operations are added in an order in
// which they can run, so it never deadlocks. With `encoders`: several lanes, groups over part of
// the pipeline and of the tensor-parallel ranks, and messages of encoders, in random worlds. With
// `pairs`: collectives over two stages.
class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint32_t seed, bool encoders = false, bool pairs = false)
      : random_(seed), encoders_(encoders), builder_(encoders ? WithLanes() : WithoutLanes()) {
    builder_.schedule().gpus_per_node = Below(8) + 1;
    groups_ = {builder_.AddGroup("dp", true, false, false),
               builder_.AddGroup("tp", false, false, true),
               builder_.AddGroup("model", false, true, true),
               builder_.AddGroup("pipeline", false, true, false)};
    if (encoders) AddEncoderGroups();
    if (!pairs) return;
    first_pair_ = groups_.size();
    AddPair("pair");
    AddPair("copies");
  }

  Schedule Build(int operations) {
    for (int i = 0; i < operations; ++i) AddOne();
    while (!in_flight_.empty()) Receive();
    return builder_.Take();
  }

 private:
  struct Message {
    int from = 0, to = 0, id = 0;  // programs
    std::int32_t transfer = -1;
    Stream send = Stream::kForwardSend, receive = Stream::kForwardReceive;
  };

  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  int Programs() { return static_cast<int>(builder_.schedule().programs.size()); }
  bool encoders() const { return encoders_; }
  bool pairs() const { return first_pair_ > 0; }

  ScheduleBuilder WithoutLanes() {
    return ScheduleBuilder({Below(3) + 1, Below(4) + 1, Below(3) + 1});
  }
  ScheduleBuilder WithLanes() {
    const std::int32_t lanes = 1 << Below(3);  // mostly more than one
    const Parallelism world{Below(3) + 1, Below(4) + 1, lanes * (Below(2) + 1)};
    return ScheduleBuilder(world, lanes);
  }

  // One group over neighbouring lanes, and one over the same shard of those blocks, on every second
  // stage where that divides the pipeline.
  void AddEncoderGroups() {
    const Schedule& schedule = builder_.schedule();
    const std::int32_t blocks = schedule.lanes == 4 && Below(2) == 0 ? 2 : schedule.lanes;
    const std::int32_t block = schedule.world.tp / blocks;
    const std::int32_t stride = schedule.world.pp % 2 == 0 ? Below(2) + 1 : Below(2);
    groups_.push_back(builder_.AddGroup(Group{"encoder tp", false, false, true, 0, block, 0}));
    groups_.push_back(builder_.AddGroup(Group{"encoder dp", true, true, true, stride, 0, block}));
    groups_.push_back(builder_.AddGroup(Group{"same layers", false, true, false, stride, 0, 0}));
  }

  // Two stages, over random other axes.
  void AddPair(const char* name) {
    const std::int32_t pp = builder_.schedule().world.pp;
    Group group{name, Below(2) == 0, true, Below(2) == 0};
    if (pp > 1) {
      const std::int32_t first = Below(pp - 1);
      group.pp_pair = {first, first + 1 + Below(pp - 1 - first)};
    }
    groups_.push_back(builder_.AddGroup(group));
  }

  std::vector<std::uint32_t> Dependencies(int program) {
    std::vector<std::uint32_t> chosen;
    const auto count = static_cast<int>(builder_.schedule().programs[program].operations.size());
    for (int i = Below(4); i > 0 && count > 0; --i) {
      // Mostly recent ones, so that streams do wait for each other.
      const int back = Below(4) == 0 ? Below(count) : Below(std::min(count, 6));
      chosen.push_back(static_cast<std::uint32_t>(count - 1 - back));
    }
    return chosen;
  }

  // One draw a statement, here and below: the order of arguments is the compiler's choice, and a
  // seed must mean the same Schedule to all.
  Tag RandomTag() {
    const int chunk = Below(3) - 1;
    const int slice = Below(3) - 1;
    const auto phase = static_cast<Phase>(Below(7));
    const int micro_batch = Below(5) - 1;
    const int layer = Below(8) - 4;
    const int module = Below(3) - 1;
    return MakeTag(module, layer, micro_batch, phase, slice, chunk);
  }

  void AddOne() {
    const int program = Below(Programs());
    if (pairs() && Below(6) == 0) return AddOverPair(program, first_pair_ + Below(2));
    switch (Below(encoders() ? 10 : 8)) {
      case 0:
        return AddCollective(program, 1, Stream::kTensorParallel);
      case 1:
        return AddCollective(program, 0, Stream::kDataParallel);
      case 2:
        return AddOverPipeline(program);
      case 3:
        return Send(program);
      case 4:
        return Receive();
      case 8:
        return AddCollective(program, 4, Stream::kEncoderCommunication);
      case 9:
        return AddCollective(program, 5 + Below(2), Stream::kDataParallel);
      default:
        return AddKernel(program);
    }
  }

  void AddKernel(int program) {
    const std::vector<std::uint32_t> dependencies = Dependencies(program);
    const std::int64_t duration_ps = Below(50);
    builder_.AddKernel(program, RandomTag(), duration_ps, dependencies);
  }

  std::int32_t RandomCollective(std::size_t group) {
    const std::int64_t bytes = Below(40) + 1;
    return builder_.AddCollectiveWork(static_cast<CollectiveKind>(Below(5)), bytes, groups_[group]);
  }

  void AddMember(int program, Stream stream, std::int32_t work) {
    const std::vector<std::uint32_t> dependencies = Dependencies(program);
    builder_.AddCollective(program, stream, RandomTag(), work, dependencies);
  }

  // To all members of the instance that `program` is in.
  void AddCollective(int program, std::size_t group, Stream stream) {
    const std::int32_t work = RandomCollective(group);
    for (const int member : MembersOfInstance(program, group)) {
      AddMember(member, stream, work);
    }
  }

  void AddOverPipeline(int program) {
    const std::size_t group = Below(2) == 0 ? 2 : 3;
    const std::int32_t work = RandomCollective(group);
    for (const int member : MembersOfInstance(program, group)) {
      const Stream stream = Below(2) == 0 ? Stream::kDataParallel : Stream::kEncoderCommunication;
      AddMember(member, stream, work);
    }
  }

  // Stages outside the pair have no part in it.
  void AddOverPair(int program, std::size_t group) {
    const Schedule& schedule = builder_.schedule();
    const int stage = schedule.programs[program].stage;
    if (!HasPart(schedule.groups[groups_[group]], stage)) return;
    AddCollective(program, group, Stream::kDataParallel);
  }

  std::vector<std::int32_t> MembersOfInstance(int program, std::size_t group) {
    const Schedule& schedule = builder_.schedule();
    return ProgramsOf(
        schedule, MembersOf(schedule, schedule.groups[groups_[group]], schedule.programs[program]));
  }

  void Send(int program) {
    if (Programs() == 1) return;
    Message message;
    message.from = program;
    message.to = (program + 1 + Below(Programs() - 1)) % Programs();
    message.id = next_message_++;
    const std::int64_t has_fixed = Below(2);
    const std::int64_t fixed_ps = has_fixed * Below(30);
    message.transfer = builder_.AddTransfer("edge", Below(30), fixed_ps);
    if (Below(2) == 1) {
      message.send = Stream::kBackwardSend;
      message.receive = Stream::kBackwardReceive;
    }
    if (encoders() && Below(2) == 1) {
      message.send = Stream::kEncoderSend;
      message.receive = Stream::kEncoderReceive;
    }
    const auto [stage, lane] = Peer(program, message.to);
    builder_.AddSend(program, message.send, stage, message.id, message.transfer,
                     Dependencies(program), lane);
    in_flight_.push_back(message);
  }

  void Receive() {
    if (in_flight_.empty()) return;
    const int index = Below(static_cast<int>(in_flight_.size()));
    const Message message = in_flight_[index];
    in_flight_.erase(in_flight_.begin() + index);
    const auto [stage, lane] = Peer(message.to, message.from);
    builder_.AddReceive(message.to, message.receive, stage, message.id, message.transfer,
                        Dependencies(message.to), lane);
  }

  // Stage and lane of `peer` as `program` names them: the own lane is left out.
  std::pair<int, int> Peer(int program, int peer) {
    const int lanes = builder_.schedule().lanes;
    return {peer / lanes, peer % lanes == program % lanes ? -1 : peer % lanes};
  }

  std::mt19937 random_;
  bool encoders_;
  std::size_t first_pair_ = 0;  // of groups_; 0: none
  ScheduleBuilder builder_;
  std::vector<std::int32_t> groups_;
  std::vector<Message> in_flight_;
  int next_message_ = 0;
};

}  // namespace optimus::ir::testing
