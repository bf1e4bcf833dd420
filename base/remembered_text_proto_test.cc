#include "base/remembered_text_proto.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing_folder.h"
#include "google/protobuf/wrappers.pb.h"

namespace optimus {
namespace {

using google::protobuf::Int32Value;

absl::Status NotNegative(const Int32Value& value) {
  return value.value() < 0 ? absl::InvalidArgumentError("negative") : absl::OkStatus();
}

TEST(RememberedTextProtoTest, FollowsTheFile) {
  const TestingFolder folder;
  const std::string path = (folder.path() / "a.textproto").string();
  std::ofstream(path) << "value: 1";
  EXPECT_EQ(ReadRemembered<Int32Value>(path, &NotNegative)->value(), 1);
  EXPECT_EQ(ReadRemembered<Int32Value>(path, &NotNegative)->value(), 1);
  std::ofstream(path) << "value: 2";
  EXPECT_EQ(ReadRemembered<Int32Value>(path, &NotNegative)->value(), 2);
  std::ofstream(path) << "value: -2";
  EXPECT_EQ(ReadRemembered<Int32Value>(path, &NotNegative).status(),
            absl::InvalidArgumentError(path + ": negative"));
  std::ofstream(path) << "value: x";
  EXPECT_FALSE(ReadRemembered<Int32Value>(path, &NotNegative).ok());
  std::ofstream(path) << "value: 2";
  EXPECT_EQ(ReadRemembered<Int32Value>(path, &NotNegative)->value(), 2);
  std::filesystem::remove(path);
  EXPECT_TRUE(absl::IsNotFound(ReadRemembered<Int32Value>(path, &NotNegative).status()));
}

}  // namespace
}  // namespace optimus
