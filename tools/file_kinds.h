#pragma once
// What a file holds, by the end of its name.

#include <string>

#include "absl/status/status.h"

namespace optimus::tools {

// "*.schedule.pb" and "*.schedule.textproto" hold a Schedule, every other input an Experiment.
inline constexpr char kScheduleEndings[] = ".schedule.pb or .schedule.textproto";
bool IsScheduleFile(const std::string& path);
// "*.timeline.pb" and "*.timeline.textproto" hold a Timeline.
inline constexpr char kTimelineEndings[] = ".timeline.pb or .timeline.textproto";
bool IsTimelineFile(const std::string& path);

// INVALID_ARGUMENT where --schedule=`path` would not be read again as a schedule.
absl::Status CheckScheduleName(const std::string& path);
// The same for --timeline=`path`.
absl::Status CheckTimelineName(const std::string& path);
// INVALID_ARGUMENT where --trace=`path` promises JSON: it is binary, whatever else its name.
absl::Status CheckTraceName(const std::string& path);

}  // namespace optimus::tools
