#include "executor/cuda/libraries.h"

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optimus::executor::cuda {
namespace {

// One shared library; stays loaded for good.
class Library {
 public:
  // Where the loader finds it, else where the build found it.
  static absl::StatusOr<Library> Open(const std::string& name, const std::string& built_with) {
    for (const std::string& path : {name, built_with}) {
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle != nullptr) return Library(name, handle);
    }
    const char* why = dlerror();
    return absl::UnavailableError(
        absl::StrCat(name, " cannot be loaded (", why == nullptr ? "not found" : why, ")"));
  }

  template <class Function>
  void Find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(handle_, symbol));
    if (function == nullptr) missing_.emplace_back(symbol);
  }

  absl::Status Complete() const {
    if (missing_.empty()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(name_, " is too old: it has no ", absl::StrJoin(missing_, ", ")));
  }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  std::string name_;
  void* handle_;
  std::vector<std::string> missing_;
};

absl::Status LoadBlasLt(BlasLt& blas) {
  OPTIMUS_ASSIGN_OR_RETURN(
      Library library,
      Library::Open(absl::StrCat("libcublasLt.so.", CUDART_VERSION / 1000), OPTIMUS_CUBLASLT_PATH));
  library.Find(blas.Create, "cublasLtCreate");
  library.Find(blas.Destroy, "cublasLtDestroy");
  library.Find(blas.Matmul, "cublasLtMatmul");
  library.Find(blas.MatmulDescCreate, "cublasLtMatmulDescCreate");
  library.Find(blas.MatmulDescDestroy, "cublasLtMatmulDescDestroy");
  library.Find(blas.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  library.Find(blas.MatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  library.Find(blas.MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  library.Find(blas.MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  library.Find(blas.PreferenceCreate, "cublasLtMatmulPreferenceCreate");
  library.Find(blas.PreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  library.Find(blas.PreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  library.Find(blas.AlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.Find(blas.GetVersion, "cublasLtGetVersion");
  library.Find(blas.GetStatusString, "cublasLtGetStatusString");
  return library.Complete();
}

absl::Status LoadNccl(Nccl& nccl) {
  OPTIMUS_ASSIGN_OR_RETURN(
      Library library, Library::Open(absl::StrCat("libnccl.so.", NCCL_MAJOR), OPTIMUS_NCCL_PATH));
  library.Find(nccl.GetVersion, "ncclGetVersion");
  library.Find(nccl.GetUniqueId, "ncclGetUniqueId");
  library.Find(nccl.GetErrorString, "ncclGetErrorString");
  library.Find(nccl.GetLastError, "ncclGetLastError");
  library.Find(nccl.CommInitRankConfig, "ncclCommInitRankConfig");
  library.Find(nccl.CommSplit, "ncclCommSplit");
  library.Find(nccl.CommFinalize, "ncclCommFinalize");
  library.Find(nccl.CommDestroy, "ncclCommDestroy");
  library.Find(nccl.CommAbort, "ncclCommAbort");
  library.Find(nccl.CommGetAsyncError, "ncclCommGetAsyncError");
  library.Find(nccl.GroupStart, "ncclGroupStart");
  library.Find(nccl.GroupEnd, "ncclGroupEnd");
  library.Find(nccl.AllGather, "ncclAllGather");
  library.Find(nccl.ReduceScatter, "ncclReduceScatter");
  library.Find(nccl.AllReduce, "ncclAllReduce");
  library.Find(nccl.Broadcast, "ncclBroadcast");
  library.Find(nccl.AllToAll, "ncclAlltoAll");
  library.Find(nccl.Send, "ncclSend");
  library.Find(nccl.Recv, "ncclRecv");
  OPTIMUS_RETURN_IF_ERROR(library.Complete());
  int version = 0;
  if (nccl.GetVersion(&version) != ncclSuccess || version < NCCL_VERSION_CODE) {
    return absl::UnavailableError(absl::StrCat(
        "NCCL is ", NcclVersion(version), ", this build needs ", NcclVersion(NCCL_VERSION_CODE)));
  }
  return absl::OkStatus();
}

absl::StatusOr<const Libraries*> Load() {
  auto libraries = std::make_unique<Libraries>();
  OPTIMUS_RETURN_IF_ERROR(LoadBlasLt(libraries->blas));
  OPTIMUS_RETURN_IF_ERROR(LoadNccl(libraries->nccl));
  return libraries.release();  // for good, as the libraries are
}

}  // namespace

absl::StatusOr<const Libraries*> LoadLibraries() {
  static const auto* const kLoaded = new absl::StatusOr<const Libraries*>(Load());
  return *kLoaded;
}

std::string NcclVersion(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace optimus::executor::cuda
