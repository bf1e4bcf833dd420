#pragma once
// Text from outside (names, paths, arguments) for terminals and one-line messages.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace optimus::tools {

// `text` with \xNN for every byte that is part of a control character (C0, DEL, C1: newline, NUL,
// escape sequences) or of no valid UTF-8 character. All else stays as it is.
std::string Printable(absl::string_view text);

// At most `limit` bytes: the middle of a longer text is replaced by "..." (no character is cut in
// two). `text` is valid UTF-8, `limit` at least 8.
std::string CutMiddle(const std::string& text, std::size_t limit);

}  // namespace optimus::tools
