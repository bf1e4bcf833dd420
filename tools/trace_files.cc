#include "tools/trace_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/file_kinds.h"
#include "tools/shared_flags.h"
#include "tools/trace_readers.h"
#include "traces/chakra/chakra.h"

namespace optimus::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kKnownKinds[] =
    "a trace is *.timeline.pb (ours), *.et or the prefix of such files (Chakra), *.json or "
    "*.json.gz (PyTorch's profiler, or our own), or a folder with them";

bool IsGroupsFile(absl::string_view path) { return absl::EndsWith(path, kGroupsEnding); }

std::optional<TraceFileKind> KindOfName(const std::string& path) {
  if (IsTimelineFile(path)) return TraceFileKind::kTimeline;
  if (absl::EndsWith(path, ".et") || absl::EndsWith(path, ".et.gz")) return TraceFileKind::kChakra;
  if (IsGroupsFile(path)) return std::nullopt;
  if (absl::EndsWith(path, ".json") || absl::EndsWith(path, ".json.gz")) {
    return TraceFileKind::kJson;
  }
  return std::nullopt;
}

// JSON begins with a bracket, behind blanks or a byte order mark; gzip with two bytes of its own.
std::optional<TraceFileKind> KindOfContent(const std::string& path) {
  std::array<char, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  absl::string_view text(head.data(), static_cast<std::size_t>(file.gcount()));
  if (absl::StartsWith(text, "\x1f\x8b")) return TraceFileKind::kJson;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == absl::string_view::npos) return std::nullopt;
  if (text[first] == '{' || text[first] == '[') return TraceFileKind::kJson;
  return std::nullopt;
}

absl::Status NoTrace(const std::string& path) {
  if (absl::EndsWith(path, ".pftrace")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a Perfetto trace is written, not read; give the trace that it was made from"));
  }
  if (IsScheduleFile(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": a schedule says no times; give its timeline (optimus simulate --timeline=...) and "
        "the schedule with --schedule"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is no trace of a known kind; ", kKnownKinds));
}

absl::StatusOr<std::vector<TraceFile>> FilesOfFolder(const std::string& folder) {
  std::vector<TraceFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::optional<TraceFileKind> kind = KindOfName(path);
    if (kind.has_value()) files.push_back({path, *kind});
  }
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder, ": ", error.message()));
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": no trace is in this folder; ", kKnownKinds));
  }
  std::sort(files.begin(), files.end(),
            [](const TraceFile& a, const TraceFile& b) { return a.path < b.path; });
  return files;
}

absl::StatusOr<std::vector<TraceFile>> FilesOfPrefix(const std::string& prefix) {
  const auto found = traces::FindChakraFiles(prefix);
  if (!found.ok()) {
    return absl::NotFoundError(absl::StrCat(prefix, ": no such file or folder, nor a file ", prefix,
                                            ".0.et (Chakra's files of a prefix)"));
  }
  std::vector<TraceFile> files;
  files.reserve(found->size());
  for (const std::string& path : *found) files.push_back({path, TraceFileKind::kChakra});
  return files;
}

absl::StatusOr<std::vector<TraceFile>> FilesOf(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return FilesOfFolder(path);
  if (!fs::exists(path, error)) return FilesOfPrefix(path);
  std::optional<TraceFileKind> kind = KindOfName(path);
  if (!kind.has_value() && fs::is_regular_file(path, error) && !IsScheduleFile(path) &&
      !IsGroupsFile(path)) {
    kind = KindOfContent(path);
  }
  if (!kind.has_value()) return NoTrace(path);
  return std::vector<TraceFile>{{path, *kind}};
}

const char* KindName(TraceFileKind kind) {
  switch (kind) {
    case TraceFileKind::kTimeline:
      return "a timeline";
    case TraceFileKind::kChakra:
      return "a Chakra trace";
    case TraceFileKind::kJson:
      return "a JSON trace";
  }
  return "a trace";
}

// Flags of one kind of trace that were given for another.
absl::Status CheckFlags(const TraceInputs& inputs, TraceFileKind kind) {
  const auto only_for = [&](bool given, const char* flag, TraceFileKind needed) -> absl::Status {
    if (!given || kind == needed) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, ": is for ", KindName(needed), ", and ",
                                                   inputs.paths.front(), " is ", KindName(kind),
                                                   "; leave it out"));
  };
  OPTIMUS_RETURN_IF_ERROR(
      only_for(!inputs.schedule.empty(), "--schedule", TraceFileKind::kTimeline));
  OPTIMUS_RETURN_IF_ERROR(only_for(inputs.all_ranks, "--all-ranks", TraceFileKind::kTimeline));
  OPTIMUS_RETURN_IF_ERROR(only_for(!inputs.groups.empty(), "--groups", TraceFileKind::kChakra));
  return only_for(inputs.step.has_value(), "--step", TraceFileKind::kJson);
}

