#pragma once
// Schedule and Timeline to and from their protos (schedule/ir/*.proto): the file formats.

#include <string>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/schedule.pb.h"
#include "schedule/ir/timeline.h"
#include "schedule/ir/timeline.pb.h"

namespace optimus::ir {

proto::Schedule ToProto(const Schedule& schedule);
absl::StatusOr<Schedule> FromProto(const proto::Schedule& message);
proto::Timeline ToProto(const Timeline& timeline);
absl::StatusOr<Timeline> FromProto(const proto::Timeline& message);

// Binary protos on disk ("*.schedule.pb"); textproto where the path ends in .textproto.
absl::Status WriteSchedule(const std::string& path, const Schedule& schedule);
absl::StatusOr<Schedule> ReadSchedule(const std::string& path);

}  // namespace optimus::ir
