#include "tools/file_kinds.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optimus::tools {

bool IsScheduleFile(const std::string& path) {
  return absl::EndsWith(path, ".schedule.pb") || absl::EndsWith(path, ".schedule.textproto");
}

bool IsTimelineFile(const std::string& path) {
  return absl::EndsWith(path, ".timeline.pb") || absl::EndsWith(path, ".timeline.textproto");
}

absl::Status CheckScheduleName(const std::string& path) {
  if (IsScheduleFile(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--schedule=", path, ": a schedule is only read again from a file ",
                   "whose name ends in ", kScheduleEndings, "; give it such a name"));
}

absl::Status CheckTraceName(const std::string& path) {
  if (!absl::EndsWith(path, ".json") && !absl::EndsWith(path, ".json.gz")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--trace=", path, ": a trace is Perfetto's binary format, not JSON; give it a ",
                   "name that ends in .pftrace. For JSON write the schedule and the timeline ",
                   "(--schedule=S.schedule.pb --timeline=S.timeline.pb), then: optimus trace ",
                   "convert S.timeline.pb S.json"));
}

absl::Status CheckTimelineName(const std::string& path) {
  if (IsTimelineFile(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--timeline=", path,
                                                 ": the name of a timeline ends in ",
                                                 kTimelineEndings, "; give it such a name"));
}

}  // namespace optimus::tools
