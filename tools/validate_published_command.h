#pragma once
// optimus validate published

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

namespace optimus::tools {

struct ValidatePublishedFlags {
  std::string dataset;  // empty: all, or the one that `file` shows
  std::string file;     // empty: the files of validation/data
  bool json = false;
};

CLI::App* AddValidatePublishedCommand(CLI::App& app, ValidatePublishedFlags& flags);
// Returns the exit code: 0, or 2 where a target is missed.
absl::StatusOr<int> RunValidatePublished(const ValidatePublishedFlags& flags);

}  // namespace optimus::tools
