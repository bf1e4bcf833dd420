#pragma once
// A memory-bound kernel on the CPU: reads a half of its bytes and writes the other half.

#include <cstddef>

#include "base/units.h"

namespace optimus::executor {

struct StreamTraffic {
  Bytes read, written;
};

// What StreamKernel moves for a kernel of `bytes`: half of them each way, an odd one is read.
StreamTraffic TrafficOf(Bytes bytes);

// to[i] = from[i] / 2 over `written` bytes taken as f32 (a rest of less than four bytes is copied),
// with ordinary stores: as in any elementwise kernel, a CPU also fetches the lines that it writes,
// which nobody counts. Both aligned to 64; they do not overlap. Reads and writes what it returns.
StreamTraffic StreamKernel(const std::byte* from, std::byte* to, Bytes bytes);

}  // namespace optimus::executor
