// What to measure.

#include <algorithm>
#include <iterator>
#include <utility>

#include "executor/measure/measure.h"
#include "schedule/ir/critical_path.h"

namespace optimus::executor {
namespace {

constexpr std::int64_t kSmallest = 1024;
// Where a schedule moves less: what is nearly all latency says nothing about bandwidth. Cheap, also
// for a CPU (1 MiB takes about 0.2 ms).
constexpr Bytes kAtLeast[] = {Bytes(64 << 10), Bytes(1 << 20)};

void AddKernel(MeasurePlan& plan, const Kernel& kernel) {
  if (kernel.kind == KernelKind::kFixed) return;
  if (std::find(plan.kernels.begin(), plan.kernels.end(), kernel) != plan.kernels.end()) return;
  plan.kernels.push_back(kernel);
}

bool SameCase(const TransferCase& a, const TransferCase& b) {
  return a.send == b.send && (a.send || a.kind == b.kind) && a.scope == b.scope &&
         a.group.ranks == b.group.ranks && a.group.ranks_per_node == b.group.ranks_per_node;
}

TransferCase& CaseLike(MeasurePlan& plan, const TransferCase& transfer) {
  for (TransferCase& known : plan.transfers) {
    if (SameCase(known, transfer)) return known;
  }
  plan.transfers.push_back(transfer);
  plan.transfers.back().sizes.clear();
  return plan.transfers.back();
}

void AddSizes(MeasurePlan& plan, const TransferCase& transfer) {
  TransferCase& known = CaseLike(plan, transfer);
  known.used = std::max(known.used, transfer.used);
  std::vector<Bytes>& sizes = known.sizes;
  sizes.insert(sizes.end(), transfer.sizes.begin(), transfer.sizes.end());
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

// A group of one rank, or nothing to move, takes no time and is in no table.
void AddCollective(MeasurePlan& plan, const ir::Schedule& schedule, const ir::Collective& work) {
  const GroupShape shape = ir::ShapeOf(schedule, schedule.groups[work.group]);
  if (shape.ranks < 2 || work.work.bytes <= Bytes(0)) return;
  const LinkScope scope =
      shape.ranks == shape.ranks_per_node ? LinkScope::kNvlink : LinkScope::kNic;
  AddSizes(plan, {false, work.work.kind, scope, shape, {work.work.bytes}, work.work.bytes});
}

TransferCase SendCase(LinkScope scope, std::vector<Bytes> sizes) {
  const Bytes used = sizes.back();
  return {true,
          CollectiveKind::kAllReduce,
          scope,
          {2, scope == LinkScope::kNvlink ? 2 : 1},
          std::move(sizes),
          used};
}

void AddSend(MeasurePlan& plan, const ir::Schedule& schedule, const ir::Program& program,
             const ir::Operation& op) {
  const ir::Transfer& transfer = schedule.transfers[op.work];
  if (transfer.bytes <= Bytes(0) || transfer.fixed > Picoseconds(0)) return;
  const int lane = schedule.lanes == 1 ? -1 : program.lane;
  const ir::SharedNodes shared =
      ir::SharedNodesOf(schedule, program.stage, op.peer_stage, lane, op.peer_lane);
  if (shared.any) AddSizes(plan, SendCase(LinkScope::kNvlink, {transfer.bytes}));
  if (!shared.all) AddSizes(plan, SendCase(LinkScope::kNic, {transfer.bytes}));
}

// Powers of two from `kSmallest` to what is there, and at least `kAtLeast`.
void AddSizesToFit(MeasurePlan& plan) {
  for (const TransferCase& transfer : std::vector<TransferCase>(plan.transfers)) {
    TransferCase more = transfer;
    more.sizes.clear();
    for (std::int64_t size = kSmallest; size < transfer.sizes.back().value(); size *= 2) {
      more.sizes.emplace_back(size);
    }
    more.sizes.insert(
        more.sizes.end(),
        std::upper_bound(std::begin(kAtLeast), std::end(kAtLeast), transfer.sizes.back()),
        std::end(kAtLeast));
    AddSizes(plan, more);
  }
}

Kernel Gemm(const char* name, std::int64_t size) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = name;
  kernel.gemm = {size, size, size};
  kernel.flops = Flops(2.0 * static_cast<double>(size * size * size));
  // bf16 operands; a weight gradient is read and written in f32.
  const bool gradient = kernel.name == "linear_wgrad";
  kernel.bytes = Bytes(size * size * (gradient ? 2 + 2 + 8 : 6));
  return kernel;
}

Kernel Attention(std::int64_t tokens, bool causal, bool backward) {
  constexpr std::int64_t kHeads = 8;
  constexpr std::int64_t kWidth = 64;
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.name = backward ? "attention_dgrad" : "attention";
  kernel.attention = {1, kHeads, kHeads, tokens, kWidth, causal, backward};
  const double all = (backward ? 10.0 : 4.0) * static_cast<double>(tokens * tokens) *
                     static_cast<double>(kHeads * kWidth);
  kernel.flops = Flops(causal ? all / 2 : all);
  // bf16 tensors, and the f32 log-sum-exp of every row.
  const std::int64_t tensors = backward ? 8 : 4;
  kernel.bytes = Bytes(tensors * tokens * kHeads * kWidth * 2 + tokens * kHeads * 4);
  return kernel;
}

Kernel MemoryBound(std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.name = "stream";
  kernel.bytes = Bytes(bytes);
  return kernel;
}

void AddGenericKernels(MeasurePlan& plan, Flops most) {
  for (std::int64_t size = 256; Gemm("", size).flops <= most; size *= 2) {
    for (const char* name : {"linear", "linear_dgrad", "linear_wgrad"}) {
      AddKernel(plan, Gemm(name, size));
    }
  }
  for (std::int64_t tokens = 256; Attention(tokens, false, true).flops <= most; tokens *= 2) {
    for (const bool causal : {false, true}) {
      for (const bool backward : {false, true}) {
        AddKernel(plan, Attention(tokens, causal, backward));
      }
    }
  }
  for (std::int64_t bytes = std::int64_t{256} << 10; bytes <= std::int64_t{256} << 20; bytes *= 4) {
    AddKernel(plan, MemoryBound(bytes));
  }
}

void AddGenericCollectives(MeasurePlan& plan, LinkScope scope, GroupShape group,
                           const std::vector<Bytes>& sizes) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll}) {
    AddSizes(plan, {false, kind, scope, group, sizes, sizes.back()});
  }
}

}  // namespace

