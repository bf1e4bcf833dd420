#include "executor/host/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace optimus::executor {
namespace {

// The smallest limit of `group` ("/a/b") and all above it. A file that is not there, or says "max",
// limits nothing; inside a container the path may be the host's, and only the top is there.
std::int64_t SmallestLimit(const std::string& hierarchy, std::string group, const char* file,
                           std::int64_t bytes) {
  for (;;) {
    std::ifstream in(absl::StrCat(hierarchy, group, "/", file));
    std::string text;
    std::int64_t limit = 0;
    if (in >> text && absl::SimpleAtoi(text, &limit) && limit > 0) {
      bytes = std::min(bytes, limit);
    }
    if (group.empty()) {
      return bytes;
    }
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

// Nothing where there is no limit.
std::optional<Bytes> AddressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  if (!(file >> pages)) {
    return std::nullopt;
  }
  const auto all = static_cast<std::int64_t>(
      std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()));
  return Bytes(std::max<std::int64_t>(0, all - pages * sysconf(_SC_PAGE_SIZE)));
}

}  // namespace

Bytes LimitedMemory(Bytes ram, const std::string& root) {
  std::int64_t bytes = ram.value();
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    // "0::/a/b" (v2) or "4:memory:/a/b" (v1).
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) {
      continue;
    }
    if (parts[0] == "0" && parts[1].empty()) {
      bytes = SmallestLimit(root + "/sys/fs/cgroup", parts[2], "memory.max", bytes);
    } else if (parts[1] == "memory") {
      bytes =
          SmallestLimit(root + "/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", bytes);
    }
  }
  return Bytes(bytes);
}

Bytes MachineMemory() {
  const Bytes ram(std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE));
  return LimitedMemory(ram, "");
}

MemoryShare ShareOfMemory(int ranks_of_machine) {
  return ShareOf(MachineMemory(), ranks_of_machine, AddressSpaceLeft());
}

MemoryShare ShareOf(Bytes memory, int ranks, std::optional<Bytes> address_space_left) {
  ranks = std::max(ranks, 1);
  const Bytes part(memory.value() / ranks);
  if (address_space_left.has_value() && *address_space_left < part) {
    return {*address_space_left, "that ulimit -v leaves"};
  }
  if (ranks == 1) {
    return {part, "of memory"};
  }
  return {part, absl::StrCat("of ", GibText(memory), " for ", ranks, " ranks")};
}

std::string GibText(Bytes bytes) { return absl::StrFormat("%.4g GiB", ToGib(bytes)); }

}  // namespace optimus::executor
