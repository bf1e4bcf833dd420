#pragma once
// `optimus explain` in words and tables.

#include <string>

#include "tools/explain_report.h"

namespace optimus::tools {

// `top`: how many stretches of the critical path are shown, the longest.
std::string ExplainText(const ExplainReport& report, std::size_t top);

}  // namespace optimus::tools
