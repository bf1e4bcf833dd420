#pragma once
// docs/commands.md, made from the definitions of the commands themselves.

#include <string>

#include "CLI/App.hpp"

namespace optimus::tools {

// Markdown: every command with its description, arguments and flags.
std::string CommandReference(const CLI::App& app);

}  // namespace optimus::tools
