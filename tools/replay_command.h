#pragma once
// optimus replay TRACE..., optimus explain TRACE...

#include <cstdint>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/trace_files.h"
#include "tools/what_if_flags.h"

namespace optimus::tools {

struct ReplayFlags {
  TraceInputs inputs;
  WhatIfFlags what_if;
  std::int32_t rank = -1;
  std::string trace;
  bool json = false;
};

struct ExplainFlags {
  TraceInputs inputs;
  std::string profile;
  std::int32_t rank = -1;
  std::int32_t top = 10;
  bool json = false;
};

// Define the subcommands; `flags` must outlive `app`.
CLI::App* AddReplayCommand(CLI::App& app, ReplayFlags& flags);
CLI::App* AddExplainCommand(CLI::App& app, ExplainFlags& flags);

// Return the exit code of a run that came to its end.
absl::StatusOr<int> RunReplay(const ReplayFlags& flags);
absl::StatusOr<int> RunExplain(const ExplainFlags& flags);

}  // namespace optimus::tools
