#include "base/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

namespace optimus {
namespace {

// More than a pipe holds: several calls of the system are needed.
TEST(WriteAllTest, AlsoWhatDoesNotFitAtOnce) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const std::string bytes(1 << 20, 'x');
  std::string got;
  std::thread reader([&] {
    std::array<char, 4096> piece{};
    ssize_t size = 0;
    while ((size = read(pipe_ends[0], piece.data(), piece.size())) > 0) {
      got.append(piece.data(), static_cast<std::size_t>(size));
    }
  });
  EXPECT_TRUE(WriteAll(pipe_ends[1], bytes));
  close(pipe_ends[1]);
  reader.join();
  close(pipe_ends[0]);
  EXPECT_EQ(got, bytes);
}

TEST(WriteAllTest, SaysWhatTheSystemSaid) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  errno = 0;
  EXPECT_FALSE(WriteAll(full, "x"));
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_TRUE(WriteAll(full, ""));
  close(full);
}

}  // namespace
}  // namespace optimus
