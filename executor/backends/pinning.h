#pragma once
// Which CPU a rank computes on.

#include <map>
#include <vector>

namespace optimus::executor {

// The CPUs that this process may run on, ascending; empty where the system does not say.
std::vector<int> AllowedCpus();
// The lowest CPU of the core that each is a hardware thread of.
std::map<int, int> CoresOf(const std::vector<int>& cpus);

// For the rank `local_rank` of its node: the local_rank-th of the allowed CPUs, counted round and
// round, the first threads of all cores before the second ones. Where a launcher has bound the rank
// to one core, its first allowed CPU. -1 where nothing is allowed. `cores` as CoresOf gives.
int ChooseCpu(const std::vector<int>& allowed, const std::map<int, int>& cores, int local_rank);

// Whether each rank of the node can have a CPU to itself. Where a launcher has bound the rank to
// one CPU, it is taken to have done so for all of them.
bool HasOwnCpu(const std::vector<int>& allowed, int local_ranks);

}  // namespace optimus::executor
