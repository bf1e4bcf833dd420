#include "executor/cpu/stream_kernel.h"

#include <cstdint>
#include <cstring>

namespace optimus::executor {
namespace {

// Wide enough for every instruction set; the compiler splits it where registers are smaller.
typedef float Lanes __attribute__((vector_size(64)));

}  // namespace

StreamTraffic TrafficOf(Bytes bytes) {
  return {Bytes(bytes.value() - bytes.value() / 2), Bytes(bytes.value() / 2)};
}

StreamTraffic StreamKernel(const std::byte* from, std::byte* to, Bytes bytes) {
  const StreamTraffic traffic = TrafficOf(bytes);
  const std::int64_t end = traffic.written.value();
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(sizeof(Lanes)) <= end; i += sizeof(Lanes)) {
    Lanes lanes;
    std::memcpy(&lanes, from + i, sizeof(Lanes));
    lanes *= 0.5F;
    std::memcpy(to + i, &lanes, sizeof(Lanes));
  }
  for (; i + 4 <= end; i += 4) {
    float value = 0;
    std::memcpy(&value, from + i, 4);
    value *= 0.5F;
    std::memcpy(to + i, &value, 4);
  }
  for (; i < end; ++i) to[i] = from[i];
  if (traffic.read > traffic.written) {
    [[maybe_unused]] const volatile std::byte odd = from[end];
  }
  return traffic;
}

}  // namespace optimus::executor
