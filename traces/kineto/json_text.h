#pragma once
// Pieces of JSON text.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "traces/kineto/file_time.h"

namespace optimus::traces {

// In quotes. A text that is not UTF-8 has U+FFFD in place of each byte beyond ASCII.
void AppendQuoted(std::string& out, absl::string_view text);
// Microseconds with six decimals; `time` is not negative.
void AppendMicroseconds(std::string& out, FileTime time);
// The shortest decimal that reads back as `value`, which is finite.
void AppendDouble(std::string& out, double value);

}  // namespace optimus::traces
