#include "executor/cuda/device_check.h"

#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optimus::executor::cuda {
namespace {

absl::Status Unavailable(const std::string& what, const std::string& hint) {
  return absl::UnavailableError(absl::StrCat("cuda: ", what, "; hint: ", hint));
}

std::string Driver(const GpuFacts& facts) {
  if (!facts.driver) return "no NVIDIA driver";
  return absl::StrCat("driver for CUDA ", CudaVersion(facts.driver_version),
                      ", CUDA_VISIBLE_DEVICES ", facts.visible);
}

}  // namespace

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

int DeviceOf(const GpuFacts& facts) {
  if (facts.local_rank < facts.gpus) return facts.local_rank;
  return facts.gpus == 1 ? 0 : -1;
}

absl::Status CheckGpu(const GpuFacts& facts) {
  if (!facts.libraries.empty()) {
    return Unavailable(facts.libraries, "install it or add its folder to LD_LIBRARY_PATH");
  }
  if (facts.driver && facts.driver_version < facts.needed_version) {
    return Unavailable(absl::StrCat("the driver is for CUDA ", CudaVersion(facts.driver_version),
                                    ", this build needs ", CudaVersion(facts.needed_version)),
                       "update the driver, or build with an older toolkit");
  }
  if (!facts.driver || facts.gpus == 0) {
    return Unavailable(absl::StrCat("no GPU found (", Driver(facts), ")",
                                    facts.error.empty() ? "" : absl::StrCat(": ", facts.error)),
                       "run it where nvidia-smi lists a GPU, or use --backend=cpu");
  }
  if (DeviceOf(facts) < 0) {
    return Unavailable(absl::StrCat(facts.local_size, " ranks on ", facts.host, " have ",
                                    facts.gpus, " GPUs (", Driver(facts), ")"),
                       "start as many ranks a node as it has GPUs");
  }
  if (!facts.code) {
    std::string number = facts.generation;
    if (number.rfind("sm_", 0) == 0) number = number.substr(3);
    return Unavailable(
        absl::StrCat("this build has no code for ", facts.name, " (", facts.generation, ")"),
        absl::StrCat("configure with -DCMAKE_CUDA_ARCHITECTURES=", number));
  }
  if (!facts.error.empty()) {
    return Unavailable(
        absl::StrCat("cannot use GPU ", DeviceOf(facts), " of ", facts.host, ": ", facts.error),
        "does nvidia-smi show it free and healthy?");
  }
  if (facts.connections < kNeededConnections) {
    return Unavailable(absl::StrCat("CUDA_DEVICE_MAX_CONNECTIONS is ", facts.connections,
                                    ": streams would wait for each other and could deadlock"),
                       absl::StrCat("unset it, or set it to ", kNeededConnections));
  }
  return absl::OkStatus();
}

absl::Status CheckCards(absl::Span<const GpuFacts> ranks) {
  std::map<std::pair<std::string, std::string>, std::size_t> owners;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [entry, added] = owners.try_emplace({ranks[rank].host, ranks[rank].bus}, rank);
    if (added) continue;
    return Unavailable(
        absl::StrCat("ranks ", entry->second, " and ", rank, " have one GPU (", ranks[rank].name,
                     " at ", ranks[rank].bus, " of ", ranks[rank].host, ")"),
        "start as many ranks a node as it has GPUs");
  }
  return absl::OkStatus();
}

std::string ToText(const GpuFacts& facts) {
  return absl::StrCat(facts.host, "\n", facts.name, "\n", facts.bus);
}

GpuFacts FromText(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  GpuFacts facts;
  if (lines.size() != 3) return facts;
  facts.host = lines[0];
  facts.name = lines[1];
  facts.bus = lines[2];
  return facts;
}

}  // namespace optimus::executor::cuda
