// A folder of its own for a test's files: tests of one binary run at the same time.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace optimus {

class TestingFolder {
 public:
  TestingFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "optimus_test_XXXXXX")
                              .lexically_normal()
                              .string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TestingFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TestingFolder(const TestingFolder&) = delete;
  TestingFolder& operator=(const TestingFolder&) = delete;

  // Empty where none could be made: files written under it then fail to be read.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace optimus
