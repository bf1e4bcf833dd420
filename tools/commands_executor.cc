// The commands that every build has.

#include "tools/command.h"
#include "tools/explain_json.h"
#include "tools/profile_command.h"
#include "tools/profile_json.h"
#include "tools/replay_command.h"
#include "tools/replay_json.h"
#include "tools/run_command.h"
#include "tools/run_json.h"
#include "tools/schedule_command.h"
#include "tools/trace_command.h"
#include "tools/trace_info.h"
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
  commands.push_back(OneProcess(&AddReplayCommand, &RunReplay));
  commands.push_back(OneProcess(&AddExplainCommand, &RunExplain));
  commands.push_back(OneProcess(&AddTraceConvertCommand, &RunTraceConvert));
  commands.push_back(OneProcess(&AddTraceInfoCommand, &RunTraceInfo));
  return commands;
}

std::vector<JsonSection> ExecutorJsonSections() {
  return {{RunJsonIntroduction(), RunJsonFields()},
          {"`optimus profile`:", ProfileJsonFields()},
          {"`optimus validate run`:", ValidationJsonFields()},
          {"`optimus validate timelines`:", ComparisonJsonFields()},
          {"`optimus replay`:", ReplayJsonFields()},
          {"`optimus explain`:", ExplainJsonFields()},
          {"`optimus trace info`:", TraceInfoJsonFields()}};
}

}  // namespace optimus::tools
