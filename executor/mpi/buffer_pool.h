#pragma once
// Memory that transfers move where there is no real data. It is kept and used again, so that after
// the warm-up no page is touched for the first time; large buffers lie on huge pages, which halves
// the time of the kernel's copy between two processes.

#include <cstdint>
#include <memory>
#include <vector>

namespace optimus::executor {

class BufferPool {
 public:
  struct Free {
    void operator()(float* memory) const;
  };
  struct Buffer {
    std::unique_ptr<float, Free> memory;  // every float is a normal number
    std::int64_t capacity = 0;            // in floats
    float* data() const { return memory.get(); }
  };

  // The smallest free buffer that is large enough (the first of equals), or a new one. No floats:
  // an empty buffer.
  Buffer Take(std::int64_t floats);
  // A buffer that was moved from, or is empty, is nothing.
  void Return(Buffer buffer);

 private:
  std::vector<Buffer> free_;
};

}  // namespace optimus::executor
