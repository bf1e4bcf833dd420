#include "schedule/llm_search/pipeline_bound.h"

#include <algorithm>

#include "schedule/ir/critical_path.h"
#include "schedule/step/data_parallel.h"
#include "schedule/step/precision.h"
#include "schedule/step/work_tables.h"

namespace optimus::llm_search {
namespace {

constexpr int kGradientNormBytes = 8;  // as in schedule/step/data_parallel.cc

// One stage's slots, all micro-batches together.
struct StageSums {
  Picoseconds on_compute, on_tensor;  // paths that stay on one stream
  Picoseconds compute;                // kernels alone
  Picoseconds lost_compute{kNoPath};  // what the last slot's output may come before its stream is
  Picoseconds lost_tensor{kNoPath};   // free: the most over the slots that can be last
  std::int64_t trained = 0;           // parameters on one GPU
  std::int64_t trained_in_smallest = -1;  // chunk
};

class Bound {
 public:
  Bound(const PipelineWork& work, const Surroundings& around) : work_(work), around_(around) {
    for (const step::VirtualStage& stage : work.virtual_stages) {
      forward_.push_back(PathOf(stage.forward, work.times));
      backward_.push_back(PathOf(stage.backward, work.times));
    }
    for (int s = 0; s < work.placing.stages; ++s) sums_.push_back(SumsOf(s));
  }

  PipelineBound Run() {
    PipelineBound bound;
    bound.tail = Tail();
    Picoseconds arrival = around_.before;
    for (int s = 0; s < work_.placing.stages; ++s) {
      const Picoseconds gathered = std::max(arrival, Gather(s));
      bound.step = std::max(bound.step, EndOf(s, arrival, gathered));
      bound.compute += sums_[s].compute;
      arrival = forward_[s].OutputAfter(gathered, arrival) + Message(s, s + 1);
    }
    bound.compute = Picoseconds(bound.compute.value() / work_.placing.stages);
    bound.step += bound.tail;
    return bound;
  }

 private:
  StageSums SumsOf(int s) const {
    StageSums sums;
    const Picoseconds::rep times = work_.micro_batches;
    for (int chunk = 0; chunk < work_.placing.chunks; ++chunk) {
      const int v = work_.placing.VirtualStageOf({s, chunk});
      for (const SlotPath* path : {&forward_[v], &backward_[v]}) {
        sums.on_compute += times * std::max(path->from_compute.compute, Picoseconds(0));
        sums.on_tensor += times * std::max(path->from_tensor.tensor, Picoseconds(0));
        sums.compute += times * path->compute;
      }
      AddLast(backward_[v], sums);
      const std::int64_t trained = work_.virtual_stages[v].trained_parameters;
      sums.trained += trained;
      if (sums.trained_in_smallest < 0 || trained < sums.trained_in_smallest) {
        sums.trained_in_smallest = trained;
      }
    }
    return sums;
  }

  static void AddLast(const SlotPath& last, StageSums& sums) {
    const auto lost = [](Picoseconds free, Picoseconds output) {
      if (!IsPath(free)) return Picoseconds(0);
      return IsPath(output) ? free - output : free;
    };
    sums.lost_compute =
        std::max(sums.lost_compute, lost(last.from_compute.compute, last.from_compute.output));
    sums.lost_tensor =
        std::max(sums.lost_tensor, lost(last.from_tensor.tensor, last.from_tensor.output));
  }

  // Without the tail of the step.
  Picoseconds EndOf(int s, Picoseconds arrival, Picoseconds gathered) const {
    const StageSums& sums = sums_[s];
    const Picoseconds compute_free = gathered + sums.on_compute;
    const Picoseconds tensor_free = arrival + sums.on_tensor;
    Picoseconds end = compute_free + Reduction(s);
    end = std::max(end, tensor_free);
    Picoseconds output = std::max(compute_free - sums.lost_compute, tensor_free - sums.lost_tensor);
    for (int v = s - 1; v >= 0; --v) {
      // Nothing goes further where nothing in front is trained.
      if (work_.virtual_stages[v + 1].edges.backward_out < 0) return end;
      output += Message(v, v + 1);
      output = backward_[v].OutputAfter(output, output);
      end = std::max(end, output);
    }
    return std::max(end, output + around_.behind);
  }

  bool HasCollectives() const {
    return work_.plan.data_parallel() > 1 && !work_.plan.no_optimizer();
  }
  bool Bucketed() const { return work_.plan.dp_bucket_parameters() > 0; }
  std::int64_t Exposed(const StageSums& sums) const {
    if (work_.plan.dp_communication() != step::Plan::DP_OVERLAPPED) return sums.trained;
    return Bucketed() ? 0 : sums.trained_in_smallest;
  }

  Picoseconds Gather(int s) const {
    const std::int64_t parameters = Exposed(sums_[s]);
    if (!HasCollectives() || work_.plan.no_distributed_optimizer() || parameters == 0) return {};
    return GroupTime(work_.costs, work_.tables, step::DataParallelGroup(),
                     {CollectiveKind::kAllGather, "parameter_all_gather",
                      Bytes(parameters * step::kParameterBytes)});
  }

  Picoseconds Reduction(int s) const {
    const std::int64_t parameters = Exposed(sums_[s]);
    if (!HasCollectives() || parameters == 0) return {};
    const bool all_reduce = work_.plan.no_distributed_optimizer();
    return GroupTime(work_.costs, work_.tables, step::DataParallelGroup(),
                     {all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
                      all_reduce ? "gradient_all_reduce" : "gradient_reduce_scatter",
                      Bytes(parameters * step::GradientBytes(work_.plan))});
  }

  // Of two stages that are neighbours: the faster way, where replicas lie differently.
  Picoseconds Message(int from, int to) const {
    const step::VirtualStage& stage = work_.virtual_stages[from];
    if (to >= work_.placing.stages || stage.edges.forward_out < 0) return {};
    const ir::Transfer& transfer = work_.tables.transfers[stage.edges.forward_out];
    const ir::SharedNodes nodes = ir::SharedNodesOf(work_.tables, from, to);
    const auto time = [&](bool same_node) {
      return UncontendedTime(work_.costs, work_.costs.SendCost(transfer.bytes, same_node));
    };
    if (!nodes.any) return time(false);
    return nodes.all ? time(true) : std::min(time(true), time(false));
  }

  Picoseconds Tail() const {
    if (work_.plan.no_optimizer()) return {};
    Picoseconds norm, optimizer;
    if (work_.tables.world.gpus() > 1) {
      norm = GroupTime(work_.costs, work_.tables, step::ModelGroup(),
                       {CollectiveKind::kAllReduce, "grad_norm", Bytes(kGradientNormBytes)});
    }
    for (const StageSums& sums : sums_) {
      optimizer = std::max(optimizer, work_.costs.KernelTime(step::OptimizerKernel(
                                          work_.plan, work_.costs, sums.trained)));
    }
    return norm + Scaled(optimizer, work_.times.kernel_factor);
  }

  const PipelineWork& work_;
  const Surroundings& around_;
  std::vector<SlotPath> forward_, backward_;  // by virtual stage
  std::vector<StageSums> sums_;
};

}  // namespace

PipelineBound BoundPipeline(const PipelineWork& work, const Surroundings& around) {
  return Bound(work, around).Run();
}

Picoseconds GroupTime(const hw::ProfileCostModel& costs, const ir::Schedule& tables,
                      const ir::Group& group, const CollectiveWork& work) {
  return UncontendedTime(costs, costs.CollectiveCost(work, ir::ShapeOf(tables, group)));
}

}  // namespace optimus::llm_search
