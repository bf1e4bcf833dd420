#include "base/hash.h"

#include <gtest/gtest.h>

namespace optimus {
namespace {

// From the reference code of Fowler, Noll and Vo.
TEST(HashTest, KnownValues) {
  EXPECT_EQ(ContentHash(""), "cbf29ce484222325");
  EXPECT_EQ(ContentHash("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(ContentHash("foobar"), "85944171f73967e8");
}

}  // namespace
}  // namespace optimus
