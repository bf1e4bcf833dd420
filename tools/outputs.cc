#include "tools/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optimus::tools {
namespace {

namespace fs = std::filesystem;

absl::Status CheckDirectoryAccess(const std::string& flag, const std::string& path,
                                  const fs::path& directory) {
  if (access(directory.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", path, ": cannot write in ",
                                                 directory.string(), ": ", std::strerror(errno)));
}

}  // namespace

absl::Status WriteStdout(const std::string& text) {
  // Straight to the descriptor: an error is seen here, not in a flush after main.
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return absl::UnavailableError(absl::StrCat("standard output: ", std::strerror(errno)));
    }
    written += static_cast<std::size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status CheckWritableFile(const std::string& flag, const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, ": is a folder; name a file in it"));
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, ": no folder ", folder.string(), "; create it first"));
  }
  return CheckDirectoryAccess(flag, path, folder);
}

absl::Status CheckWritableDirectory(const std::string& flag, const std::string& directory) {
  std::error_code ignored;
  // The nearest ancestor that exists must be a folder that we may write in.
  fs::path existing = fs::absolute(directory, ignored).lexically_normal();
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (!fs::is_directory(existing, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", directory, ": ", existing.string(), " is not a folder"));
  }
  return CheckDirectoryAccess(flag, directory, existing);
}

absl::Status WriteFiles(const std::string& directory, const std::vector<OutputFile>& files) {
  if (!directory.empty()) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat(directory, ": cannot create the folder: ", error.message()));
    }
  }
  for (const OutputFile& file : files) {
    OPTIMUS_RETURN_IF_ERROR(WriteFileAtomically(file.path, file.content));
  }
  return absl::OkStatus();
}

std::string FileName(const std::string& name) {
  std::string out = name;
  for (char& c : out) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  if (out.empty() || out.front() == '.') out.insert(out.begin(), '_');
  return out;
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Show(const std::string& text) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace optimus::tools
