#pragma once
// Flags of the commands that run on real hardware.

#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/backends/backend.h"

namespace optimus::tools {

// --backend=KINDS ("cpu|cuda"), with what this build has.
void AddBackendFlag(CLI::App& command, std::string& backend, const char* kinds);
void AddTimeoutFlag(CLI::App& command, std::string& timeout);
void AddBf16Flag(CLI::App& command, bool& bf16);
void AddNoPinFlag(CLI::App& command, bool& no_pin);
void AddTimeScaleFlag(CLI::App& command, double& time_scale);

// INVALID_ARGUMENT names the flag.
absl::StatusOr<executor::BackendKind> BackendOf(const std::string& backend, const char* kinds);
absl::StatusOr<absl::Duration> TimeoutOf(const std::string& timeout);
// INVALID_ARGUMENT where `flag` was given, but does not fit the backend: it is for `backend`.
absl::Status OnlyFor(bool given, const std::string& flag, bool fits, const std::string& backend);
// That `value` of `flag` is from `least` to `greatest`.
absl::Status CheckRange(const std::string& flag, double value, double least, double greatest);

}  // namespace optimus::tools