// In the order in which programs issue them: then a kernel is measured after the same neighbours as
// it has in a step.
MeasurePlan PlanFor(const ir::Schedule& schedule) {
  MeasurePlan plan;
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind == ir::OperationKind::kKernel) {
        AddKernel(plan, schedule.kernels[op.work]);
      } else if (op.kind == ir::OperationKind::kCollective) {
        AddCollective(plan, schedule, schedule.collectives[op.work]);
      } else if (op.kind == ir::OperationKind::kSend) {
        AddSend(plan, schedule, program, op);
      }
    }
  }
  AddSizesToFit(plan);
  plan.interference = std::any_of(plan.transfers.begin(), plan.transfers.end(),
                                  [](const TransferCase& transfer) { return !transfer.send; });
  return plan;
}

void Merge(MeasurePlan& plan, const MeasurePlan& other) {
  for (const Kernel& kernel : other.kernels) AddKernel(plan, kernel);
  for (const TransferCase& transfer : other.transfers) AddSizes(plan, transfer);
  plan.interference = plan.interference || other.interference;
}

MeasurePlan GenericPlan(int ranks, int ranks_per_node, Flops most) {
  MeasurePlan plan;
  AddGenericKernels(plan, most);
  std::vector<Bytes> sizes;
  for (std::int64_t size = kSmallest; size <= std::int64_t{64} << 20; size *= 4) {
    sizes.emplace_back(size);
  }
  const int inside = std::min(ranks, ranks_per_node);
  if (inside > 1) {
    AddGenericCollectives(plan, LinkScope::kNvlink, {inside, inside}, sizes);
    AddSizes(plan, SendCase(LinkScope::kNvlink, sizes));
  }
  if (ranks > ranks_per_node) {
    AddGenericCollectives(plan, LinkScope::kNic, {ranks, ranks_per_node}, sizes);
    AddGenericCollectives(plan, LinkScope::kNic, {ranks / ranks_per_node, 1}, sizes);
    AddSizes(plan, SendCase(LinkScope::kNic, sizes));
  }
  plan.interference = ranks > 1;
  return plan;
}

}  // namespace optimus::executor
