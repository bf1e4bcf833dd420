// The commands of a full build.

#include "tools/command.h"
#include "tools/optimus_json.h"
#include "tools/plan_command.h"
#include "tools/profile_command.h"
#include "tools/profile_json.h"
#include "tools/report_json.h"
#include "tools/reproduce_command.h"
#include "tools/reproduction_json.h"
#include "tools/run_command.h"
#include "tools/run_json.h"
#include "tools/simulate_command.h"
#include "tools/validate_command.h"
#include "tools/validation_json.h"

namespace optimus::tools {
std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(OneProcess(&AddSimulateCommand, &RunSimulate));
  commands.push_back(OneProcess(&AddPlanCommand, &RunPlan));
  commands.push_back(OneProcess(&AddReproduceCommand, &RunReproduce));
  commands.push_back(ManyRanks(&AddRunCommand, &RunRun));
  commands.push_back(ManyRanks(&AddProfileCommand, &RunProfile));
  commands.push_back(ManyRanks(&AddValidateRunCommand, &RunValidateRun));
  commands.push_back(OneProcess(&AddValidateTimelinesCommand, &RunValidateTimelines));
  return commands;
}

std::vector<JsonSection> JsonSections() {
  return {{"`optimus simulate`: one experiment is one object, several are `{\"results\": [...]}`, "
           "each with `speed_up` and `reduction_percent` (of the step time) against the first. "
           "Names that end in `_gib` and the FLOP figures are left out where the input (profiled "
           "stages, a schedule file) does not say them.",
           JsonFields()},
          {"`optimus plan`:", PlanJsonFields()},
          {"`optimus reproduce`:", ReproduceJsonFields()},
          {RunJsonIntroduction(), RunJsonFields()},
          {"`optimus profile`:", ProfileJsonFields()},
          {"`optimus validate run`:", ValidationJsonFields()},
          {"`optimus validate timelines`:", ComparisonJsonFields()}};
}

}  // namespace optimus::tools
