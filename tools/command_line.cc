#include "tools/command_line.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "tools/command.h"
#include "tools/command_reference.h"
#include "tools/exit_codes.h"
#include "tools/launched.h"
#include "tools/outputs.h"
#include "tools/unjoined.h"

namespace optimus::tools {
namespace {

constexpr const char* kDescription =
    "Optimus simulates the training of multi-modal language models on large GPU clusters, and runs "
    "the same schedules on real hardware.";
constexpr const char* kFooter =
    "Exit codes: 0 success, 1 bad input, 2 a limit that was asked for is not met, 3 internal "
    "error.";

int Fail(const absl::Status& status) {
  std::fputs(ErrorLine(status).c_str(), stderr);
  return ExitCode(status);
}

// The innermost command that was named, and what it is called in full.
const CLI::App& Innermost(const CLI::App& app, std::string& name) {
  absl::StrAppend(&name, name.empty() ? "" : " ", app.get_name());
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : Innermost(*subcommands.front(), name);
}

// An argument that no command knows, or nothing. CLI11 looks for missing arguments first, although
// a misspelt flag is the likelier mistake.
std::string UnknownFlag(const CLI::App& command) {
  for (const std::string& argument : command.remaining()) {
    if (argument.size() > 1 && argument.front() == '-') return argument;
  }
  return "";
}

// CLI11's words for wrong use, with a hint.
absl::Status UsageError(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const CLI::App& command = Innermost(app, name);
  const std::string flag = UnknownFlag(command);
  return absl::InvalidArgumentError(
      absl::StrCat(flag.empty() ? error.what() : absl::StrCat("unknown flag ", flag), " (see ",
                   name, " --help)"));
}

struct CommandLine {
  CommandLine() : app(kDescription, "optimus") {
    app.set_version_flag("--version", absl::StrCat("optimus ", OPTIMUS_VERSION),
                         "Print the version and exit");
    app.footer(kFooter);
    app.require_subcommand(0, 1);  // none is an error of its own, below
    // For the documentation; an empty group hides it.
    app.add_flag("--help-markdown", help_markdown, "Print this reference")->group("");
    for (const auto& command : commands) command->Define(app);
  }
  CLI::App app;
  bool help_markdown = false;
  std::vector<std::unique_ptr<Command>> commands = MakeCommands();
};

// Of many ranks that were started with the same wrong arguments, the lowest speaks for all.
int FailOnce(const CommandLine& line, const absl::Status& status) {
  const bool many =
      std::any_of(line.commands.begin(), line.commands.end(),
                  [](const auto& command) { return command->parsed() && command->many_ranks(); });
  if (!many || !IsLaunched()) return Fail(status);
  const bool own = IsOwnError(status);  // and names its rank
  if (!own && !IsMineToSay()) return ExitCode(status);
  const int rank = LaunchedRank();
  const std::string prefix = own || rank == 0 ? "" : absl::StrCat("rank ", rank, ": ");
  const int code = Fail(absl::Status(status.code(), absl::StrCat(prefix, status.message())));
  TellOthersThatAllIsSaid();
  return code;
}

absl::StatusOr<int> Dispatch(const CommandLine& line, Arguments& arguments) {
  if (line.help_markdown) {
    const absl::Status written = WriteStdout(CommandReference(line.app));
    if (!written.ok()) return written;
    return kExitSuccess;
  }
  for (const auto& command : line.commands) {
    if (command->parsed()) return command->Run(arguments);
  }
  return absl::InvalidArgumentError("no command given (see optimus --help)");
}

int ParseAndRun(Arguments& arguments) {
  CommandLine line;
  try {
    line.app.parse(arguments.count, arguments.values);
  } catch (const CLI::CallForHelp&) {
    const absl::Status written = WriteStdout(line.app.help());  // of the command that was named
    return written.ok() ? kExitSuccess : Fail(written);
  } catch (const CLI::CallForVersion& version) {
    const absl::Status written = WriteStdout(absl::StrCat(version.what(), "\n"));
    return written.ok() ? kExitSuccess : Fail(written);
  } catch (const CLI::ParseError& error) {
    return FailOnce(line, UsageError(line.app, error));
  }
  const absl::StatusOr<int> result = Dispatch(line, arguments);
  return result.ok() ? *result : FailOnce(line, result.status());
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  // A file over the shell's limit is an error of ours (EFBIG), not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Protobuf would print lines of its own beside our one error line.
  google::protobuf::SetLogHandler(nullptr);
  try {
    Arguments arguments{argc, argv};
    return ParseAndRun(arguments);
  } catch (const std::bad_alloc&) {
    return Fail(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Fail(absl::InternalError(absl::StrCat("unexpected exception: ", error.what())));
  }
}

}  // namespace optimus::tools
