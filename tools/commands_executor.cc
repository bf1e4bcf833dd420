// The commands that every build has.

#include "tools/command.h"
#include "tools/profile_command.h"
#include "tools/profile_json.h"
#include "tools/run_command.h"
#include "tools/run_json.h"
#include "tools/schedule_command.h"
#include "tools/validate_command.h"
#include "tools/validation_json.h"

namespace optimus::tools {

std::vector<std::unique_ptr<Command>> MakeExecutorCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(ManyRanks(&AddRunCommand, &RunRun));
  commands.push_back(ManyRanks(&AddProfileCommand, &RunProfile));
  commands.push_back(ManyRanks(&AddValidateRunCommand, &RunValidateRun));
  commands.push_back(OneProcess(&AddValidateTimelinesCommand, &RunValidateTimelines));
  commands.push_back(OneProcess(&AddScheduleExportCommand, &RunScheduleExport));
  return commands;
}

std::vector<JsonSection> ExecutorJsonSections() {
  return {{RunJsonIntroduction(), RunJsonFields()},
          {"`optimus profile`:", ProfileJsonFields()},
          {"`optimus validate run`:", ValidationJsonFields()},
          {"`optimus validate timelines`:", ComparisonJsonFields()}};
}

}  // namespace optimus::tools
