#include "executor/cpu/cpu_device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cpu/arena.h"
#include "executor/cpu/attention.h"
#include "executor/cpu/primitives.h"
#include "executor/cpu/processor.h"
#include "executor/cpu/stream_kernel.h"
#include "executor/cpu/training_gemm.h"

namespace optimus::executor {
namespace {

// A kernel's shape and layout: kernels that differ in name only share what is made for them.
using ShapeKey = std::array<std::int64_t, 8>;

ShapeKey KeyOf(const AttentionShape& s) {
  return {1, s.sequences, s.heads, s.kv_heads, s.sequence_length, s.head_dim, s.causal, s.backward};
}
ShapeKey KeyOf(const MatMulShape& s) {
  return {0,
          s.m,
          s.n,
          s.k,
          static_cast<std::int64_t>(s.a),
          static_cast<std::int64_t>(s.b),
          s.accumulate,
          0};
}

std::string Describe(const Kernel& kernel) {
  return absl::StrCat(ToString(kernel.kind), " kernel '", kernel.name, "'");
}

absl::Status Named(const Kernel& kernel, const absl::Status& status) {
  return {status.code(), absl::StrCat(Describe(kernel), ": ", status.message())};
}

// Enough for oneDNN and the code that it generates for a usual schedule. It does not look whether
// it gets memory, and crashes.
constexpr Bytes kForOneDnn(48 << 20);

// What a kernel takes from the arena, or what is enough for each of several.
struct Needs {
  std::int64_t inputs = 0, outputs = 0, scratch = 0;
  Bytes total() const { return Bytes(inputs + outputs + scratch); }
};

Needs Both(const Needs& a, const Needs& b) {
  return {std::max(a.inputs, b.inputs), std::max(a.outputs, b.outputs),
          std::max(a.scratch, b.scratch)};
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

// Room for one operand beside the others: what the arena adds for alignment.
constexpr std::int64_t kRoom = 256;

Needs NeedsOf(const MatMulShape& shape) {
  return {BytesOfA(shape).value() + BytesOfB(shape).value() + 2 * kRoom,
          BytesOfC(shape).value() + kRoom, 0};
}

Needs NeedsOf(const AttentionMemory& memory, bool backward) {
  const std::int64_t q = memory.queries.value() + kRoom;
  const std::int64_t k = memory.keys.value() + kRoom;
  return {(backward ? 2 : 1) * q + 2 * k, backward ? q + 2 * k : q, memory.scratch.value()};
}

}  // namespace

class CpuDevice::Impl {
 public:
  Impl(bool bf16, Bytes region, const MemoryShare& share)
      : element_(bf16 ? Element::kBf16 : Element::kF32), region_(region), share_(share) {}

  absl::Status Prepare(absl::Span<const Kernel> kernels) {
    OPTIMUS_RETURN_IF_ERROR(CheckBackend());
    // All of them before anything is made: that takes its time.
    for (const Kernel& kernel : kernels) {
      if (absl::Status s = CheckMemory(kernel); !s.ok()) return Named(kernel, s);
    }
    OPTIMUS_RETURN_IF_ERROR(CheckAvailable(kForOneDnn));
    for (const Kernel& kernel : kernels) {
      if (absl::Status s = Add(kernel); !s.ok()) return Named(kernel, s);
    }
    // None: a workload brings its own, and its data. Many ranks of one host could not each have it.
    return kernels.empty() ? absl::OkStatus() : MakeMemory();
  }

  absl::Status Run(const Kernel& kernel) {
    if (!arena_) return NotPrepared(kernel);
    switch (kernel.kind) {
      case KernelKind::kGemm:
        return RunGemm(kernel);
      case KernelKind::kAttention:
        return RunAttention(kernel);
      case KernelKind::kMemoryBound:
        return RunMemoryBound(kernel.bytes);
      case KernelKind::kFixed:
        Spin(kernel.fixed);
        return absl::OkStatus();
    }
    return absl::InternalError("kernel of no kind");
  }

