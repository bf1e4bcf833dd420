#include "tools/reproduce_command.h"

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/reproduction_json.h"
#include "tools/reproduction_text.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

constexpr char kExperiments[] = "examples/paper/experiments.csv";
constexpr char kFigures[] = "examples/paper/paper_figures.csv";

std::string PathOr(const std::string& path, const char* fallback) {
  return path.empty() ? absl::StrCat(DataDir(), "/", fallback) : path;
}

}  // namespace

CLI::App* AddReproduceCommand(CLI::App& app, ReproduceFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "reproduce",
      "Simulate every experiment of the Optimus paper by every method and print the result beside "
      "the published figure: error, and whether a constant was fitted or a plan chosen on it.");
  command
      ->add_option(
          "--table", flags.table,
          "Only this table (numbers are ours, not the paper's): 1 bubbles, 2 layer and collective "
          "times, 3 weak scaling, 4 strong scaling, 5 scheduling efficiency, 6 several "
          "encoders, 7 small model, 8 planning time and FLOPs")
      ->type_name("N");
  command
      ->add_option("--figures", flags.figures,
                   absl::StrCat("Published figures to compare with, instead of ", kFigures))
      ->check(NotEmpty)
      ->type_name("FILE.csv");
  command
      ->add_option("--experiments", flags.experiments,
                   absl::StrCat("Tables and experiments, instead of ", kExperiments))
      ->check(NotEmpty)
      ->type_name("FILE.csv");
  AddNoInterferenceFlag(*command, flags.no_interference);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunReproduce(const ReproduceFlags& flags) {
  Progress progress;
  OPTIMUS_ASSIGN_OR_RETURN(
      const PaperData data,
      LoadPaperData(PathOr(flags.experiments, kExperiments), PathOr(flags.figures, kFigures)));
  ReproductionOptions options;
  options.table = flags.table;
  options.no_interference = flags.no_interference;
  options.progress = [&](const std::string& text) { progress.Show(text); };
  OPTIMUS_ASSIGN_OR_RETURN(const Reproduction reproduction,
                           CatchOutOfMemory("optimus reproduce", "simulating",
                                            [&] { return Reproduce(data, options); }));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(
      WriteStdout(flags.json ? ReproductionJson(reproduction) : ReproductionText(reproduction)));
  return kExitSuccess;
}

}  // namespace optimus::tools
