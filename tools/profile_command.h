#pragma once
// optimus profile

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/command.h"

namespace optimus::tools {

struct ProfileFlags {
  std::string backend;
  std::vector<std::string> files;  // --for
  int repetitions = 20;
  std::string base;  // empty: as the first file's
  std::string out;
  std::string timeout = "60s";
  bool bf16 = false;
  bool no_pin = false;
  bool json = false;
};

// Defines the subcommand; `flags` must outlive `app`.
CLI::App* AddProfileCommand(CLI::App& app, ProfileFlags& flags);

// Called by every rank. Returns the exit code, the same at all ranks.
absl::StatusOr<int> RunProfile(const ProfileFlags& flags, Arguments& arguments);

}  // namespace optimus::tools
