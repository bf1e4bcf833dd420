#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "executor/backends/parts.h"
#include "executor/backends/pinning.h"
#include "executor/cpu/cpu_device.h"
#include "executor/cpu/primitives.h"

namespace optimus::executor {

std::optional<std::string> CpuPart() { return absl::StrCat("oneDNN ", OneDnnVersion()); }

absl::StatusOr<std::unique_ptr<HostDevice>> MakeCpu(const World& world,
                                                    const BackendOptions& options) {
  HostOptions host;
  host.ranks_of_machine = world.local_size();
  const std::vector<int> allowed = AllowedCpus();
  if (options.pin) {
    host.core = ChooseCpu(allowed, CoresOf(allowed), world.local_rank());
  }
  if (HasOwnCpu(allowed, world.local_size())) {
    host.poll_idle = absl::ZeroDuration();  // a sleep takes ten times as long as a small message
  }
  return std::make_unique<CpuDevice>(host, options.bf16);
}

}  // namespace optimus::executor
