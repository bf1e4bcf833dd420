#pragma once
// What a step does beside the micro-batches: parameter all-gather, gradient reduce-scatter (or
// all-reduce), gradient norm and optimizer step.

#include <cstdint>
#include <vector>

#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/program_builder.h"

namespace optimus::step {

// One stage's share of the step's begin and end. `trained` is the number of trained parameters on
// one GPU, by model chunk: frozen ones are neither gathered nor reduced.
//
// DP_EXPOSED: one all-gather before the first compute, one reduce-scatter after the last backward.
// DP_OVERLAPPED: one of each per model chunk, gathers in the order of first use, a reduce-scatter
// as soon as the chunk's last backward has computed its weight gradients.
class DataParallelWriter {
 public:
  DataParallelWriter(const Plan& plan, const hw::ProfileCostModel& costs,
                     std::vector<std::int64_t> trained, ProgramBuilder& program,
                     ir::Schedule& schedule);

  // Before the stage's first slot.
  void Begin(const std::vector<pipeline::Slot>& slots);
  // The all-gather that this slot's first compute operation must wait for, or -1. Says so once.
  std::int64_t GatherFor(const pipeline::Slot& slot);
  // After every slot.
  void AfterSlot(const pipeline::Slot& slot);
  // After the last slot: what is left of the reduce-scatters, gradient norm, optimizer.
  void End();

 private:
  bool has_collectives() const { return plan_.data_parallel() > 1 && !plan_.no_optimizer(); }
  bool overlapped() const { return plan_.dp_communication() == Plan::DP_OVERLAPPED; }
  std::int64_t Total() const;
  std::int64_t AppendGather(std::int64_t parameters, int chunk);
  void AppendReduce(std::int64_t parameters, int chunk);
  std::uint32_t AppendCollective(const CollectiveWork& work, const ir::Group& group, ir::Tag tag,
                                 std::int64_t dependency);
  void AppendOptimizer(std::int64_t gradient_norm);

  const Plan& plan_;
  const hw::ProfileCostModel& costs_;
  std::vector<std::int64_t> trained_;
  ProgramBuilder& program_;
  ir::Schedule& schedule_;
  std::vector<std::int64_t> gathers_;  // by chunk; -1: none, or already waited for
  std::vector<int> backwards_left_;    // by chunk: slots that complete weight gradients
  std::int64_t last_reduce_ = -1;
};

// HBM traffic of Adam on `parameters` per GPU: fp32 master copy, momentum and variance read and
// written (24 bytes), fp32 gradient read (4), bf16 parameter written (2).
Bytes OptimizerTraffic(std::int64_t parameters);

// fixed: what the profile charges for the whole optimizer step; the memory-bound kernel of
// `traffic` instead where that one lasts longer.
Kernel OptimizerKernel(const hw::ProfileCostModel& costs, Bytes traffic);
// The traffic of one GPU's share of its stage's parameters.
Kernel OptimizerKernel(const Plan& plan, const hw::ProfileCostModel& costs,
                       std::int64_t trained_parameters);

}  // namespace optimus::step
