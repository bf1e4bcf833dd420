#include "schedule/llm_search/slot_path.h"

#include <algorithm>
#include <cmath>

#include "schedule/ir/critical_path.h"

namespace optimus::llm_search {
namespace {

class SlotRun {
 public:
  SlotRun(const WorkTimes& times, Picoseconds compute, Picoseconds tensor)
      : times_(times), compute_(compute), tensor_(tensor), output_(std::max(compute, tensor)) {}

  void Run(const step::LoweredBlock& block) {
    if (block.ops.empty()) return;
    ends_.clear();
    bool compute_started = false, tensor_started = false;
    for (const step::LoweredOp& op : block.ops) {
      const bool on_compute = op.stream == ir::Stream::kCompute;
      bool& started = on_compute ? compute_started : tensor_started;
      Picoseconds& free = on_compute ? compute_ : tensor_;
      Picoseconds start = free;
      if (has_output_ && (!started || op.needs_input)) start = std::max(start, output_);
      for (const int earlier : op.after) start = std::max(start, ends_[earlier]);
      started = true;
      free = Along(start, TimeOf(op));
      ends_.push_back(free);
    }
    output_ = ends_[block.output];
    has_output_ = true;
  }

  Ends ends() const { return {compute_, tensor_, output_}; }

 private:
  Picoseconds TimeOf(const step::LoweredOp& op) const {
    return op.kind == ir::OperationKind::kKernel ? times_.kernels[op.work]
                                                 : times_.collectives[op.work];
  }

  const WorkTimes& times_;
  Picoseconds compute_, tensor_, output_;
  bool has_output_ = false;  // of a block of this slot
  std::vector<Picoseconds> ends_;
};

Ends RunAll(const std::vector<step::Piece>& pieces, const WorkTimes& times, Picoseconds compute,
            Picoseconds tensor) {
  SlotRun run(times, compute, tensor);
  for (const step::Piece& piece : pieces) run.Run(*piece.block);
  return run.ends();
}

Picoseconds ComputeOf(const step::LoweredBlock& block, const WorkTimes& times) {
  Picoseconds sum;
  for (const step::LoweredOp& op : block.ops) {
    if (op.kind == ir::OperationKind::kKernel) sum += times.kernels[op.work];
  }
  return sum;
}

}  // namespace

Picoseconds Scaled(Picoseconds time, double kernel_factor) {
  if (kernel_factor == 1) return time;
  return Picoseconds(
      static_cast<std::int64_t>(std::floor(static_cast<double>(time.value()) * kernel_factor)));
}

WorkTimes PriceWork(const ir::Schedule& schedule, const CostModel& costs, double kernel_factor) {
  WorkTimes times;
  times.kernel_factor = kernel_factor;
  times.kernels.reserve(schedule.kernels.size());
  for (const Kernel& kernel : schedule.kernels) {
    times.kernels.push_back(Scaled(costs.KernelTime(kernel), kernel_factor));
  }
  times.collectives.reserve(schedule.collectives.size());
  for (const ir::Collective& collective : schedule.collectives) {
    const GroupShape shape = ir::ShapeOf(schedule, schedule.groups[collective.group]);
    times.collectives.push_back(
        UncontendedTime(costs, costs.CollectiveCost(collective.work, shape)));
  }
  return times;
}

SlotPath PathOf(const std::vector<step::Piece>& pieces, const WorkTimes& times) {
  SlotPath path;
  path.from_compute = RunAll(pieces, times, Picoseconds(0), kNoPath);
  path.from_tensor = RunAll(pieces, times, kNoPath, Picoseconds(0));
  for (const step::Piece& piece : pieces) path.compute += ComputeOf(*piece.block, times);
  return path;
}

}  // namespace optimus::llm_search
