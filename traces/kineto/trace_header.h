#pragma once
// What a Kineto file says besides its events.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

struct TraceHeader {
  std::optional<std::int32_t> rank;
  std::int32_t world = 0;    // 0: not said
  std::int64_t base_ns = 0;  // what all times count from
  // pg_config; ranks in the order of the file.
  std::vector<CommunicatorGroup> groups;
  std::string ours;  // JSON of "optimus", which chrome_json.h writes; empty: not a file of ours
};

bool IsHeaderKey(absl::string_view key);

// Adds one value of the file's object. INVALID_ARGUMENT for a schemaVersion that is not 1, an
// execution trace's "schema", and for what is no JSON. Fields of another type are not said.
absl::Status ReadHeaderValue(absl::string_view key, const std::string& json, TraceHeader& header);

}  // namespace optimus::traces
