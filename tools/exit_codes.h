#pragma once
// What the command returns to the shell, the same for every subcommand.

#include <string>

#include "absl/status/status.h"

namespace optimus::tools {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitBadInput = 1;
inline constexpr int kExitCheckFailed = 2;  // a limit that was asked for is not met
inline constexpr int kExitInternal = 3;     // our own bug, or an engine that stopped

int ExitCode(const absl::Status& status);

// Of ranks that were started with the same arguments, the first prints an error of these. Any other
// error before they have joined is one rank's own, which it must print itself: marked here.
absl::Status OwnError(absl::Status error);
bool IsOwnError(const absl::Status& error);

// "optimus: error: MESSAGE\n": always exactly one line, without control characters (Printable), and
// of a message over 1000 bytes without its middle. Every error goes through here.
std::string ErrorLine(const absl::Status& status);

}  // namespace optimus::tools
