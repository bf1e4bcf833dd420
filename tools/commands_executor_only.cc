// The commands of a build without the simulator.

#include "tools/command.h"

namespace optimus::tools {

std::vector<std::unique_ptr<Command>> MakeCommands() { return MakeExecutorCommands(); }
std::vector<JsonSection> JsonSections() { return ExecutorJsonSections(); }

}  // namespace optimus::tools
