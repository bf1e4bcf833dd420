#include "base/beside.h"

#include <filesystem>

namespace optimus {

std::string Beside(const std::string& file, const std::string& path) {
  if (std::filesystem::path(path).is_absolute()) return path;
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

}  // namespace optimus
