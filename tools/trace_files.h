#pragma once
// Which files a trace is read from, the same for every `optimus trace` command: what each one is,
// by its name and first bytes, and how several become one Recording.
//
//   *.timeline.pb, *.timeline.textproto   ours; needs the schedule that it is of
//   *.et, or the prefix of PREFIX.RANK.et   Chakra execution traces; PREFIX.groups.json beside them
//   *.json, *.json.gz                     of PyTorch's profiler (Kineto), or our own Chrome JSON
//   a folder                              all of these that are in it
//
// Several files are ranks of one run.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/outputs.h"
#include "traces/recording/recording.h"

namespace optimus::tools {

enum class TraceFileKind : std::uint8_t { kTimeline, kChakra, kJson };

struct TraceInputs {
  std::vector<std::string> paths;    // files, prefixes, folders
  std::string schedule;              // of a timeline; empty: NAME.schedule.pb beside it
  std::string groups;                // of Chakra; empty: PREFIX.groups.json where it is there
  std::optional<std::int64_t> step;  // number of the profiler's step; none: the reader's choice
  // The ranks that are there stand for all others of their groups (Recording::folded).
  bool fold = false;
  // Of a folded timeline: every rank of the world on its own (ToRecordingOptions::all_ranks).
  bool all_ranks = false;
};

// "TRACE...", the positional argument.
void AddTraceInputFiles(CLI::App& command, TraceInputs& inputs);
// --schedule, --groups, --step, --fold.
void AddTraceInputFlags(CLI::App& command, TraceInputs& inputs);

// Which files `inputs` lead to: folders and prefixes resolved, each once, in order of their ranks
// where names say them. Errors: NOT_FOUND, INVALID_ARGUMENT (of no known kind, several kinds,
// none).
struct TraceFile {
  std::string path;
  TraceFileKind kind = TraceFileKind::kJson;
};
absl::StatusOr<std::vector<TraceFile>> FindTraceFiles(const TraceInputs& inputs);

// All that LoadTrace reads, for CheckOverwrites.
absl::StatusOr<std::vector<NamedFile>> TraceInputFiles(const TraceInputs& inputs);

// The files that the ranks of `recording` were read from, each once, in the order of the ranks.
std::vector<std::string> SourcesOf(const traces::Recording& recording);

// The trace. Errors name file, field and rank; nothing is half read.
absl::StatusOr<traces::Recording> LoadTrace(const TraceInputs& inputs);

}  // namespace optimus::tools
