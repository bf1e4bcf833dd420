#include "executor/torchrun/environment.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

EnvironmentReader Reader(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Variables Complete() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"}};
}

TEST(TorchrunEnvironment, ReadsWhatTorchrunSets) {
  const auto environment = ReadTorchrunEnvironment(Reader(Complete()));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 5);
  EXPECT_EQ(environment->size, 8);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->local_size, 4);
  EXPECT_EQ(environment->address, "node0");
  EXPECT_EQ(environment->port, 29501);  // torchrun holds 29500
  EXPECT_EQ(environment->job, "");
}

TEST(TorchrunEnvironment, ItsOwnPortGoesFirst) {
  Variables variables = Complete();
  variables["OPTIMUS_PORT"] = "4000";
  variables["TORCHELASTIC_RUN_ID"] = "job 7";
  const auto environment = ReadTorchrunEnvironment(Reader(variables));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->port, 4000);
  EXPECT_EQ(environment->job, "job 7");
}

TEST(TorchrunEnvironment, OneRankNeedsNoLocalRank) {
  const auto environment = ReadTorchrunEnvironment(Reader({{"RANK", "0"},
                                                           {"WORLD_SIZE", "1"},
                                                           {"MASTER_ADDR", "localhost"},
                                                           {"MASTER_PORT", "29500"}}));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->local_size, 1);
}

TEST(TorchrunEnvironment, ErrorsNameTheVariable) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables variables = Complete();
    variables.erase(name);
    const auto environment = ReadTorchrunEnvironment(Reader(variables));
    EXPECT_EQ(environment.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(environment.status().message()),
                HasSubstr(std::string(name) + " is not set"));
  }
}

TEST(TorchrunEnvironment, RefusesNumbersThatCannotBe) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"RANK", "8"},
                                                        {"RANK", "-1"},
                                                        {"RANK", "two"},
                                                        {"WORLD_SIZE", "0"},
                                                        {"LOCAL_RANK", "4"},
                                                        {"LOCAL_WORLD_SIZE", "9"},
                                                        {"MASTER_PORT", "65535"},
                                                        {"OPTIMUS_PORT", "0"}}) {
    Variables variables = Complete();
    variables[name] = value;
    const auto environment = ReadTorchrunEnvironment(Reader(variables));
    EXPECT_THAT(std::string(environment.status().message()),
                HasSubstr(absl::StrCat(name, " is '", value, "'")));
  }
}

TEST(TorchrunEnvironment, IsRecognised) {
  EXPECT_TRUE(UnderTorchrun(Reader(Complete())));
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    Variables variables = Complete();
    variables.erase(name);
    EXPECT_FALSE(UnderTorchrun(Reader(variables))) << name;
  }
}

}  // namespace
}  // namespace optimus::executor
