#pragma once
// Fields of an object read with simdjson: a value of another type than expected is "not said", text
// that is no JSON is an error.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "simdjson.h"

namespace optimus::traces {

using JsonValue = simdjson::ondemand::value;

#define OPTIMUS_JSON(expr)                                                               \
  do {                                                                                   \
    if (const simdjson::error_code json_error = (expr); json_error != simdjson::SUCCESS) \
      return json_error;                                                                 \
  } while (false)

// Text of a key up to its closing quote; empty: longer than any that is known. Keys with escapes
// are none that is known.
inline absl::string_view KeyText(simdjson::ondemand::raw_json_string key) {
  constexpr std::size_t kLongestKey = 40;
  const auto* end = static_cast<const char*>(std::memchr(key.raw(), '"', kLongestKey));
  return end == nullptr ? absl::string_view()
                        : absl::string_view(key.raw(), static_cast<std::size_t>(end - key.raw()));
}

inline bool IsOtherType(simdjson::error_code error) {
  return error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR ||
         error == simdjson::NUMBER_OUT_OF_RANGE;
}

inline simdjson::error_code ReadInteger(JsonValue value, std::int64_t& out) {
  std::int64_t read = 0;
  const simdjson::error_code error = value.get_int64().get(read);
  if (error == simdjson::SUCCESS) out = read;
  return IsOtherType(error) ? simdjson::SUCCESS : error;
}

inline simdjson::error_code ReadText(JsonValue value, absl::string_view& out) {
  std::string_view read;
  const simdjson::error_code error = value.get_string().get(read);
  if (error == simdjson::SUCCESS) out = absl::string_view(read.data(), read.size());
  return IsOtherType(error) ? simdjson::SUCCESS : error;
}

// A number as it is written.
inline simdjson::error_code ReadNumberText(JsonValue value, absl::string_view& out) {
  const std::string_view raw = value.raw_json_token();
  out = absl::StripTrailingAsciiWhitespace(absl::string_view(raw.data(), raw.size()));
  return simdjson::SUCCESS;
}

}  // namespace optimus::traces
