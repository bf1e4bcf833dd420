#pragma once
// What the executor wants to know of the CPU, and how a thread is set up to compute on it.

#include <string>

#include "base/units.h"

namespace optimus::executor {

std::string CpuModel();  // "AMD EPYC 9654"; "unknown CPU" where the system does not say
Bytes LastLevelCache();  // of one core; 32 MiB where the system does not say

// Numbers too small for a normal f32 are taken as 0 on the calling thread: computing with them
// costs a hundred times as much on some CPUs, and times must not depend on values.
void FlushDenormals();

}  // namespace optimus::executor
