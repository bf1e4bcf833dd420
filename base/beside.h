#pragma once
// Paths that stand in a file.

#include <string>

namespace optimus {

// `path`, which stands in `file` and is looked for beside it, as a path from the current folder.
std::string Beside(const std::string& file, const std::string& path);

}  // namespace optimus
