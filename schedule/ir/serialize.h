#pragma once
// Schedule and Timeline to and from their protos (schedule/ir/*.proto): the file formats.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/schedule.pb.h"
#include "schedule/ir/timeline.h"
#include "schedule/ir/timeline.pb.h"

namespace optimus::ir {

// Versions of the two formats that this build writes, and the only ones it reads.
inline constexpr std::int32_t kScheduleVersion = 1;
inline constexpr std::int32_t kTimelineVersion = 1;

// FromProto refuses, with INVALID_ARGUMENT naming program, operation and field: another version, an
// enum that is zero or unknown, a number that does not fit its field. It does not Validate.
proto::Schedule ToProto(const Schedule& schedule);
absl::StatusOr<Schedule> FromProto(const proto::Schedule& message);
proto::Timeline ToProto(const Timeline& timeline);
absl::StatusOr<Timeline> FromProto(const proto::Timeline& message);

// Binary protos on disk ("*.schedule.pb", "*.timeline.pb"); textproto where the path ends in
// .textproto. Written whole or not at all. A binary file that is cut short, or goes on behind its
// end, is refused. Errors name the file.
absl::Status WriteSchedule(const std::string& path, const Schedule& schedule);
// What WriteSchedule and WriteTimeline write to `path`, for those who write several files at once.
absl::StatusOr<std::string> EncodeSchedule(const std::string& path, const Schedule& schedule);
absl::StatusOr<std::string> EncodeTimeline(const std::string& path, const Timeline& timeline);
absl::StatusOr<Schedule> ReadSchedule(const std::string& path);
absl::Status WriteTimeline(const std::string& path, const Timeline& timeline);
absl::StatusOr<Timeline> ReadTimeline(const std::string& path);

}  // namespace optimus::ir
