#include "executor/torchrun/environment.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
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
                HasSubstr(std::string(name) + " is not set, but "));
    EXPECT_THAT(std::string(environment.status().message()), HasSubstr("; hint: "));
  }
}

TEST(TorchrunEnvironment, AllThatIsMissingIsNamed) {
  const auto environment = ReadTorchrunEnvironment(Reader({{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  EXPECT_THAT(std::string(environment.status().message()),
              StartsWith("rank 1: LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are "
                         "not set, but RANK and WORLD_SIZE are; hint: "));
  Variables variables = Complete();
  variables["MASTER_ADDR"] = "";  // as good as not set
  EXPECT_THAT(std::string(ReadTorchrunEnvironment(Reader(variables)).status().message()),
              StartsWith("rank 5: MASTER_ADDR is not set, but RANK, WORLD_SIZE, "));
}

TEST(TorchrunEnvironment, ARankThatCannotBeIsToldWhy) {
  Variables variables = Complete();
  variables["RANK"] = "9";
  EXPECT_EQ(ReadTorchrunEnvironment(Reader(variables)).status().message(),
            "rank 9: RANK is '9'; must be a whole number from 0 to 7 by WORLD_SIZE 8");
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

TEST(TorchrunEnvironment, IsMeantWhereARankIsOneOfSeveral) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}) {
    Variables variables = Complete();
    variables.erase(name);
    EXPECT_TRUE(MeantAsTorchrun(Reader(variables))) << name;
  }
  EXPECT_TRUE(MeantAsTorchrun(Reader({{"RANK", "0"}, {"WORLD_SIZE", "2"}})));
  EXPECT_TRUE(MeantAsTorchrun(Reader({{"LOCAL_RANK", "0"}, {"MASTER_ADDR", "node0"}})));
  for (const Variables& variables : std::vector<Variables>{
           {},
           {{"RANK", "3"}},
           {{"WORLD_SIZE", "8"}},
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
           {{"RANK", "0"}, {"WORLD_SIZE", "many"}},
           // A batch script, for the ranks that it starts.
           {{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}}) {
    EXPECT_FALSE(MeantAsTorchrun(Reader(variables)));
  }
}

}  // namespace
}  // namespace optimus::executor
