#include "absl/strings/str_cat.h"
#include "executor/backends/parts.h"
#include "executor/backends/pinning.h"
#include "executor/cpu/cpu_device.h"
#include "executor/cpu/primitives.h"

namespace optimus::executor {

std::optional<std::string> CpuPart() { return absl::StrCat("oneDNN ", OneDnnVersion()); }

absl::StatusOr<std::unique_ptr<HostDevice>> MakeCpu(const World& world,
                                                    const BackendOptions& options) {
  HostOptions host;
  if (options.pin) {
    const std::vector<int> allowed = AllowedCpus();
    host.core = ChooseCpu(allowed, CoresOf(allowed), world.local_rank());
  }
  return std::make_unique<CpuDevice>(host, options.bf16);
}

}  // namespace optimus::executor
