#include "tools/trace_readers.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/validate.h"
#include "tools/input_files.h"
#include "tools/out_of_memory.h"
#include "traces/chakra/chakra.h"
#include "traces/from_timeline.h"
#include "traces/kineto/kineto.h"

namespace optimus::tools {
namespace {

constexpr char kSmallerHint[] = "give fewer ranks, or a shorter trace";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::StatusOr<traces::Recording> ReadOurs(const std::string& path, const TraceInputs& inputs) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string schedule_path,
                           ScheduleOfTimeline(path, inputs.schedule));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Schedule schedule, ir::ReadSchedule(schedule_path));
  OPTIMUS_RETURN_IF_ERROR(NameFile(schedule_path, ir::Validate(schedule)));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, ir::ReadTimeline(path));
  traces::ToRecordingOptions options;
  options.all_ranks = inputs.all_ranks;
  absl::StatusOr<traces::Recording> recording = traces::ToRecording(schedule, timeline, options);
  if (!recording.ok()) return NameFile(path, recording.status());
  for (traces::RecordedRank& rank : recording->ranks) rank.source = path;
  return recording;
}

absl::StatusOr<traces::Recording> ReadAllChakra(const std::vector<TraceFile>& files,
                                                const TraceInputs& inputs) {
  std::vector<std::string> paths;
  paths.reserve(files.size());
  for (const TraceFile& file : files) paths.push_back(file.path);
  traces::ChakraOptions options;
  options.groups_path = GroupsOfChakra(paths.front(), inputs.groups);
  return traces::ReadChakraAll(paths, options);
}

absl::StatusOr<traces::Recording> ReadAllJson(const std::vector<TraceFile>& files,
                                              const TraceInputs& inputs) {
  traces::KinetoOptions options;
  options.step = inputs.step;
  std::vector<traces::Recording> parts;
  parts.reserve(files.size());
  for (const TraceFile& file : files) {
    OPTIMUS_ASSIGN_OR_RETURN(traces::Recording part, traces::ReadKineto(file.path, options));
    parts.push_back(std::move(part));
  }
  return traces::Join(std::move(parts));
}

absl::StatusOr<traces::Recording> Read(const std::vector<TraceFile>& files,
                                       const TraceInputs& inputs) {
  switch (files.front().kind) {
    case TraceFileKind::kTimeline:
      return ReadOurs(files.front().path, inputs);
    case TraceFileKind::kChakra:
      return ReadAllChakra(files, inputs);
    case TraceFileKind::kJson:
      break;
  }
  return ReadAllJson(files, inputs);
}

}  // namespace

absl::StatusOr<std::string> ScheduleOfTimeline(const std::string& timeline,
                                               const std::string& given) {
  if (!given.empty()) return given;
  absl::string_view name = timeline;
  if (!absl::ConsumeSuffix(&name, ".timeline.pb")) {
    absl::ConsumeSuffix(&name, ".timeline.textproto");
  }
  for (const char* ending : {".schedule.pb", ".schedule.textproto"}) {
    std::string path = absl::StrCat(name, ending);
    if (Exists(path)) return path;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(timeline, ": a timeline says when, but not what; there is no ", name,
                   ".schedule.pb beside it, so give its schedule with --schedule"));
}

std::string GroupsOfChakra(const std::string& path, const std::string& given) {
  if (!given.empty()) return given;
  absl::string_view prefix = path;
  absl::ConsumeSuffix(&prefix, ".gz");
  absl::ConsumeSuffix(&prefix, ".et");
  std::string beside = absl::StrCat(prefix, kGroupsEnding);
  if (Exists(beside)) return beside;
  if (traces::RankOfChakraFile(path) < 0) return "";
  beside = absl::StrCat(prefix.substr(0, prefix.rfind('.')), kGroupsEnding);
  return Exists(beside) ? beside : "";
}

absl::StatusOr<traces::Recording> ReadTraceFiles(const std::vector<TraceFile>& files,
                                                 const TraceInputs& inputs) {
  return CatchOutOfMemory(
      files.front().path, "reading the trace", [&] { return Read(files, inputs); }, kSmallerHint);
}

}  // namespace optimus::tools
