#include "executor/cuda/gemm_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor::cuda {
namespace {

// What NVIDIA recommends on Hopper.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

std::string Text(const GemmProblem& p) {
  return absl::StrCat("GEMM ", p.m, " x ", p.n, " x ", p.k, p.batch > 1 ? " times " : "",
                      p.batch > 1 ? absl::StrCat(p.batch) : "", " (", p.transpose_a ? "T" : "N",
                      p.transpose_b ? "T" : "N", ")");
}

}  // namespace

class PreparedGemm {
 public:
  explicit PreparedGemm(const BlasLt& blas) : blas_(blas) {}
  ~PreparedGemm() {
    if (operation != nullptr) blas_.MatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) blas_.MatrixLayoutDestroy(layout);
    }
  }
  PreparedGemm(const PreparedGemm&) = delete;
  PreparedGemm& operator=(const PreparedGemm&) = delete;

  GemmProblem problem;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};

 private:
  const BlasLt& blas_;
};

absl::Status GemmEngine::Check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat("cuBLASLt: ", what, ": ", blas_.GetStatusString(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(text);
  return absl::InternalError(text);
}

absl::StatusOr<std::unique_ptr<GemmEngine>> GemmEngine::Create(const BlasLt& blas) {
  std::unique_ptr<GemmEngine> engine(new GemmEngine(blas));
  OPTIMUS_RETURN_IF_ERROR(engine->Check(blas.Create(&engine->handle_), "create"));
  OPTIMUS_ASSIGN_OR_RETURN(engine->workspace_, AllocateOnDevice<char>(kWorkspaceBytes));
  return engine;
}

GemmEngine::GemmEngine(const BlasLt& blas) : blas_(blas) {}

GemmEngine::~GemmEngine() {
  prepared_.clear();
  if (handle_ != nullptr) blas_.Destroy(handle_);
}

absl::Status GemmEngine::Describe(const GemmProblem& problem, PreparedGemm& gemm) const {
  gemm.problem = problem;
  OPTIMUS_RETURN_IF_ERROR(
      Check(blas_.MatmulDescCreate(&gemm.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation"));
  const cublasOperation_t operation_a = problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t operation_b = problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  OPTIMUS_RETURN_IF_ERROR(
      Check(blas_.MatmulDescSetAttribute(gemm.operation, CUBLASLT_MATMUL_DESC_TRANSA, &operation_a,
                                         sizeof(operation_a)),
            "transpose A"));
  OPTIMUS_RETURN_IF_ERROR(
      Check(blas_.MatmulDescSetAttribute(gemm.operation, CUBLASLT_MATMUL_DESC_TRANSB, &operation_b,
                                         sizeof(operation_b)),
            "transpose B"));
  const auto layout = [&](cublasLtMatrixLayout_t& out, bool floats, std::int64_t rows,
                          std::int64_t columns, std::int64_t ld, std::int64_t stride) {
    OPTIMUS_RETURN_IF_ERROR(Check(blas_.MatrixLayoutCreate(&out, floats ? CUDA_R_32F : CUDA_R_16BF,
                                                           static_cast<std::uint64_t>(rows),
                                                           static_cast<std::uint64_t>(columns), ld),
                                  "layout"));
    const auto batch = static_cast<std::int32_t>(problem.batch);
    OPTIMUS_RETURN_IF_ERROR(
        Check(blas_.MatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                             sizeof(batch)),
              "batch"));
    return Check(blas_.MatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof(stride)),
                 "batch stride");
  };
  const auto& p = problem;
  OPTIMUS_RETURN_IF_ERROR(layout(gemm.a, false, p.transpose_a ? p.k : p.m,
                                 p.transpose_a ? p.m : p.k, p.lda, p.stride_a));
  OPTIMUS_RETURN_IF_ERROR(layout(gemm.b, false, p.transpose_b ? p.n : p.k,
                                 p.transpose_b ? p.k : p.n, p.ldb, p.stride_b));
  return layout(gemm.c, p.float_output, p.m, p.n, p.ldc, p.stride_c);
}

absl::Status GemmEngine::Choose(const GemmAlignment& alignment, PreparedGemm& gemm) const {
  cublasLtMatmulPreference_t created = nullptr;
  OPTIMUS_RETURN_IF_ERROR(Check(blas_.PreferenceCreate(&created), "preference"));
  const auto destroy = [this](cublasLtMatmulPreference_t p) { blas_.PreferenceDestroy(p); };
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(destroy)> preference(created,
                                                                                        destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return Check(blas_.PreferenceSetAttribute(created, attribute, &value, sizeof(value)),
                 "preference");
  };
  OPTIMUS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes));
  OPTIMUS_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment.a)));
  OPTIMUS_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment.b)));
  OPTIMUS_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment.c)));
  OPTIMUS_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment.c)));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status = blas_.AlgoGetHeuristic(handle_, gemm.operation, gemm.a, gemm.b,
                                                       gemm.c, gemm.c, created, 1, &found, &count);
  if (status == CUBLAS_STATUS_SUCCESS && count == 0) {
    return absl::UnimplementedError("cuBLASLt: no kernel");
  }
  OPTIMUS_RETURN_IF_ERROR(Check(status, "heuristic"));
  gemm.algorithm = found.algo;
  return absl::OkStatus();
}

absl::StatusOr<const PreparedGemm*> GemmEngine::Prepare(const GemmProblem& problem,
                                                        const GemmAlignment& alignment) {
  std::unique_ptr<PreparedGemm>& entry = prepared_[{problem, alignment}];
  if (entry != nullptr) return entry.get();
  auto gemm = std::make_unique<PreparedGemm>(blas_);
  absl::Status status = Describe(problem, *gemm);
  if (status.ok()) status = Choose(alignment, *gemm);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(Text(problem), ": ", status.message()));
  }
  entry = std::move(gemm);
  return entry.get();
}

absl::Status GemmEngine::Run(const PreparedGemm& gemm, const void* a, const void* b, void* c,
                             cudaStream_t stream) const {
  return Check(blas_.Matmul(handle_, gemm.operation, &gemm.problem.alpha, a, gemm.a, b, gemm.b,
                            &gemm.problem.beta, c, gemm.c, c, gemm.c, &gemm.algorithm,
                            workspace_.get(), kWorkspaceBytes, stream),
               "matmul");
}

}  // namespace optimus::executor::cuda
