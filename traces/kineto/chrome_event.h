#pragma once
// One event of a file of ours.

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "simdjson.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// Texts live as long as the batch.
struct ChromeEvent {
  absl::string_view phase, name, start, duration;
  std::int64_t pid = -1, tid = -1, op = -1;
  absl::string_view kind;
  bool untimed = false;
  bool wrong = false;  // a field of ours is of another type than it should be
  std::vector<Dependency> after;
  std::int64_t work_id = -1;
  Work work;
  std::int64_t communication_id = -1;
  Communication communication;
};

// Into `event`, which is reused. Errors of JSON; what is wrong otherwise is said by `wrong`.
simdjson::error_code ReadChromeEvent(simdjson::ondemand::object object, ChromeEvent& event);

}  // namespace optimus::traces
