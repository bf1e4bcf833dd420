// The commands of a full build.

#include <utility>

#include "tools/command.h"
#include "tools/llm_search_json.h"
#include "tools/optimus_json.h"
#include "tools/plan_command.h"
#include "tools/published_report.h"
#include "tools/report_json.h"
#include "tools/reproduce_command.h"
#include "tools/reproduction_json.h"
#include "tools/simulate_command.h"
#include "tools/sweep_command.h"
#include "tools/sweep_merge_command.h"
#include "tools/sweep_report.h"
#include "tools/sweep_show_command.h"
#include "tools/sweep_show_json.h"
#include "tools/validate_published_command.h"

namespace optimus::tools {
namespace {

CLI::App* AddSweepShow(CLI::App& app, SweepShowFlags& flags) {
  return AddSweepShowCommand(SweepGroup(app), flags);
}

CLI::App* AddSweepMerge(CLI::App& app, SweepMergeFlags& flags) {
  return AddSweepMergeCommand(SweepGroup(app), flags);
}

}  // namespace

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(OneProcess(&AddSimulateCommand, &RunSimulate));
  commands.push_back(OneProcess(&AddPlanCommand, &RunPlan));
  commands.push_back(OneProcess(&AddReproduceCommand, &RunReproduce));
  // The first that was named runs: subcommands before the command that they belong to.
  commands.push_back(OneProcess(&AddSweepShow, &RunSweepShow));
  commands.push_back(OneProcess(&AddSweepMerge, &RunSweepMerge));
  commands.push_back(OneProcess(&AddSweepCommand, &RunSweepCommand));
  for (std::unique_ptr<Command>& command : MakeExecutorCommands()) {
    commands.push_back(std::move(command));
  }
  commands.push_back(OneProcess(&AddValidatePublishedCommand, &RunValidatePublished));
  return commands;
}

std::vector<JsonSection> JsonSections() {
  std::vector<JsonSection> sections = {
      {"`optimus simulate`: one experiment is one object, several are `{\"results\": [...]}`, "
       "each with `speed_up` and `reduction_percent` (of the step time) against the first. "
       "Names that end in `_gib` and the FLOP figures are left out where the input (profiled "
       "stages, a schedule file) does not say them.",
       JsonFields()},
      {"`optimus plan`:", PlanJsonFields()},
      {"`optimus plan --search-llm`:", LlmSearchJsonFields()},
      {"`optimus reproduce`:", ReproduceJsonFields()},
      {"`optimus sweep`:", SweepJsonFields()},
      {"`optimus sweep show`:", SweepShowJsonFields()}};
  for (const JsonSection& section : ExecutorJsonSections()) sections.push_back(section);
  sections.push_back({"`optimus validate published`:", PublishedJsonFields()});
  return sections;
}

}  // namespace optimus::tools
