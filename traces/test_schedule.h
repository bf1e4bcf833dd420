#pragma once
// A small random training step with times, for the tests of this folder: two stages with kernels,
// tensor-parallel and data-parallel collectives and pipeline messages. Times are found by plain
// relaxation, apart from every runner.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "schedule/ir/bubbles.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::traces {

class TestSchedule {
 public:
  explicit TestSchedule(unsigned seed, int micro_batches = 3) : random_(seed) {
    schedule_.name = "test";
    schedule_.world = {2, 2, 2};
    schedule_.micro_batches = micro_batches;
    schedule_.modules = {{"llm", 2, false}, {"vit", 1, false}};
    schedule_.groups = {{"tp", false, false, true}, {"dp", true, false, false}};
    schedule_.programs.resize(2);
    for (int stage = 0; stage < 2; ++stage) AddStage(stage);
    Relax();
  }

  const ir::Schedule& schedule() const { return schedule_; }
  const std::vector<Picoseconds>& starts(int stage) const { return starts_[stage]; }
  const std::vector<Picoseconds>& ends(int stage) const { return ends_[stage]; }
  Picoseconds step() const {
    Picoseconds last;
    for (const auto& ends : ends_)
      last = std::max(last, *std::max_element(ends.begin(), ends.end()));
    return last;
  }

  ir::Timeline timeline() const {
    ir::Timeline timeline;
    timeline.step = step();
    for (int stage = 0; stage < 2; ++stage) {
      const int rank = ir::RankOf(schedule_.world, stage, 0, 0);
      for (std::uint32_t op = 0; op < starts_[stage].size(); ++op) {
        timeline.spans.push_back({rank, op, starts_[stage][op], ends_[stage][op]});
      }
      timeline.entities.push_back(
          {rank, stage, 4,
           ir::AccountFromSpans(schedule_, schedule_.programs[stage], starts_[stage], ends_[stage],
                                timeline.step)});
    }
    return timeline;
  }

