#pragma once
// How much memory this process may use.

#include <optional>
#include <string>

#include "base/units.h"

namespace optimus::executor {

// RAM of the machine, or the limit of the control group (v1 or v2) that this process is in, or of
// one above it, where that is smaller.
Bytes MachineMemory();

// The same from files under another root: "proc/self/cgroup" and "sys/fs/cgroup/...".
Bytes LimitedMemory(Bytes ram, const std::string& root);

// What one rank may fill, so that all ranks of its machine can.
struct MemoryShare {
  Bytes bytes;
  std::string text;  // "of memory", "of 23.5 GiB for 2 ranks", "that ulimit -v leaves"
};
// Its part of MachineMemory, or what `ulimit -v` leaves this process now where that is less.
MemoryShare ShareOfMemory(int ranks_of_machine);
MemoryShare ShareOf(Bytes memory, int ranks, std::optional<Bytes> address_space_left);

std::string GibText(Bytes bytes);  // "11.75 GiB"

}  // namespace optimus::executor
