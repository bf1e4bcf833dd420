#pragma once
// The vocabulary of work: what is computed and what is moved, with shapes, FLOPs and bytes. A
// simulator prices it, an executor launches it. Per GPU: every shape is already divided by tensor
// parallelism.

#include <cstdint>
#include <string>

#include "base/units.h"

namespace optimus {

enum class KernelKind : std::uint8_t {
  kGemm,         // C[m,n] = A[m,k] B[k,n], bf16 in, fp32 accumulate; `flops` = 2 m n k
  kAttention,    // fused (flash) attention core; `flops` already accounts for a causal mask
  kMemoryBound,  // norms, activation, residual, embedding look-up, unfused softmax: `bytes` of HBM
                 // traffic
  kFixed,        // a measured or assumed duration, taken as it is (profiled schedules, optimizer
                 // overhead)
};

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

struct AttentionShape {
  std::int64_t sequences = 0;        // batch
  std::int64_t heads = 0;            // query heads on this GPU
  std::int64_t kv_heads = 0;         // key/value heads on this GPU (GQA: fewer than heads)
  std::int64_t sequence_length = 0;  // tokens of a sequence
  std::int64_t head_dim = 0;
  bool causal = false;
  bool backward = false;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

struct Kernel {
  KernelKind kind = KernelKind::kFixed;
  std::string
      name;  // field's short name: "qkv", "attention", "proj", "fc1", "gelu", "norm", "lm_head" ...
  GemmShape gemm;            // kGemm
  AttentionShape attention;  // kAttention
  Flops flops;               // kGemm, kAttention: work done, for pricing and HFU
  Bytes bytes;               // HBM traffic: reads + writes (all kinds but kFixed)
  Picoseconds fixed;         // kFixed
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

enum class CollectiveKind : std::uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kAllToAll,
};

// Sizes follow nccl-tests: all-gather = bytes of the gathered output, reduce-scatter = bytes of the
// whole input, all-reduce and broadcast = bytes of the buffer, all-to-all = bytes each rank sends
// in all.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string name;
  Bytes bytes;
  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

const char* ToString(KernelKind kind);
const char* ToString(CollectiveKind kind);

}  // namespace optimus
