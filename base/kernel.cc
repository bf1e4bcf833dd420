#include "base/kernel.h"

#include "base/phase.h"

namespace optimus {

const char* ToString(KernelKind kind) {
  switch (kind) {
    case KernelKind::kGemm:
      return "gemm";
    case KernelKind::kAttention:
      return "attention";
    case KernelKind::kMemoryBound:
      return "memory_bound";
    case KernelKind::kFixed:
      return "fixed";
  }
  return "invalid";
}

const char* ToString(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
  }
  return "invalid";
}

const char* ToString(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "backward";
    case Phase::kWeightGradient:
      return "weight_gradient";
    case Phase::kParameterSync:
      return "parameter_sync";
    case Phase::kGradientSync:
      return "gradient_sync";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "invalid";
}

}  // namespace optimus
