#pragma once
// `optimus replay` in words and tables.

#include <string>

#include "tools/replay_report.h"

namespace optimus::tools {

std::string ReplayText(const ReplayReport& report);

}  // namespace optimus::tools