absl::Status CheckTogether(const std::vector<TraceFile>& files) {
  for (const TraceFile& file : files) {
    if (file.kind == files.front().kind) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ": is ", KindName(file.kind), ", and ", files.front().path, " is ",
        KindName(files.front().kind), "; hint: the files of one run are all of one kind"));
  }
  if (files.front().kind == TraceFileKind::kTimeline && files.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(files[1].path, ": a timeline has all ranks in one file, and ",
                     files.front().path, " was given as well; hint: give one of them"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddTraceInputFiles(CLI::App& command, TraceInputs& inputs) {
  command
      .add_option("TRACE", inputs.paths,
                  "A trace; several files are the ranks of one run. *.timeline.pb of ours, *.et or "
                  "the prefix of PREFIX.RANK.et (Chakra), *.json or *.json.gz (PyTorch's profiler, "
                  "or our own Chrome JSON), or a folder with such files")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
}

void AddTraceInputFlags(CLI::App& command, TraceInputs& inputs) {
  command
      .add_option("--step", inputs.step,
                  "Number of the profiler's step that is read; without it the last one that lies "
                  "whole in the file")
      ->check([](const std::string& value) {
        std::int64_t number = 0;
        return absl::SimpleAtoi(value, &number)
                   ? std::string()
                   : absl::StrCat("'", value, "' is not the number of a step");
      })
      ->type_name("N");
  command
      .add_option("--schedule", inputs.schedule,
                  "Schedule of a timeline; without it NAME.schedule.pb beside NAME.timeline.pb")
      ->check(NotEmpty)
      ->type_name("FILE.schedule.pb");
  command
      .add_option("--groups", inputs.groups,
                  "Communicator groups of Chakra traces; without it PREFIX.groups.json beside "
                  "PREFIX.RANK.et, where it is there")
      ->check(NotEmpty)
      ->type_name("FILE.json");
  command.add_flag("--fold", inputs.fold,
                   "The ranks that are there stand for those of their groups that are missing");
}

absl::StatusOr<std::vector<TraceFile>> FindTraceFiles(const TraceInputs& inputs) {
  std::vector<TraceFile> files;
  for (const std::string& path : inputs.paths) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<TraceFile> found, FilesOf(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  if (files.empty()) return absl::InvalidArgumentError("no trace was given");
  OPTIMUS_RETURN_IF_ERROR(CheckTogether(files));
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(inputs, files.front().kind));
  return files;
}

absl::StatusOr<std::vector<NamedFile>> TraceInputFiles(const TraceInputs& inputs) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<TraceFile> files, FindTraceFiles(inputs));
  std::vector<NamedFile> named;
  named.reserve(files.size() + 1);
  for (const TraceFile& file : files) named.push_back({"TRACE", file.path});
  if (files.front().kind == TraceFileKind::kTimeline) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string schedule,
                             ScheduleOfTimeline(files.front().path, inputs.schedule));
    named.push_back({"--schedule", std::move(schedule)});
  } else if (files.front().kind == TraceFileKind::kChakra) {
    std::string groups = GroupsOfChakra(files.front().path, inputs.groups);
    if (!groups.empty()) named.push_back({"--groups", std::move(groups)});
  }
  return named;
}

std::vector<std::string> SourcesOf(const traces::Recording& recording) {
  std::vector<std::string> sources;
  for (const traces::RecordedRank& rank : recording.ranks) {
    if (sources.empty() || sources.back() != rank.source) sources.push_back(rank.source);
  }
  return sources;
}

absl::StatusOr<traces::Recording> LoadTrace(const TraceInputs& inputs) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<TraceFile> files, FindTraceFiles(inputs));
  OPTIMUS_ASSIGN_OR_RETURN(traces::Recording recording, ReadTraceFiles(files, inputs));
  recording.folded |= inputs.fold;
  OPTIMUS_RETURN_IF_ERROR(traces::CheckRecording(recording));
  return recording;
}

}  // namespace optimus::tools
