#include "executor/mpi/memory_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace optimus::executor {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t PieceBytes(std::int64_t floats) {
  const std::int64_t bytes = floats * static_cast<std::int64_t>(sizeof(float));
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

MemoryRing::~MemoryRing() {
  for (const Region& region : regions_) {
    munmap(region.data, static_cast<std::size_t>(region.bytes));
  }
}

// Eight pieces fit; a power of two, so that few sizes are tried; fewer pieces where memory is
// short. Huge pages: the kernel copies between processes by the page, and takes half the time with
// them.
bool MemoryRing::Reserve(std::int64_t floats, Bytes most) {
  const std::int64_t limit = most.value() / kPage * kPage;
  if (floats > limit / static_cast<std::int64_t>(sizeof(float))) {
    return false;
  }
  const std::int64_t piece = PieceBytes(floats);
  const auto wanted = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(kLeastBytes, 8 * piece))));
  const std::int64_t bytes = std::min(wanted, limit);
  if (!regions_.empty() && regions_.back().bytes >= bytes) {
    return true;
  }
  void* const memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  (void)madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  auto* const data = static_cast<float*>(memory);
  // Sums of denormal numbers would be slow.
  std::fill_n(data, bytes / static_cast<std::int64_t>(sizeof(float)), 1.0F);
  regions_.push_back({data, bytes});
  next_ = 0;
  return true;
}

float* MemoryRing::Next(std::int64_t floats) {
  const std::int64_t piece = PieceBytes(floats);
  if (regions_.empty() || piece > regions_.back().bytes) {
    return nullptr;
  }
  const Region& region = regions_.back();
  if (next_ + piece > region.bytes) {
    next_ = 0;
  }
  float* const place = region.data + next_ / static_cast<std::int64_t>(sizeof(float));
  next_ += piece;
  return place;
}

}  // namespace optimus::executor
