#include "executor/cuda/launcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/kernels.h"

namespace optimus::executor::cuda {
namespace {

// Of the scores of attention: 256 MiB, as much again for their gradients.
constexpr std::int64_t kLargestScores = std::int64_t{128} << 20;
constexpr std::int64_t kBf16 = 2;

absl::Status Name(const Kernel& kernel, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("kernel '", kernel.name, "': ", status.message())};
}

bool IsInput(AttentionTensor tensor) { return tensor <= AttentionTensor::kOutputGradient; }

SoftmaxShape ShapeOf(const SoftmaxStep& step) {
  return {step.rows,           step.rows_per_pair, step.keys,   step.row_stride,
          step.first_position, step.group,         step.causal, step.scale};
}

std::vector<AttentionTensor> TensorsOf(bool backward) {
  using T = AttentionTensor;
  if (!backward) return {T::kQuery, T::kKey, T::kValue, T::kOutput};
  return {T::kQuery,         T::kKey,         T::kValue,        T::kOutputGradient,
          T::kQueryGradient, T::kKeyGradient, T::kValueGradient};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Launcher>> Launcher::Create(const BlasLt& blas, int blocks,
                                                           cudaStream_t stream) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<GemmEngine> engine, GemmEngine::Create(blas));
  return std::unique_ptr<Launcher>(new Launcher(std::move(engine), blocks, stream));
}

absl::Status Launcher::PrepareGemm(PreparedKernel& prepared) {
  const GemmShape& shape = prepared.kernel.gemm;
  if (shape.m < 1 || shape.n < 1 || shape.k < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("GEMM ", shape.m, " x ", shape.n, " x ", shape.k, " is empty"));
  }
  const GemmProblem problem = PlanGemm(prepared.kernel);
  OPTIMUS_ASSIGN_OR_RETURN(prepared.gemm, engine_->Prepare(problem, GemmAlignment()));
  prepared.offset_b = Regions::Align(BytesOfA(problem));
  prepared.input_bytes = prepared.offset_b + BytesOfB(problem);
  prepared.output_bytes = BytesOfC(problem);
  return absl::OkStatus();
}

absl::Status Launcher::PrepareAttention(PreparedKernel& prepared) {
  const AttentionShape& shape = prepared.kernel.attention;
  OPTIMUS_ASSIGN_OR_RETURN(const AttentionPlan plan, PlanAttention(shape, kLargestScores));
  for (const auto& step : plan.steps) {
    PreparedKernel::AttentionCall call;
    if (const auto* gemm = std::get_if<AttentionGemm>(&step)) {
      const GemmAlignment alignment = {AlignmentOf(gemm->a.offset), AlignmentOf(gemm->b.offset),
                                       AlignmentOf(gemm->c.offset)};
      OPTIMUS_ASSIGN_OR_RETURN(call.gemm, engine_->Prepare(gemm->problem, alignment));
      call.a = gemm->a;
      call.b = gemm->b;
      call.c = gemm->c;
    } else {
      call.softmax = std::get<SoftmaxStep>(step);
    }
    prepared.attention.push_back(call);
  }
  for (const AttentionTensor tensor : TensorsOf(shape.backward)) {
    std::int64_t& end = IsInput(tensor) ? prepared.input_bytes : prepared.output_bytes;
    prepared.tensors[tensor] = end;
    end += Regions::Align(ElementsOf(shape, tensor) * kBf16);
  }
  prepared.launches = static_cast<int>(prepared.attention.size());
  const auto reserve = [&plan](DeviceMemory<char>& memory, std::int64_t& elements) {
    if (plan.score_elements <= elements) return absl::OkStatus();
    memory.reset();
    elements = 0;
    OPTIMUS_ASSIGN_OR_RETURN(memory, AllocateOnDevice<char>(plan.score_elements * kBf16));
    elements = plan.score_elements;
    return absl::OkStatus();
  };
  OPTIMUS_RETURN_IF_ERROR(reserve(scores_, score_elements_));
  if (!shape.backward) return absl::OkStatus();
  return reserve(score_gradients_, score_gradient_elements_);
}

absl::StatusOr<PreparedKernel> Launcher::PrepareOne(const Kernel& kernel) {
  PreparedKernel prepared;
  prepared.kernel = kernel;
  switch (kernel.kind) {
    case KernelKind::kGemm:
      OPTIMUS_RETURN_IF_ERROR(PrepareGemm(prepared));
      break;
    case KernelKind::kAttention:
      OPTIMUS_RETURN_IF_ERROR(PrepareAttention(prepared));
      break;
    case KernelKind::kMemoryBound:
      prepared.input_bytes = prepared.output_bytes = (kernel.bytes.value() + 31) / 32 * 16;
      break;
    case KernelKind::kFixed:
      break;
  }
  return prepared;
}

