#pragma once
// A set of files that appears whole or not at all: every file is first written under a temporary
// name beside its target, and all are renamed at the end.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optimus {

class StagedFiles {
 public:
  StagedFiles() = default;
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;
  // Without Commit, removes every temporary file, and every folder made here.
  ~StagedFiles();

  // Makes `folder` and those above it that are missing.
  absl::Status CreateFolders(const std::string& folder);

  // Writes the temporary file of `path`. A link is followed: its target is replaced, not the link.
  // What exists and is no regular file (a device, a pipe) keeps its place: `content` is written
  // into it by Commit. A folder is refused. UNAVAILABLE, naming `path`, if it cannot be written.
  absl::Status Add(const std::string& path, std::string content);

  // Writes devices and pipes, which can still fail, then renames. If a rename fails, those before
  // it are taken back.
  absl::Status Commit();

 private:
  struct Staged {
    std::string path, target, temporary;
    bool replaces = false;  // the target existed
    bool renamed = false;
    std::string old = {};  // a second name of the replaced file while Commit may still fail
  };
  absl::Status Rename(Staged& file);
  std::vector<Staged> staged_;
  std::vector<std::pair<std::string, std::string>> in_place_;  // path, content
  std::vector<std::string> folders_;                           // made here, outermost first
};

// `path` with every link of its last component followed, also where the last one leads nowhere.
// INVALID_ARGUMENT if they go round in a circle.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

// Equal for two paths exactly if they name the same file, whether or not it exists yet. Empty for
// devices and pipes: two can be written to one.
std::string FileIdentity(const std::string& path);

}  // namespace optimus
