#include "executor/backends/pinning.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optimus::executor {

std::vector<int> AllowedCpus() {
  constexpr int kMostCpus = 8192;
  const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(kMostCpus), free_set);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  std::vector<int> allowed;
  if (set == nullptr || sched_getaffinity(0, bytes, set.get()) != 0) {
    return allowed;
  }
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) allowed.push_back(cpu);
  }
  return allowed;
}

// The system's list "0,64" or "0-1" begins with the lowest.
std::map<int, int> CoresOf(const std::vector<int>& cpus) {
  std::map<int, int> cores;
  for (const int cpu : cpus) {
    std::ifstream siblings(
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    int first = cpu;
    cores[cpu] = siblings >> first ? first : cpu;
  }
  return cores;
}

int ChooseCpu(const std::vector<int>& allowed, const std::map<int, int>& cores, int local_rank) {
  if (allowed.empty()) {
    return -1;
  }
  std::map<int, int> threads;              // of each core so far
  std::vector<std::pair<int, int>> order;  // thread of its core, CPU
  order.reserve(allowed.size());
  for (const int cpu : allowed) {
    order.emplace_back(threads[cores.at(cpu)]++, cpu);
  }
  std::sort(order.begin(), order.end());
  const bool bound = threads.size() == 1;
  const std::size_t index = bound ? 0 : static_cast<std::size_t>(local_rank) % order.size();
  return order[index].second;
}

bool HasOwnCpu(const std::vector<int>& allowed, int local_ranks) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const long cpus = allowed.size() == 1 ? online : static_cast<long>(allowed.size());
  return local_ranks <= cpus;
}

}  // namespace optimus::executor
