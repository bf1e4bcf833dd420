#pragma once
// Where results go: standard output, and files that are whole or absent.

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace optimus::tools {

// Writes all of `text` to standard output. UNAVAILABLE if it is closed or full.
absl::Status WriteStdout(const std::string& text);

struct OutputFile {
  std::string path, content;
};

// Said before any work: whether `path` can become a file, or `directory` a folder with files.
absl::Status CheckWritableFile(const std::string& flag, const std::string& path);
absl::Status CheckWritableDirectory(const std::string& flag, const std::string& directory);

// Each file atomically; `directory` (may be empty) is created first.
absl::Status WriteFiles(const std::string& directory, const std::vector<OutputFile>& files);

// A file name made of `name`: letters, digits, '.', '-' and '_'; everything else becomes '_'.
std::string FileName(const std::string& name);

// One line on standard error that is replaced by the next and wiped at the end; nothing where
// standard error is no terminal.
class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Show(const std::string& text);
  void Clear();

 private:
  bool terminal_ = false;
  bool shown_ = false;
};

}  // namespace optimus::tools
