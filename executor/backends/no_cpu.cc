#include "executor/backends/parts.h"

namespace optimus::executor {

std::optional<std::string> CpuPart() { return std::nullopt; }

absl::StatusOr<std::unique_ptr<HostDevice>> MakeCpu(const World& /*world*/,
                                                    const BackendOptions& /*options*/) {
  return absl::UnimplementedError(
      "the cpu backend is not in this build; hint: install oneDNN (libdnnl-dev) and configure with "
      "-DOPTIMUS_ONEDNN=ON");
}

}  // namespace optimus::executor
