#include "traces/kineto/trace_header.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "simdjson.h"
#include "traces/kineto/json_fields.h"

namespace optimus::traces {
namespace {

using simdjson::error_code;
using simdjson::SUCCESS;
namespace dom = simdjson::dom;

constexpr std::size_t kLongestQuoted = 60;

std::int32_t RankOrNone(std::int64_t value) {
  return value < 0 || value > std::numeric_limits<std::int32_t>::max()
             ? -1
             : static_cast<std::int32_t>(value);
}

std::string TextOf(const dom::element& object, const char* key) {
  std::string_view text;
  if (object[key].get_string().get(text) == SUCCESS) return std::string(text);
  std::int64_t number = 0;
  return object[key].get_int64().get(number) == SUCCESS ? absl::StrCat(number) : std::string();
}

std::int32_t NumberOf(const dom::element& object, const char* key) {
  std::int64_t number = -1;
  if (object[key].get_int64().get(number) != SUCCESS) return -1;
  return RankOrNone(number);
}

// Empty where one of them is no rank.
std::vector<std::int32_t> RanksOf(const dom::element& object) {
  dom::array array;
  std::vector<std::int32_t> ranks;
  if (object["ranks"].get_array().get(array) != SUCCESS) return ranks;
  for (const dom::element element : array) {
    std::int64_t number = -1;
    const bool read = element.get_int64().get(number) == SUCCESS;
    if (!read || RankOrNone(number) < 0) return {};
    ranks.push_back(RankOrNone(number));
  }
  return ranks;
}

void ReadGroups(const dom::element& info, TraceHeader& header) {
  dom::array array;
  if (info["pg_config"].get_array().get(array) != SUCCESS) return;
  for (const dom::element element : array) {
    if (!element.is_object()) continue;
    CommunicatorGroup group;
    group.name = TextOf(element, "pg_name");
    group.description = TextOf(element, "pg_desc");
    group.ranks = RanksOf(element);
    group.size = std::max(NumberOf(element, "pg_size"), 0);
    if (!group.name.empty()) header.groups.push_back(std::move(group));
  }
}

void ReadDistributedInfo(const dom::element& info, TraceHeader& header) {
  if (!info.is_object()) return;
  if (const std::int32_t rank = NumberOf(info, "rank"); rank >= 0) header.rank = rank;
  header.world = std::max(NumberOf(info, "world_size"), 0);
  ReadGroups(info, header);
}

absl::Status Refuse(absl::string_view key, const std::string& json, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, " ", json.substr(0, kLongestQuoted), " ", why));
}

}  // namespace

bool IsHeaderKey(absl::string_view key) {
  static constexpr std::array<absl::string_view, 5> kKeys = {
      "schemaVersion", "schema", "distributedInfo", "baseTimeNanoseconds", "optimus"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

absl::Status ReadHeaderValue(absl::string_view key, const std::string& json, TraceHeader& header) {
  dom::parser parser;
  dom::element value;
  const error_code error = parser.parse(json).get(value);
  if (error != SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", key, "\" is no JSON (", simdjson::error_message(error), ")"));
  }
  if (key == "schemaVersion" && json != "1") {
    return Refuse(key, json, "is not known; hint: known is schemaVersion 1 of Kineto");
  }
  if (key == "schema") {
    return Refuse(key, json,
                  "is that of an execution trace, not of a Kineto trace; hint: convert both to a "
                  "Chakra trace, or give the profiler's trace");
  }
  if (key == "distributedInfo") ReadDistributedInfo(value, header);
  if (key == "baseTimeNanoseconds" && value.get_int64().get(header.base_ns) != SUCCESS) {
    return Refuse(key, json, "is no number of nanoseconds");
  }
  if (key == "optimus") header.ours = json;
  return absl::OkStatus();
}

}  // namespace optimus::traces
