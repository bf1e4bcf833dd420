#include "executor/mpi/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace optimus::executor {
namespace {

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

// Sums of denormal numbers would be slow, so no float is left as it comes.
BufferPool::Buffer Allocate(std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  const std::size_t page = bytes > 16 * kPage ? kHugePage : kPage;
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* const memory = std::aligned_alloc(page, whole);
  if (memory == nullptr) {
    throw std::bad_alloc();  // as any container of this process would
  }
  if (page == kHugePage) {
    (void)madvise(memory, whole, MADV_HUGEPAGE);
  }
  const auto capacity = static_cast<std::int64_t>(whole / sizeof(float));
  BufferPool::Buffer buffer;
  buffer.memory.reset(static_cast<float*>(memory));
  buffer.capacity = capacity;
  std::fill_n(buffer.data(), capacity, 1.0F);
  return buffer;
}

}  // namespace

void BufferPool::Free::operator()(float* memory) const { std::free(memory); }

BufferPool::Buffer BufferPool::Take(std::int64_t floats) {
  if (floats == 0) {
    return {};
  }
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->capacity >= floats && (best == free_.end() || it->capacity < best->capacity)) best = it;
  }
  if (best == free_.end()) {
    return Allocate(floats);
  }
  Buffer taken = std::move(*best);
  free_.erase(best);
  return taken;
}

void BufferPool::Return(Buffer buffer) {
  if (buffer.memory != nullptr) free_.push_back(std::move(buffer));
}

}  // namespace optimus::executor
