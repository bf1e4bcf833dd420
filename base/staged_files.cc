#include "base/staged_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/write_all.h"

namespace optimus {
namespace {

namespace fs = std::filesystem;
constexpr int kMaxLinks = 40;  // as Linux

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat(path, ": cannot write: ", std::strerror(error)));
}

// Writes all of `content` and closes; 0 or an errno. A full disk may be seen by close only.
int WriteAndClose(int descriptor, const std::string& content) {
  int error = WriteAll(descriptor, content) ? 0 : errno;
  if (close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

// Short, whatever the target is called, so that it is never the temporary name that is too long.
std::string TemporaryBeside(const std::string& target, std::size_t number) {
  const std::string name = absl::StrCat(".optimus.", getpid(), ".", number, ".tmp");
  return (fs::path(target).parent_path() / name).string();
}

}  // namespace

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    const fs::path to = fs::read_symlink(at, error);
    if (error || links == kMaxLinks) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": too many symbolic links"));
    }
    at = at.parent_path() / to;  // `to` alone where it is absolute
  }
  return at.string();
}

std::string FileIdentity(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "";
    return absl::StrCat("inode ", info.st_dev, ":", info.st_ino);
  }
  std::error_code error;
  const fs::path target = fs::absolute(FollowLinks(path).value_or(path), error);
  const fs::path canonical = fs::weakly_canonical(target, error);
  fs::path normal = (error ? target : canonical).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();  // "folder/"
  return absl::StrCat("path ", normal.string());
}

StagedFiles::~StagedFiles() {
  for (const Staged& file : staged_) {
    if (!file.renamed) {
      std::remove(file.temporary.c_str());
      if (!file.old.empty()) std::remove(file.old.c_str());
    } else if (!file.old.empty()) {
      std::rename(file.old.c_str(), file.target.c_str());
    } else if (!file.replaces) {
      std::remove(file.target.c_str());
    }
  }
  // Innermost first. One that someone else put a file into stays.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    rmdir(folder->c_str());
  }
}

absl::Status StagedFiles::CreateFolders(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> missing;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at.string());  // not for "folder/"
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (mkdir(at->c_str(), 0777) == 0) {
      folders_.push_back(*at);
    } else if (errno != EEXIST) {
      return absl::UnavailableError(
          absl::StrCat(*at, ": cannot create the folder: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::Status StagedFiles::Add(const std::string& path, std::string content) {
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot write: is a folder"));
  }
  if (exists && !S_ISREG(info.st_mode)) {
    in_place_.emplace_back(path, std::move(content));
    return absl::OkStatus();
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  const std::string temporary = TemporaryBeside(target, staged_.size());
  std::remove(temporary.c_str());  // left by a killed process that had our number
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return CannotWrite(path, errno);
  staged_.push_back({.path = path, .target = target, .temporary = temporary, .replaces = exists});
  // The new file keeps the old one's permissions.
  if (exists && fchmod(descriptor, info.st_mode & 07777) != 0) {
    const int error = errno;
    close(descriptor);
    return CannotWrite(path, error);
  }
  const int error = WriteAndClose(descriptor, content);
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

absl::Status StagedFiles::Commit() {
  for (const auto& [path, content] : in_place_) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return CannotWrite(path, errno);
    const int error = WriteAndClose(descriptor, content);
    if (error != 0) return CannotWrite(path, error);
  }
  in_place_.clear();
  for (Staged& file : staged_) OPTIMUS_RETURN_IF_ERROR(Rename(file));
  for (const Staged& file : staged_) {
    if (!file.old.empty()) std::remove(file.old.c_str());
  }
  staged_.clear();
  folders_.clear();
  return absl::OkStatus();
}

absl::Status StagedFiles::Rename(Staged& file) {
  // Where there are no hard links the old file cannot be kept, which only a later error would need.
  const std::string old = file.temporary + ".old";
  std::remove(old.c_str());
  if (link(file.target.c_str(), old.c_str()) == 0) file.old = old;
  if (std::rename(file.temporary.c_str(), file.target.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat(file.path, ": cannot rename into place: ", std::strerror(errno)));
  }
  file.renamed = true;
  return absl::OkStatus();
}

}  // namespace optimus
