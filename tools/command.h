#pragma once
// One subcommand of optimus. Which ones a build has is said by one of the commands_*.cc.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/json_fields.h"

namespace optimus::tools {

// main's arguments: a launcher's library may take its own out of them.
struct Arguments {
  int count = 0;
  char** values = nullptr;
};

class Command {
 public:
  virtual ~Command() = default;
  // Defines it; called once. This object must outlive `app`.
  virtual void Define(CLI::App& app) = 0;
  // Whether it was asked for.
  virtual bool parsed() const = 0;
  // Whether a launcher may start it many times with the same arguments.
  virtual bool many_ranks() const = 0;
  // Returns the exit code of a run that came to its end.
  virtual absl::StatusOr<int> Run(Arguments& arguments) = 0;
};

// A command of a struct of flags and two functions. `run` gets the arguments of main as well: those
// who run on many ranks need them to join each other.
template <class Flags>
class CommandOf : public Command {
 public:
  using DefineFunction = CLI::App* (*)(CLI::App&, Flags&);
  using RunFunction = std::function<absl::StatusOr<int>(const Flags&, Arguments&)>;
  CommandOf(DefineFunction define, RunFunction run, bool many_ranks)
      : define_(define), run_(std::move(run)), many_ranks_(many_ranks) {}
  void Define(CLI::App& app) override { command_ = define_(app, flags_); }
  bool parsed() const override { return command_ != nullptr && command_->parsed(); }
  bool many_ranks() const override { return many_ranks_; }
  absl::StatusOr<int> Run(Arguments& arguments) override { return run_(flags_, arguments); }

 private:
  DefineFunction define_;
  RunFunction run_;
  bool many_ranks_;
  Flags flags_;
  CLI::App* command_ = nullptr;
};

template <class Flags>
std::unique_ptr<Command> OneProcess(CLI::App* (*define)(CLI::App&, Flags&),
                                    absl::StatusOr<int> (*run)(const Flags&)) {
  return std::make_unique<CommandOf<Flags>>(
      define, [run](const Flags& flags, Arguments& /*arguments*/) { return run(flags); }, false);
}

template <class Flags>
std::unique_ptr<Command> ManyRanks(CLI::App* (*define)(CLI::App&, Flags&),
                                   absl::StatusOr<int> (*run)(const Flags&, Arguments&)) {
  return std::make_unique<CommandOf<Flags>>(define, run, true);
}

// Of this build, in the order of the help.
std::vector<std::unique_ptr<Command>> MakeCommands();
// Those that need no simulator: every build has them.
std::vector<std::unique_ptr<Command>> MakeExecutorCommands();

// The JSON of one command, for the command reference.
struct JsonSection {
  std::string introduction;
  absl::Span<const JsonField> fields;
};
std::vector<JsonSection> JsonSections();
std::vector<JsonSection> ExecutorJsonSections();

}  // namespace optimus::tools
