#pragma once
// Reading the files of a trace that FindTraceFiles found, each kind with its library.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/trace_files.h"
#include "traces/recording/recording.h"

namespace optimus::tools {

inline constexpr char kGroupsEnding[] = ".groups.json";

// The schedule of a timeline: `given`, or the one beside it. INVALID_ARGUMENT where neither is
// there.
absl::StatusOr<std::string> ScheduleOfTimeline(const std::string& timeline,
                                               const std::string& given);
// The groups file of a Chakra trace: `given`, or the one beside it, or empty.
std::string GroupsOfChakra(const std::string& path, const std::string& given);

// `files` is not empty and of one kind.
absl::StatusOr<traces::Recording> ReadTraceFiles(const std::vector<TraceFile>& files,
                                                 const TraceInputs& inputs);

}  // namespace optimus::tools
