#include "traces/chakra/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::traces::chakra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ChakraGroups, Parsed) {
  const auto groups = ParseGroups(R"({"1": [2, 0], "12": [1]})", "g.json");
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_THAT(groups->at("1").ranks, ElementsAre(0, 2));
  EXPECT_THAT(groups->at("12").ranks, ElementsAre(1));
  EXPECT_TRUE(ParseGroups("{}", "g.json")->empty());
}

TEST(ChakraGroups, DamageIsNamed) {
  const auto error = [](const char* json) {
    return std::string(ParseGroups(json, "g.json").status().message());
  };
  EXPECT_THAT(error("{\"1\": [0"), HasSubstr("g.json: no JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(error(R"({"1": [0, 0]})"), HasSubstr("group \"1\": not a list of different ranks"));
  EXPECT_THAT(error(R"({"1": [-1]})"), HasSubstr("group \"1\""));
  EXPECT_THAT(error(R"({"1": []})"), HasSubstr("group \"1\""));
  EXPECT_THAT(error(R"({"1": ["0"]})"), HasSubstr("group \"1\""));
  EXPECT_THAT(error(R"({"1": [4294967296]})"), HasSubstr("group \"1\""));
  EXPECT_THAT(error(R"({"1": [0], "1": [1]})"), HasSubstr("group \"1\" twice"));
}

TEST(ChakraGroups, ProcessGroups) {
  GroupTable groups;
  EXPECT_TRUE(AddProcessGroups(R"(['[{"pg_name": "9", "ranks": {"4": 0, "6": 1}}]'])", groups));
  EXPECT_THAT(groups.at("9").ranks, ElementsAre(4, 6));
  // Python writes a string with both quotes like this.
  EXPECT_TRUE(
      AddProcessGroups(R"(['[{"pg_name": "8", "pg_desc": "a\'s", "ranks": [1]}]'])", groups));
  EXPECT_EQ(groups.at("8").description, "a's");
  EXPECT_FALSE(AddProcessGroups("", groups));
  EXPECT_FALSE(AddProcessGroups("[]", groups));
  EXPECT_FALSE(AddProcessGroups("['[{\"pg_name\": 3}]']", groups));
  EXPECT_FALSE(AddProcessGroups(R"(['[{"pg_name": "7", "ranks": [1, 1]}]'])", groups));
}

}  // namespace
}  // namespace optimus::traces::chakra