 private:
  // Times in picoseconds: many below a nanosecond, some zero, some long.
  std::int64_t Duration() {
    switch (random_() % 4) {
      case 0:
        return static_cast<std::int64_t>(random_() % 3);
      case 1:
        return static_cast<std::int64_t>(random_() % 1500);
      case 2:
        return static_cast<std::int64_t>(random_() % 100'000);
      default:
        return static_cast<std::int64_t>(random_() % 50'000'000);
    }
  }

  int Add(int stage, ir::Operation op, const std::vector<int>& after) {
    ir::Program& program = schedule_.programs[stage];
    program.stage = stage;
    op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(after.size());
    for (const int id : after) program.dependencies.push_back(static_cast<std::uint32_t>(id));
    program.operations.push_back(op);
    return static_cast<int>(program.operations.size()) - 1;
  }

  int AddKernel(int stage, const ir::Tag& tag, const std::vector<int>& after) {
    Kernel kernel;
    kernel.name = tag.phase == Phase::kOptimizer ? "optimizer" : "fc1";
    const bool gemm = random_() % 2 == 0;
    kernel.kind = gemm ? KernelKind::kGemm : KernelKind::kMemoryBound;
    if (gemm) kernel.flops = Flops(12.0 + static_cast<double>(random_() % 1000));
    kernel.bytes = Bytes(1 + static_cast<std::int64_t>(random_() % 1000));
    schedule_.kernels.push_back(kernel);
    ir::Operation op;
    op.tag = tag;
    op.work = static_cast<int>(schedule_.kernels.size()) - 1;
    return Add(stage, op, after);
  }

  int AddCollective(int stage, bool tensor_parallel, const ir::Tag& tag,
                    const std::vector<int>& after) {
    const bool gather = tag.phase == Phase::kForward || tag.phase == Phase::kParameterSync;
    ir::Collective collective;
    collective.work.kind = gather ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
    collective.work.name = gather ? "all-gather" : "reduce-scatter";
    collective.work.bytes = Bytes(1000);
    collective.group = tensor_parallel ? 0 : 1;
    schedule_.collectives.push_back(collective);
    ir::Operation op;
    op.kind = ir::OperationKind::kCollective;
    op.stream = tensor_parallel ? ir::Stream::kTensorParallel : ir::Stream::kDataParallel;
    op.tag = tag;
    op.work = static_cast<int>(schedule_.collectives.size()) - 1;
    return Add(stage, op, after);
  }

  int AddMessage(int stage, bool send, bool forward, int micro_batch,
                 const std::vector<int>& after) {
    if (send) schedule_.transfers.push_back({forward ? "activations" : "gradients", Bytes(64), {}});
    ir::Operation op;
    op.kind = send ? ir::OperationKind::kSend : ir::OperationKind::kReceive;
    op.stream = forward ? (send ? ir::Stream::kForwardSend : ir::Stream::kForwardReceive)
                        : (send ? ir::Stream::kBackwardSend : ir::Stream::kBackwardReceive);
    op.tag.chunk = 0;
    op.tag.micro_batch = micro_batch;
    op.tag.phase = forward ? Phase::kForward : Phase::kBackward;
    op.peer_stage = 1 - stage;
    op.message = micro_batch * 2 + (forward ? 0 : 1);
    op.work = 0;
    return Add(stage, op, after);
  }

  // kernel, TP collective, kernel of one micro-batch; the first waits for `after`.
  int AddPass(int stage, bool forward, int micro_batch, const std::vector<int>& after) {
    ir::Tag tag;
    tag.module = static_cast<std::int16_t>(micro_batch % 2);
    tag.layer = static_cast<std::int16_t>(tag.module == 0 ? stage : 0);
    tag.chunk = 0;
    tag.slice = static_cast<std::int16_t>(tag.module == 1 ? 2 : -1);
    tag.micro_batch = micro_batch;
    tag.phase = forward ? Phase::kForward : Phase::kBackward;
    const int kernel = AddKernel(stage, tag, after);
    const int collective = AddCollective(stage, true, tag, {kernel});
    return AddKernel(stage, tag, {collective});
  }

  void AddStage(int stage) {
    ir::Tag sync;
    sync.phase = Phase::kParameterSync;
    const int gather = AddCollective(stage, false, sync, {});
    for (int i = 0; i < schedule_.micro_batches; ++i) {
      std::vector<int> after = {gather};
      if (stage == 1) after.push_back(AddMessage(stage, false, true, i, {}));
      const int last = AddPass(stage, true, i, after);
      if (stage == 0) AddMessage(stage, true, true, i, {last});
    }
    int last = -1;
    for (int i = 0; i < schedule_.micro_batches; ++i) {
      std::vector<int> after;
      if (stage == 0) after.push_back(AddMessage(stage, false, false, i, {}));
      last = AddPass(stage, false, i, after);
      if (stage == 1) AddMessage(stage, true, false, i, {last});
    }
    sync.phase = Phase::kGradientSync;
    const int scatter = AddCollective(stage, false, sync, {last});
    sync.phase = Phase::kOptimizer;
    AddKernel(stage, sync, {scatter});
    // A last transfer after the optimizer on one stage: a tail that is no compute.
    if (stage == 0) {
      sync.phase = Phase::kParameterSync;
      AddCollective(stage, false, sync, {scatter});
    }
  }

  // Start = the latest of what must come before, again and again until nothing moves.
  void Relax() {
    starts_.resize(2);
    ends_.resize(2);
    std::vector<std::vector<std::int64_t>> durations(2);
    for (int s = 0; s < 2; ++s) {
      const std::size_t count = schedule_.programs[s].operations.size();
      starts_[s].resize(count);
      ends_[s].resize(count);
      for (std::size_t i = 0; i < count; ++i) durations[s].push_back(Duration());
    }
    for (std::size_t round = 0; round < 200; ++round) {
      for (int s = 0; s < 2; ++s) {
        for (std::size_t i = 0; i < durations[s].size(); ++i) {
          RelaxOne(s, static_cast<std::uint32_t>(i), durations[s][i]);
        }
      }
    }
  }

  void RelaxOne(int stage, std::uint32_t id, std::int64_t duration) {
    const ir::Program& program = schedule_.programs[stage];
    const ir::Operation& op = program.operations[id];
    Picoseconds start;
    for (std::uint32_t before = 0; before < id; ++before) {
      if (program.operations[before].stream == op.stream) start = ends_[stage][before];
    }
    for (const std::uint32_t d : program.DependenciesOf(op))
      start = std::max(start, ends_[stage][d]);
    starts_[stage][id] = start;
    ends_[stage][id] = start + Picoseconds(duration);
    if (op.kind != ir::OperationKind::kReceive) return;
    const ir::Program& peer = schedule_.programs[1 - stage];
    for (std::uint32_t i = 0; i < peer.operations.size(); ++i) {
      const ir::Operation& other = peer.operations[i];
      if (other.kind == ir::OperationKind::kSend && other.message == op.message) {
        ends_[stage][id] = std::max(start, ends_[1 - stage][i]);
      }
    }
  }

  std::mt19937 random_;
  ir::Schedule schedule_;
  std::vector<std::vector<Picoseconds>> starts_, ends_;
};

}  // namespace optimus::traces
