#include "traces/kineto/json_text.h"

#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "simdjson.h"

namespace optimus::traces {
namespace {

constexpr const char* kReplacement = "\\ufffd";

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
  }
}

}  // namespace

void AppendQuoted(std::string& out, absl::string_view text) {
  const bool valid = simdjson::validate_utf8(text.data(), text.size());
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\' || byte == 0x7f) {
      AppendEscaped(out, c);
    } else if (byte >= 0x80 && !valid) {
      out += kReplacement;
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendMicroseconds(std::string& out, FileTime time) {
  absl::StrAppendFormat(&out, "%d.%03d%03d", time.ns / 1000, time.ns % 1000, time.ps);
}

void AppendDouble(std::string& out, double value) {
  constexpr std::size_t kLongest = 32;
  char text[kLongest];
  const std::to_chars_result result = std::to_chars(text, text + kLongest, value);
  out.append(text, result.ec == std::errc() ? result.ptr : text);
}

}  // namespace optimus::traces
