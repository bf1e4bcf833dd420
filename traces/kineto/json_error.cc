// Where a batch of events is no JSON: simdjson says that it is not, its first pass not where.
// Events are tried one by one.

#include <string>

#include "absl/strings/str_cat.h"
#include "simdjson.h"
#include "traces/kineto/event.h"

namespace optimus::traces {
namespace {

// Position behind the object that begins at `from`; npos: it has no end.
std::size_t ObjectEnd(absl::string_view text, std::size_t from) {
  std::int64_t depth = 0;
  bool in_string = false;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return absl::string_view::npos;
}

bool IsBetweenEvents(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ','; }

simdjson::error_code Check(absl::string_view event) {
  simdjson::dom::parser parser;
  return parser.parse(event.data(), event.size()).error();
}

}  // namespace

absl::Status JsonError(absl::string_view batch, std::int64_t offset, simdjson::error_code error) {
  std::size_t at = 0;
  std::size_t end = 1;  // behind '['
  for (int commas = 1;; commas = 0) {
    for (at = end; at < batch.size() && IsBetweenEvents(batch[at]); ++at)
      commas += batch[at] == ',';
    if (at >= batch.size() || batch[at] != '{' || commas != 1) break;
    end = ObjectEnd(batch, at);
    if (end == absl::string_view::npos) break;
    const simdjson::error_code found = Check(batch.substr(at, end - at));
    if (found != simdjson::SUCCESS) {
      error = found;
      break;
    }
  }
  if (at >= batch.size()) at = 0;
  return absl::InvalidArgumentError(absl::StrCat("byte ", offset + static_cast<std::int64_t>(at),
                                                 ": the event here is no JSON (",
                                                 simdjson::error_message(error), ")"));
}

}  // namespace optimus::traces
