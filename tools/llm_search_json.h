#pragma once
// Searches of the LLM's plan for machines.

#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/llm_search_report.h"

namespace optimus::tools {

// The whole output of `optimus plan --search-llm --json`. `top` as LlmSearchText.
std::string LlmSearchJson(const LlmSearchReport& report, int top);

// Every name of it with its meaning, for the command reference.
absl::Span<const JsonField> LlmSearchJsonFields();

}  // namespace optimus::tools
