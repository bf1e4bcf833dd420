#pragma once
// Text as the content of a .gz file.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optimus::tools {

// The same bytes for the same text: no time, no name. RESOURCE_EXHAUSTED where memory is short.
absl::StatusOr<std::string> Gzip(absl::string_view text);

}  // namespace optimus::tools
