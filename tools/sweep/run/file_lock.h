#pragma once
// One sweep at a time writes a database.

#include <string>

#include "absl/status/statusor.h"

namespace optimus::sweep {

// flock(2) on the file, until this object is destroyed or the process ends, however it ends.
// SQLite's own locks are of another kind, and in this process are lost when the file is closed:
// close the database first.
class FileLock {
 public:
  // Waits a moment: processes of a sweep that was killed may still be ending. FAILED_PRECONDITION
  // where another process has it.
  static absl::StatusOr<FileLock> Take(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace optimus::sweep
