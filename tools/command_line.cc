#include "tools/command_line.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "tools/command_reference.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/plan_command.h"
#include "tools/reproduce_command.h"
#include "tools/simulate_command.h"

namespace optimus::tools {
namespace {

constexpr const char* kDescription =
    "Optimus simulates the training of multi-modal language models on large GPU clusters.";
constexpr const char* kFooter =
    "Exit codes: 0 success, 1 bad input, 2 a limit that was asked for is not met, 3 internal "
    "error.";

int Fail(const absl::Status& status) {
  std::fputs(ErrorLine(status).c_str(), stderr);
  return ExitCode(status);
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
  const auto subcommands = app.get_subcommands();
  const CLI::App& command = subcommands.empty() ? app : *subcommands.front();
  const std::string name =
      subcommands.empty() ? app.get_name() : absl::StrCat(app.get_name(), " ", command.get_name());
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
    AddSimulateCommand(app, simulate);
    AddPlanCommand(app, plan);
    AddReproduceCommand(app, reproduce);
  }
  CLI::App app;
  bool help_markdown = false;
  SimulateFlags simulate;
  PlanFlags plan;
  ReproduceFlags reproduce;
};

absl::StatusOr<int> Dispatch(const CommandLine& line) {
  if (line.help_markdown) {
    const absl::Status written = WriteStdout(CommandReference(line.app));
    if (!written.ok()) return written;
    return kExitSuccess;
  }
  if (line.app.got_subcommand("simulate")) return RunSimulate(line.simulate);
  if (line.app.got_subcommand("plan")) return RunPlan(line.plan);
  if (line.app.got_subcommand("reproduce")) return RunReproduce(line.reproduce);
  return absl::InvalidArgumentError("no command given (see optimus --help)");
}

int ParseAndRun(int argc, const char* const* argv) {
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto subcommands = line.app.get_subcommands();
    const CLI::App& asked = subcommands.empty() ? line.app : *subcommands.front();
    const absl::Status written = WriteStdout(asked.help());
    return written.ok() ? kExitSuccess : Fail(written);
  } catch (const CLI::CallForVersion& version) {
    const absl::Status written = WriteStdout(absl::StrCat(version.what(), "\n"));
    return written.ok() ? kExitSuccess : Fail(written);
  } catch (const CLI::ParseError& error) {
    return Fail(UsageError(line.app, error));
  }
  const absl::StatusOr<int> result = Dispatch(line);
  return result.ok() ? *result : Fail(result.status());
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  // A file over the shell's limit is an error of ours (EFBIG), not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Protobuf would print lines of its own beside our one error line.
  google::protobuf::SetLogHandler(nullptr);
  try {
    return ParseAndRun(argc, argv);
  } catch (const std::bad_alloc&) {
    return Fail(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Fail(absl::InternalError(absl::StrCat("unexpected exception: ", error.what())));
  }
}

}  // namespace optimus::tools
