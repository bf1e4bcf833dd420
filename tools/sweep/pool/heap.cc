#include "tools/sweep/pool/heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace optimus::sweep {
namespace {

constexpr int kMib = 1 << 20;
constexpr int kFirst = 64 * kMib;          // most jobs need less
constexpr int kLargestOnHeap = 32 * kMib;  // the most that mallopt takes; larger ones are mapped
constexpr int kNeverTrim = 1024 * kMib;
constexpr std::uintptr_t kLargePage = std::uintptr_t{2} * kMib;

}  // namespace

void PrepareHeap() {
  mallopt(M_MMAP_THRESHOLD, kLargestOnHeap);
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
  const auto begin = reinterpret_cast<std::uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, kFirst);
  // More than is left of the heap: it grows, once. Volatile: else the compiler leaves both out.
  void* volatile block = std::malloc(kLargestOnHeap - kMib);
  std::free(block);
  mallopt(M_TOP_PAD, kMib);
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  if (end <= first) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address from sbrk
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace optimus::sweep
