#include "traces/chakra/groups.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

namespace dom = simdjson::dom;
constexpr std::int64_t kLargestRank = std::numeric_limits<std::int32_t>::max() - 1;

// Of a JSON list of ranks, ascending. False where it is none, or has one twice.
bool ReadRanks(const dom::array& list, std::vector<std::int32_t>& ranks) {
  ranks.clear();
  for (const dom::element& element : list) {
    std::int64_t rank = 0;
    if (element.get(rank) != simdjson::SUCCESS || rank < 0 || rank > kLargestRank) return false;
    ranks.push_back(static_cast<std::int32_t>(rank));
  }
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

// Some versions of PyTorch write a group's ranks as {"global rank": rank in the group}.
bool ReadRanks(const dom::object& map, std::vector<std::int32_t>& ranks) {
  ranks.clear();
  for (const dom::key_value_pair& pair : map) {
    std::int32_t rank = 0;
    if (!absl::SimpleAtoi(absl::string_view(pair.key.data(), pair.key.size()), &rank) || rank < 0 ||
        rank > kLargestRank) {
      return false;
    }
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

std::string TextOf(const dom::element& object, const char* key) {
  std::string_view text;
  std::int64_t number = 0;
  if (object[key].get(text) == simdjson::SUCCESS) return std::string(text);
  if (object[key].get(number) == simdjson::SUCCESS) return absl::StrCat(number);
  return "";
}

bool AddProcessGroup(const dom::element& object, GroupTable& groups) {
  CommunicatorGroup group;
  std::string_view name;
  if (object["pg_name"].get(name) != simdjson::SUCCESS) return false;
  group.name = std::string(name);
  group.description = TextOf(object, "pg_desc");
  dom::array list;
  dom::object map;
  if (object["ranks"].get(list) == simdjson::SUCCESS) {
    if (!ReadRanks(list, group.ranks)) return false;
  } else if (object["ranks"].get(map) == simdjson::SUCCESS) {
    if (!ReadRanks(map, group.ranks)) return false;
  }
  std::int64_t size = 0;
  if (object["pg_size"].get(size) == simdjson::SUCCESS && size > 0 && size <= kLargestRank) {
    group.size = static_cast<std::int32_t>(size);
  }
  CommunicatorGroup& known = groups[group.name];
  if (known.name.empty() || known.ranks.empty()) known = std::move(group);
  return true;
}

// The string of a Python list of one string, without its quotes and backslashes.
std::string Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]") || text.size() < 2 ||
      (text[0] != '\'' && text[0] != '"')) {
    return "";
  }
  text = text.substr(1, text.size() - 2);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain.push_back(text[i]);
  }
  return plain;
}

absl::Status GroupsError(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": ", what, "; hint: groups are ranks by name, {\"1\": [0, 1], \"2\": [2, 3]}"));
}

}  // namespace

bool IsWorldName(absl::string_view name) { return name.empty() || name == "0"; }

absl::StatusOr<GroupTable> ParseGroups(absl::string_view json, const std::string& name) {
  dom::parser parser;
  const simdjson::padded_string padded(json.data(), json.size());
  dom::element root;
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS) {
    return GroupsError(name, absl::StrCat("no JSON (", simdjson::error_message(error), ")"));
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return GroupsError(name, "no JSON object");
  GroupTable groups;
  for (const dom::key_value_pair& pair : object) {
    CommunicatorGroup group;
    group.name = std::string(pair.key);
    dom::array list;
    if (pair.value.get(list) != simdjson::SUCCESS || !ReadRanks(list, group.ranks) ||
        group.ranks.empty()) {
      return GroupsError(name, absl::StrCat("group \"", absl::CHexEscape(group.name),
                                            "\": not a list of different ranks"));
    }
    const bool is_new = groups.try_emplace(group.name, group).second;
    if (!is_new) {
      return GroupsError(name, absl::StrCat("group \"", absl::CHexEscape(group.name), "\" twice"));
    }
  }
  return groups;
}

bool AddProcessGroups(absl::string_view inputs, GroupTable& groups) {
  const std::string plain = Unquoted(inputs);
  dom::parser parser;
  dom::array list;
  if (plain.empty() || parser.parse(plain).get(list) != simdjson::SUCCESS) return false;
  bool all = true;
  for (const dom::element& element : list) all = AddProcessGroup(element, groups) && all;
  return all;
}

}  // namespace optimus::traces::chakra
