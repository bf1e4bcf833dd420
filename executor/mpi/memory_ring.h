#pragma once
// Memory for transfers of bytes that mean nothing. Each takes the next piece of a region that is
// larger than a core's share of the caches, round and round. If the same bytes were sent again and
// again, the receiver's core would find them in its own cache, and a transfer would take a quarter
// of the time that it takes for data which somebody has just computed.

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace optimus::executor {

class MemoryRing {
 public:
  MemoryRing() = default;
  ~MemoryRing();
  MemoryRing(const MemoryRing&) = delete;
  MemoryRing& operator=(const MemoryRing&) = delete;

  // Makes sure that pieces of so many floats can be had, and takes no more than `most`: touches all
  // of the memory, which takes its time, so not within a step. False: there is not that much.
  bool Reserve(std::int64_t floats, Bytes most);
  // Starts at a page; all floats are normal numbers before they are written. Null where so much was
  // not reserved. Pieces lie on each other where more than the region is taken while they are out.
  float* Next(std::int64_t floats);

  static constexpr std::int64_t kLeastBytes = std::int64_t{128} << 20;

 private:
  struct Region {
    float* data = nullptr;
    std::int64_t bytes = 0;
  };
  // The last one is used. Those before it were too small, and may still be read or written.
  std::vector<Region> regions_;
  std::int64_t next_ = 0;  // byte
};

}  // namespace optimus::executor
