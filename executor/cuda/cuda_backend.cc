#include "executor/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/agree.h"
#include "executor/cuda/cuda_communicator.h"
#include "executor/cuda/cuda_device.h"
#include "executor/cuda/device_check.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/libraries.h"
#include "executor/cuda/nccl_comm.h"

namespace optimus::executor {
namespace cuda {
namespace {

constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

// Read by the libraries when they start, so this comes first. What a user has set stays.
void SetDefaults() {
  setenv(kConnections, absl::StrCat(kNeededConnections).c_str(), /*overwrite=*/0);
  // NCCL connects ranks when a communicator is made, not at its first collective: in a step that
  // would allocate memory while other streams wait on the GPU for other ranks.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
}

// Makes the rank's GPU the current one.
void Choose(GpuFacts& facts) {
  const int ordinal = DeviceOf(facts);
  if (ordinal < 0) return;
  cudaDeviceProp properties = {};
  cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
  if (error == cudaSuccess) {
    facts.name = properties.name;
    facts.generation = absl::StrCat("sm_", properties.major, properties.minor);
    std::array<char, 32> bus = {};
    error = cudaDeviceGetPCIBusId(bus.data(), bus.size(), ordinal);
    facts.bus = bus.data();
  }
  if (error == cudaSuccess) error = cudaSetDevice(ordinal);
  if (error == cudaSuccess) error = LookForCode();
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
    facts.code = false;
  } else if (error != cudaSuccess) {
    facts.error = cudaGetErrorString(error);
  }
}

GpuFacts FindFacts(const World& world) {
  GpuFacts facts;
  facts.host = world.host();
  facts.local_rank = world.local_rank();
  facts.local_size = world.local_size();
  facts.needed_version = CUDART_VERSION / 1000 * 1000;  // later minor versions need no new driver
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  facts.visible = visible == nullptr ? "unset" : absl::StrCat("'", visible, "'");
  const char* connections = std::getenv(kConnections);
  if (connections == nullptr || !absl::SimpleAtoi(connections, &facts.connections)) {
    facts.connections = 0;
  }
  if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) facts.driver_version = 0;
  facts.driver = facts.driver_version > 0;
  if (!facts.driver) return facts;
  const cudaError_t counted = cudaGetDeviceCount(&facts.gpus);
  if (counted != cudaSuccess) {
    facts.gpus = 0;
    facts.error = cudaGetErrorString(counted);
    return facts;
  }
  Choose(facts);
  return facts;
}

// No two ranks on one card: only rank 0 sees all.
absl::Status AgreeOnCards(World& world, const GpuFacts& mine) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> texts, world.Gather(ToText(mine)));
  std::vector<GpuFacts> ranks;
  ranks.reserve(texts.size());
  for (const std::string& text : texts) ranks.push_back(FromText(text));
  return Agree(world, CheckCards(ranks));
}

absl::StatusOr<std::unique_ptr<NcclComm>> ConnectWorld(World& world, const Nccl& nccl) {
  if (world.size() == 1) return nullptr;
  ncclUniqueId id = {};
  absl::Status made;
  if (world.rank() == 0) {
    const ncclResult_t result = nccl.GetUniqueId(&id);
    if (result != ncclSuccess) {
      made = absl::UnavailableError(absl::StrCat(
          "nccl: no unique id: ", nccl.GetErrorString(result), ": ", nccl.GetLastError(nullptr)));
    }
  }
  OPTIMUS_RETURN_IF_ERROR(Agree(world, made));
  const std::string bytes(id.internal, sizeof(id.internal));
  OPTIMUS_ASSIGN_OR_RETURN(const std::string text, world.Broadcast(absl::BytesToHexString(bytes)));
  const std::string from_rank_0 = absl::HexStringToBytes(text);
  if (from_rank_0.size() != sizeof(id.internal)) {
    return absl::InternalError("nccl: the unique id was cut short");
  }
  std::memcpy(id.internal, from_rank_0.data(), from_rank_0.size());
  return NcclComm::Init(nccl, world.size(), world.rank(), id);
}

absl::StatusOr<CudaBackend> Make(World& world, const CudaOptions& options) {
  SetDefaults();
  GpuFacts facts = FindFacts(world);
  absl::Status fit = CheckGpu(facts);
  const Libraries* libraries = nullptr;
  if (fit.ok()) {
    const absl::StatusOr<const Libraries*> loaded = LoadLibraries();
    if (loaded.ok()) {
      libraries = *loaded;
    } else {
      facts.libraries = std::string(loaded.status().message());
      fit = CheckGpu(facts);
    }
  }
  OPTIMUS_RETURN_IF_ERROR(Agree(world, fit));
  OPTIMUS_RETURN_IF_ERROR(AgreeOnCards(world, facts));
  absl::StatusOr<std::unique_ptr<CudaDevice>> device =
      CudaDevice::Create(DeviceOf(facts), options, *libraries);
  OPTIMUS_RETURN_IF_ERROR(Agree(world, device.status()));
  absl::StatusOr<std::unique_ptr<NcclComm>> comm = ConnectWorld(world, libraries->nccl);
  OPTIMUS_RETURN_IF_ERROR(Agree(world, comm.status()));
  absl::StatusOr<std::unique_ptr<CudaCommunicator>> ranks =
      CudaCommunicator::CreateWorld(**device, *std::move(comm), world.rank(), world.size());
  OPTIMUS_RETURN_IF_ERROR(Agree(world, ranks.status()));
  CudaBackend backend;
  backend.device = *std::move(device);
  backend.ranks = *std::move(ranks);
  return backend;
}

}  // namespace
}  // namespace cuda

absl::StatusOr<CudaBackend> MakeCuda(World& world, const CudaOptions& options) {
  return cuda::Make(world, options);
}

std::string DescribeCuda() {
  return absl::StrCat("CUDA ", cuda::CudaVersion(CUDART_VERSION), ", cuBLASLt, NCCL ",
                      cuda::NcclVersion(NCCL_VERSION_CODE));
}

}  // namespace optimus::executor
