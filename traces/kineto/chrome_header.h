#pragma once
// The header of a file of ours: all of a Recording but its operations.

#include <string>

#include "absl/status/statusor.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// The file up to and with the '[' of its events.
void AppendChromeHeader(std::string& out, const Recording& recording);

// Of "optimus": ranks with lanes and without operations. INVALID_ARGUMENT names the field.
absl::StatusOr<Recording> ParseChromeHeader(const std::string& json);

// The kind of which ToString is `text`; false: none.
bool FromText(absl::string_view text, OpKind& kind);
bool FromText(absl::string_view text, CommunicationKind& kind);
bool FromText(absl::string_view text, DependencyKind& kind);

}  // namespace optimus::traces