  std::string Description() const {
    return absl::StrCat(CpuModel(), ", oneDNN ", OneDnnVersion(), " (", InstructionSet(), "), ",
                        element_ == Element::kBf16 ? "bf16" : "f32", ", one core a rank");
  }
  bool OutputsAreFinite() const { return !arena_ || arena_->OutputsAreFinite(); }

 private:
  struct Product {
    MatMulShape shape;
    MatMul kernel;
  };

  absl::Status CheckBackend() const {
    OPTIMUS_RETURN_IF_ERROR(CheckOneDnnThreading());
    if (element_ == Element::kF32 || HasBf16()) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("cpu backend: bf16 was asked for, but ", CpuModel(), " (", InstructionSet(),
                     ") does not multiply bf16; hint: leave bf16 out, f32 is the default"));
  }

  absl::Status CheckMemory(const Kernel& kernel) {
    if (kernel.kind == KernelKind::kGemm) return Count(NeedsOf(TrainingGemm(kernel, element_)));
    if (kernel.kind != KernelKind::kAttention) return absl::OkStatus();
    OPTIMUS_ASSIGN_OR_RETURN(const AttentionMemory memory,
                             AttentionCore::MemoryOf(kernel.attention, element_));
    return Count(NeedsOf(memory, kernel.attention.backward));
  }

  absl::Status Add(const Kernel& kernel) {
    if (kernel.kind == KernelKind::kGemm) {
      const MatMulShape shape = TrainingGemm(kernel, element_);
      if (products_.contains(KeyOf(shape))) return absl::OkStatus();
      OPTIMUS_ASSIGN_OR_RETURN(MatMul product, MatMul::Create(shape));
      OPTIMUS_RETURN_IF_ERROR(Count({0, 0, product.scratch().value()}));
      products_.emplace(KeyOf(shape), Product{shape, std::move(product)});
    } else if (kernel.kind == KernelKind::kAttention) {
      if (attention_.contains(KeyOf(kernel.attention))) return absl::OkStatus();
      OPTIMUS_ASSIGN_OR_RETURN(AttentionCore core,
                               AttentionCore::Create(kernel.attention, element_));
      OPTIMUS_RETURN_IF_ERROR(Count({0, 0, core.scratch().value()}));
      attention_.emplace(KeyOf(kernel.attention), std::move(core));
    }
    return absl::OkStatus();
  }

  // The other half is for transfers, libraries and the system.
  Bytes Limit() const { return Bytes(share_.bytes.value() / 2); }

