#pragma once
// The command `optimus`: its subcommands, help and errors.

namespace optimus::tools {

// Parses, runs, prints; returns the exit code. Errors are one line on standard error.
int RunCommandLine(int argc, char** argv);

}  // namespace optimus::tools
