#include "tools/trace_output.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "tools/gzip.h"
#include "tools/input_files.h"
#include "tools/out_of_memory.h"
#include "tools/trace_readers.h"
#include "traces/chakra/write.h"
#include "traces/kineto/chrome_json.h"
#include "traces/perfetto_recording.h"
#include "traces/spans_csv.h"

namespace optimus::tools {
namespace {

constexpr char kSmallerHint[] = "give fewer ranks, or a shorter trace";

absl::StatusOr<TraceFormat> FormatOfName(const std::string& path) {
  if (absl::EndsWith(path, ".pftrace")) return TraceFormat::kPerfetto;
  if (absl::EndsWith(path, ".json") || absl::EndsWith(path, ".json.gz"))
    return TraceFormat::kChrome;
  if (absl::EndsWith(path, ".csv")) return TraceFormat::kCsv;
  if (absl::EndsWith(path, ".et")) return TraceFormat::kChakra;
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   ": which format is it to have? Names that say it end in .pftrace, .json, "
                   ".json.gz, .csv or .et; else say --to=",
                   kTraceFormats));
}

absl::StatusOr<TraceFormat> FormatOfFlag(const std::string& to) {
  if (to == "perfetto") return TraceFormat::kPerfetto;
  if (to == "chrome") return TraceFormat::kChrome;
  if (to == "chakra") return TraceFormat::kChakra;
  if (to == "csv") return TraceFormat::kCsv;
  return absl::InvalidArgumentError(absl::StrCat("--to=", to, ": is none of ", kTraceFormats));
}

std::string RankFile(const TraceOutput& output, std::int32_t rank) {
  return absl::StrCat(output.path, ".", rank, ".et");
}

std::string GroupsFile(const TraceOutput& output) {
  return absl::StrCat(output.path, kGroupsEnding);
}

std::vector<std::string> Paths(const traces::Recording& recording, const TraceOutput& output) {
  if (output.kind != TraceFormat::kChakra) return {output.path};
  std::vector<std::string> paths = {GroupsFile(output)};
  paths.reserve(recording.ranks.size() + 1);
  for (const traces::RecordedRank& rank : recording.ranks) {
    paths.push_back(RankFile(output, rank.rank));
  }
  return paths;
}

absl::Status AddChrome(const traces::Recording& recording, const std::string& path,
                       StagedFiles& files) {
  OPTIMUS_ASSIGN_OR_RETURN(std::string text, traces::ChromeJsonText(recording));
  if (absl::EndsWith(path, ".gz")) {
    OPTIMUS_ASSIGN_OR_RETURN(text, Gzip(text));
  }
  return files.Add(path, std::move(text));
}

// The writer gives the pieces of one file after another.
absl::Status AddChakra(const traces::Recording& recording, const std::string& prefix,
                       StagedFiles& files) {
  std::string name, content;
  const auto add = [&]() -> absl::Status {
    if (name.empty()) return absl::OkStatus();
    return files.Add(name, std::exchange(content, ""));
  };
  const auto sink = [&](const std::string& file, absl::string_view piece) -> absl::Status {
    if (file != name) {
      OPTIMUS_RETURN_IF_ERROR(add());
      name = file;
    }
    absl::StrAppend(&content, piece);
    return absl::OkStatus();
  };
  OPTIMUS_RETURN_IF_ERROR(traces::WriteChakra(recording, prefix, sink));
  return add();
}

absl::Status AddFiles(const traces::Recording& recording, const TraceOutput& output,
                      StagedFiles& files) {
  switch (output.kind) {
    case TraceFormat::kPerfetto: {
      absl::StatusOr<std::string> trace = traces::ToPerfetto(recording);
      if (trace.ok()) return files.Add(output.path, *std::move(trace));
      if (recording.ranks.empty()) return trace.status();
      return NameFile(recording.ranks.front().source, trace.status());
    }
    case TraceFormat::kChrome:
      return AddChrome(recording, output.path, files);
    case TraceFormat::kChakra:
      return AddChakra(recording, output.path, files);
    case TraceFormat::kCsv:
      break;
  }
  return files.Add(output.path, traces::WriteCsv(recording));
}

// Names that would be written and never found again.
absl::Status CheckName(const std::string& path) {
  if (path == "-") {
    return absl::InvalidArgumentError("-: a trace is written to files, not to standard output");
  }
  if (!absl::EndsWith(path, kGroupsEnding)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": names that end in ", kGroupsEnding,
                   " are those of the groups of a Chakra trace; call the trace something else"));
}

absl::Status CheckPrefix(const std::string& path, absl::string_view prefix) {
  if (!prefix.empty() && !absl::EndsWith(prefix, "/")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has no name before .RANK.et; write PREFIX.et"));
}

}  // namespace

absl::StatusOr<TraceOutput> OutputOf(const std::string& path, const std::string& to) {
  OPTIMUS_RETURN_IF_ERROR(CheckName(path));
  TraceOutput output;
  OPTIMUS_ASSIGN_OR_RETURN(output.kind, to.empty() ? FormatOfName(path) : FormatOfFlag(to));
  absl::string_view name = path;
  if (output.kind == TraceFormat::kChakra) {
    absl::ConsumeSuffix(&name, ".et");
    OPTIMUS_RETURN_IF_ERROR(CheckPrefix(path, name));
  }
  output.path = std::string(name);
  return output;
}

absl::Status CheckOutput(const traces::Recording& recording, const TraceOutput& output,
                         const std::vector<NamedFile>& inputs) {
  std::vector<NamedFile> outputs;
  for (std::string& path : Paths(recording, output)) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile(output.origin, path));
    outputs.push_back({output.origin, std::move(path)});
  }
  return CheckOverwrites(inputs, outputs);
}

std::string DescribeOutput(const traces::Recording& recording, const TraceOutput& output) {
  if (output.kind != TraceFormat::kChakra || recording.ranks.empty()) return output.path;
  const std::string first = RankFile(output, recording.ranks.front().rank);
  const std::string files =
      recording.ranks.size() == 1
          ? first
          : absl::StrCat(first, " to ", RankFile(output, recording.ranks.back().rank));
  return absl::StrCat(files, ", ", GroupsFile(output));
}

absl::Status WriteTrace(const traces::Recording& recording, const TraceOutput& output) {
  StagedFiles files;
  OPTIMUS_RETURN_IF_ERROR(CatchOutOfMemory(
      output.path, "writing the trace", [&] { return AddFiles(recording, output, files); },
      kSmallerHint));
  return files.Commit();
}

}  // namespace optimus::tools