absl::Status Launcher::Prepare(absl::Span<const Kernel> kernels) {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::vector<const PreparedKernel*> added;
  for (const Kernel& kernel : kernels) {
    if (Find(kernel).ok()) continue;
    absl::StatusOr<PreparedKernel> prepared = PrepareOne(kernel);
    if (!prepared.ok()) return Name(kernel, prepared.status());
    prepared_.push_back(std::make_unique<PreparedKernel>(*std::move(prepared)));
    by_address_[&kernel] = prepared_.back().get();
    added.push_back(prepared_.back().get());
    inputs = std::max(inputs, added.back()->input_bytes);
    outputs = std::max(outputs, added.back()->output_bytes);
    OPTIMUS_RETURN_IF_ERROR(Name(kernel, arena_.Reserve(inputs, outputs)));
  }
  OPTIMUS_RETURN_IF_ERROR(arena_.Reserve(inputs, outputs));
  for (const PreparedKernel* kernel : added) {
    OPTIMUS_RETURN_IF_ERROR(Name(kernel->kernel, RunOnce(*kernel)));
  }
  arena_.Restart();
  return absl::OkStatus();
}

absl::Status Launcher::RunOnce(const PreparedKernel& kernel) {
  if (kernel.kernel.kind == KernelKind::kFixed) {
    OPTIMUS_CUDA_RETURN_IF_ERROR(LaunchSpin(0, stream_));
  } else {
    OPTIMUS_RETURN_IF_ERROR(Launch(kernel, 0, 0, stream_));
  }
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return absl::OkStatus();
}

absl::StatusOr<const PreparedKernel*> Launcher::Find(const Kernel& kernel) const {
  const auto known = by_address_.find(&kernel);
  if (known != by_address_.end() && known->second->kernel == kernel) return known->second;
  for (const auto& prepared : prepared_) {
    if (prepared->kernel != kernel) continue;
    by_address_[&kernel] = prepared.get();
    return prepared.get();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("kernel '", kernel.name, "' was not given to Device::Prepare"));
}

char* Launcher::Address(const PreparedKernel& kernel, const AttentionOperand& operand,
                        std::int64_t input, std::int64_t output) const {
  const std::int64_t offset = operand.offset * kBf16;
  if (operand.tensor == AttentionTensor::kScores) return scores_.get() + offset;
  if (operand.tensor == AttentionTensor::kScoreGradients) return score_gradients_.get() + offset;
  const std::int64_t at = kernel.tensors.at(operand.tensor) + offset;
  return IsInput(operand.tensor) ? arena_.input(input + at) : arena_.output(output + at);
}

absl::Status Launcher::LaunchAttention(const PreparedKernel& kernel, std::int64_t input,
                                       std::int64_t output, cudaStream_t stream) const {
  for (const PreparedKernel::AttentionCall& call : kernel.attention) {
    if (call.gemm != nullptr) {
      OPTIMUS_RETURN_IF_ERROR(engine_->Run(*call.gemm, Address(kernel, call.a, input, output),
                                           Address(kernel, call.b, input, output),
                                           Address(kernel, call.c, input, output), stream));
    } else if (call.softmax.backward) {
      OPTIMUS_CUDA_RETURN_IF_ERROR(LaunchSoftmaxGradient(scores_.get(), score_gradients_.get(),
                                                         ShapeOf(call.softmax), stream));
    } else {
      OPTIMUS_CUDA_RETURN_IF_ERROR(LaunchSoftmax(scores_.get(), ShapeOf(call.softmax), stream));
    }
  }
  return absl::OkStatus();
}

absl::Status Launcher::Launch(const PreparedKernel& prepared, std::int64_t input,
                              std::int64_t output, cudaStream_t stream) const {
  const Kernel& kernel = prepared.kernel;
  switch (kernel.kind) {
    case KernelKind::kGemm:
      return engine_->Run(*prepared.gemm, arena_.input(input),
                          arena_.input(input + prepared.offset_b), arena_.output(output), stream);
    case KernelKind::kAttention:
      return LaunchAttention(prepared, input, output, stream);
    case KernelKind::kMemoryBound:
      return CudaStatus(LaunchStreaming(arena_.input(input), arena_.output(output),
                                        kernel.bytes.value(), blocks_, stream),
                        "memory-bound kernel");
    case KernelKind::kFixed:
      return CudaStatus(LaunchSpin(kernel.fixed.value() / 1000, stream), "fixed kernel");
  }
  return absl::InternalError("a kernel of no kind");
}

}  // namespace optimus::executor::cuda
