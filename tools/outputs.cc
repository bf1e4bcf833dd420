#include "tools/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "base/write_all.h"
#include "tools/printable.h"

namespace optimus::tools {
namespace {

namespace fs = std::filesystem;

// `place` is where `path` is written: itself, or its folder.
absl::Status CheckAccess(const std::string& flag, const std::string& path, const fs::path& place,
                         int mode) {
  if (access(place.c_str(), mode) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", path, ": cannot write in ",
                                                 place.string(), ": ", std::strerror(errno)));
}

absl::Status CheckLength(const std::string& flag, const std::string& path) {
  std::size_t longest = 0;
  for (const fs::path& part : fs::path(path)) longest = std::max(longest, part.native().size());
  if (longest <= NAME_MAX && path.size() < PATH_MAX) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": ", path, ": a name in it has ", longest, " bytes, all of it ", path.size(),
      "; at most ", NAME_MAX, " and ", PATH_MAX - 1, " are possible; use a shorter name"));
}

}  // namespace

absl::Status WriteStdout(const std::string& text) {
  // Straight to the descriptor: an error is seen here, not in a flush after main.
  if (WriteAll(STDOUT_FILENO, text)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("standard output: ", std::strerror(errno)));
}

void SayCheckFailed(const std::string& what) {
  std::fputs(absl::StrCat("optimus: not met: ", Printable(what), "\n").c_str(), stderr);
  std::fflush(stderr);
}

absl::Status CheckReplaceable(const std::string& flag, const std::string& path) {
  OPTIMUS_RETURN_IF_ERROR(CheckLength(flag, path));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, ": is a folder; name a file in it"));
  }
  return absl::OkStatus();
}

absl::Status CheckWritableFile(const std::string& flag, const std::string& path) {
  OPTIMUS_RETURN_IF_ERROR(CheckReplaceable(flag, path));
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    return CheckAccess(flag, path, path, W_OK);  // a device or pipe is written where it is
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  fs::path folder = fs::path(target).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, ": no folder ", folder.string(), "; create it first"));
  }
  return CheckAccess(flag, path, folder, W_OK | X_OK);
}

absl::Status CheckWritableDirectory(const std::string& flag, const std::string& directory) {
  OPTIMUS_RETURN_IF_ERROR(CheckLength(flag, directory));
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
  return CheckAccess(flag, directory, existing, W_OK | X_OK);
}

absl::Status CheckOverwrites(const std::vector<NamedFile>& inputs,
                             const std::vector<NamedFile>& outputs) {
  std::map<std::string, const NamedFile*> readers;
  for (const NamedFile& input : inputs) readers.emplace(FileIdentity(input.path), &input);
  const NamedFile standard_output{"standard output", "/dev/stdout"};
  std::map<std::string, const NamedFile*> writers = {
      {FileIdentity(standard_output.path), &standard_output}};
  for (const NamedFile& output : outputs) {
    const std::string identity = FileIdentity(output.path);
    if (identity.empty()) continue;
    if (const auto reader = readers.find(identity); reader != readers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(output.origin, " would overwrite an input: ", output.path, " is the ",
                       reader->second->origin, " ", reader->second->path, "; give another name"));
    }
    const auto [writer, is_new] = writers.emplace(identity, &output);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(output.origin, " and ", writer->second->origin,
                                                     " would both write ", output.path,
                                                     "; give another name"));
    }
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

std::string WroteText(const std::vector<NamedFile>& files) {
  if (files.empty()) return "";
  return absl::StrCat("wrote ",
                      absl::StrJoin(files, ", ", [](std::string* out, const NamedFile& file) {
                        absl::StrAppend(out, file.path);
                      }));
}

Progress::Progress(absl::Duration log_every)
    : terminal_(isatty(STDERR_FILENO) == 1), log_every_(log_every), logged_(absl::Now()) {}

void Progress::Log(const std::string& text) {
  const absl::Time now = absl::Now();
  if (now - logged_ < log_every_) return;
  logged_ = now;
  std::fprintf(stderr, "%s\n", Printable(text).c_str());
}

void Progress::Show(const std::string& text) {
  if (!terminal_) return Log(text);
  std::fprintf(stderr, "\r\033[K%s", Printable(text).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Say(const std::string& text) {
  Clear();
  if (!terminal_ || text.empty()) return;
  std::fprintf(stderr, "%s\n", Printable(text).c_str());
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace optimus::tools
