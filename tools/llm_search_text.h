#pragma once
// Searches of the LLM's plan for people.

#include <string>

#include "tools/llm_search_report.h"

namespace optimus::tools {

// `top`: how many plans the table has; the experiment's own is always in it.
std::string LlmSearchText(const LlmSearchReport& report, int top);

}  // namespace optimus::tools