  absl::Status Count(const Needs& needs) {
    const Needs all = Both(needs_, needs);
    if (all.total() > Limit()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "needs ", GibText(needs.total()), " for its operands",
          needs.total() > Limit() ? "" : absl::StrCat(", ", GibText(all.total()), " with others'"),
          ", but kernels may take ", GibText(Limit()), " (half of this rank's ",
          GibText(share_.bytes), " ", share_.text,
          "); hint: a smaller micro-batch, more tensor parallelism, or fewer ranks of a machine"));
    }
    needs_ = all;
    return absl::OkStatus();
  }

  // An arena that is large enough goes on where it is: also a second schedule finds its operands in
  // memory, not in the cache.
  absl::Status MakeMemory() {
    const Bytes usual = region_ > Bytes(0) ? region_ : UsualRegion(LastLevelCache(), share_.bytes);
    const Bytes inputs(std::max(usual.value(), needs_.inputs));
    const Bytes outputs(std::max(usual.value(), needs_.outputs));
    if (!arena_ || arena_->inputs() < inputs || arena_->outputs() < outputs) {
      arena_.reset();
      OPTIMUS_ASSIGN_OR_RETURN(arena_, Arena::Create(inputs, outputs, element_));
    }
    return MakeScratch();
  }

  absl::Status MakeScratch() {
    const std::int64_t size = (needs_.scratch + 4095) / 4096 * 4096;
    if (size <= scratch_size_) return absl::OkStatus();
    scratch_.reset(
        static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<std::size_t>(size))));
    scratch_size_ = scratch_ == nullptr ? 0 : size;
    if (scratch_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system refuses ", size, " bytes of scratch memory for kernels"));
    }
    std::fill_n(scratch_.get(), size, std::byte{0});  // no page faults later
    return absl::OkStatus();
  }

  static absl::Status NotPrepared(const Kernel& kernel) {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(kernel), " was not prepared; hint: name it in Device::Prepare"));
  }

  absl::Status RunGemm(const Kernel& kernel) {
    const auto found = products_.find(KeyOf(TrainingGemm(kernel, element_)));
    if (found == products_.end()) return NotPrepared(kernel);
    const auto& [shape, product] = found->second;
    const std::byte* a = arena_->NextInput(BytesOfA(shape));
    const std::byte* b = arena_->NextInput(BytesOfB(shape));
    return product.Run(a, b, arena_->NextOutput(BytesOfC(shape)), scratch_.get());
  }

  absl::Status RunAttention(const Kernel& kernel) {
    const auto found = attention_.find(KeyOf(kernel.attention));
    if (found == attention_.end()) return NotPrepared(kernel);
    const AttentionCore& core = found->second;
    const auto* q = arena_->NextInput(core.query_bytes());
    const auto* k = arena_->NextInput(core.key_bytes());
    const auto* v = arena_->NextInput(core.key_bytes());
    if (!kernel.attention.backward) {
      return core.Forward({q, k, v, arena_->NextOutput(core.query_bytes())}, scratch_.get());
    }
    AttentionBackwardOperands operands{q, k, v, arena_->NextInput(core.query_bytes())};
    operands.q_gradient = arena_->NextOutput(core.query_bytes());
    operands.k_gradient = arena_->NextOutput(core.key_bytes());
    operands.v_gradient = arena_->NextOutput(core.key_bytes());
    return core.Backward(operands, scratch_.get());
  }

  // More than the arena holds is taken in several rounds of it.
  absl::Status RunMemoryBound(Bytes bytes) {
    const std::int64_t most = std::min(arena_->inputs(), arena_->outputs()).value();
    for (std::int64_t left = bytes.value(); left > 0;) {
      const Bytes part(std::min(left, most));
      const StreamTraffic traffic = TrafficOf(part);
      const std::byte* from = arena_->NextInput(traffic.read);
      StreamKernel(from, arena_->NextOutput(traffic.written), part);
      left -= part.value();
    }
    return absl::OkStatus();
  }

  static void Spin(Picoseconds duration) {
    const std::int64_t end_ns = NowNs() + duration.value() / 1000;
    while (NowNs() < end_ns) {
    }
  }

  Element element_;
  Bytes region_;
  MemoryShare share_;
  absl::flat_hash_map<ShapeKey, Product> products_;
  absl::flat_hash_map<ShapeKey, AttentionCore> attention_;
  Needs needs_;
  std::optional<Arena> arena_;
  std::unique_ptr<std::byte, Free> scratch_;
  std::int64_t scratch_size_ = 0;
};

CpuDevice::CpuDevice(HostOptions options, bool bf16, Bytes region)
    : HostDevice(options), impl_(std::make_unique<Impl>(bf16, region, memory_share())) {}
CpuDevice::~CpuDevice() { StopThreads(); }

std::string CpuDevice::Description() const { return impl_->Description(); }
bool CpuDevice::OutputsAreFinite() const { return impl_->OutputsAreFinite(); }

absl::Status CpuDevice::PrepareKernels(absl::Span<const Kernel> kernels) {
  return impl_->Prepare(kernels);
}

absl::StatusOr<std::int64_t> CpuDevice::RunKernel(const Kernel& kernel, std::int64_t /*ready_ns*/) {
  thread_local const bool set_up = [] {
    FlushDenormals();
    UseOneThread();
    return true;
  }();
  (void)set_up;
  OPTIMUS_RETURN_IF_ERROR(impl_->Run(kernel));
  return NowNs();
}

}  // namespace optimus::executor
