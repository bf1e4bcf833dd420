#include "executor/watch/notes.h"

#include <array>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace optimus::executor {
namespace {

constexpr std::array<const char*, 6> kWords = {"hang",   "reporting", "ask",
                                               "answer", "ending",    "asked"};

}  // namespace

std::string Format(const WatchNote& note) {
  return absl::StrCat("watch ", kWords.at(static_cast<std::size_t>(note.kind)), " ", note.rank,
                      "\n", note.text);
}

std::optional<WatchNote> ParseNote(const std::string& text) {
  const std::size_t line = text.find('\n');
  if (line == std::string::npos) return std::nullopt;
  for (std::size_t kind = 0; kind < kWords.size(); ++kind) {
    const std::string head = absl::StrCat("watch ", kWords.at(kind), " ");
    if (text.compare(0, head.size(), head) != 0) continue;
    WatchNote note{static_cast<NoteKind>(kind)};
    if (!absl::SimpleAtoi(text.substr(head.size(), line - head.size()), &note.rank)) break;
    note.text = text.substr(line + 1);
    return note;
  }
  return std::nullopt;
}

}  // namespace optimus::executor
