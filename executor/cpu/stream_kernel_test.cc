#include "executor/cpu/stream_kernel.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

float FloatAt(const std::vector<std::byte>& bytes, std::int64_t i) {
  float value = 0;
  std::memcpy(&value, bytes.data() + i, 4);
  return value;
}

// Every byte of the half is written and none beyond it, whatever rest there is.
TEST(StreamKernel, WritesHalfOfTheBytes) {
  constexpr std::byte kGuard{0xab};
  for (const std::int64_t bytes : {0, 1, 2, 7, 8, 9, 127, 128, 129, 1000, 4098, 65536 + 6}) {
    const std::int64_t half = bytes / 2;
    std::vector<std::byte> from(half + 64), to(half + 64, kGuard);
    for (std::int64_t i = 0; i + 4 <= half + 64; i += 4) {
      const auto value = static_cast<float>(i + 1);
      std::memcpy(from.data() + i, &value, 4);
    }
    const StreamTraffic traffic = StreamKernel(from.data(), to.data(), Bytes(bytes));
    EXPECT_EQ(traffic.read + traffic.written, Bytes(bytes));
    EXPECT_EQ(traffic.written, Bytes(half));
    for (std::int64_t i = 0; i + 4 <= half; i += 4) {
      ASSERT_EQ(FloatAt(to, i), FloatAt(from, i) / 2) << bytes << " " << i;
    }
    for (std::int64_t i = half / 4 * 4; i < half; ++i) ASSERT_EQ(to[i], from[i]) << bytes;
    for (std::int64_t i = half; i < half + 64; ++i) ASSERT_EQ(to[i], kGuard) << bytes;
  }
}

}  // namespace
}  // namespace optimus::executor
