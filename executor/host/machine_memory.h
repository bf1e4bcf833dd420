#pragma once
// How much memory this process may use.

#include <string>

#include "base/units.h"

namespace optimus::executor {

// RAM of the machine, or the limit of the control group (v1 or v2) that this process is in, or of
// one above it, where that is smaller.
Bytes MachineMemory();

// The same from files under another root: "proc/self/cgroup" and "sys/fs/cgroup/...".
Bytes LimitedMemory(Bytes ram, const std::string& root);

}  // namespace optimus::executor
