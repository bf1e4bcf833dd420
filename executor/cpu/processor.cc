#include "executor/cpu/processor.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "absl/strings/str_cat.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace optimus::executor {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

// What the kernel says, not sysconf: that takes the whole machine's for one core's on some virtual
// machines.
Bytes LastLevelCache() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/size"));
    std::int64_t kibibytes = 0;
    char unit = 0;
    if (file >> kibibytes >> unit && unit == 'K') largest = std::max(largest, kibibytes << 10);
  }
  return Bytes(largest > 0 ? largest : 32 << 20);
}

void FlushDenormals() {
#if defined(__SSE__)
  constexpr unsigned kFlushToZero = 1U << 15;
  constexpr unsigned kDenormalsAreZero = 1U << 6;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control |= std::uint64_t{1} << 24;
  asm volatile("msr fpcr, %0" : : "r"(control));
#endif
}

}  // namespace optimus::executor
