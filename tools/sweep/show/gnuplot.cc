#include "tools/sweep/show/gnuplot.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/write_all.h"
#include "tools/sweep/show/plot.h"
#include "tools/sweep/show/plot_pieces.h"

namespace optimus::sweep {
namespace {

absl::Status SystemError(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat("--plot: cannot ", what, ": ", std::strerror(error)));
}

// A file in memory: whatever is written never blocks, as a pipe would.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }
  bool Fill(const std::string& text) const {
    return WriteAll(descriptor_, text) && lseek(descriptor_, 0, SEEK_SET) == 0;
  }
  std::string Content() const {
    std::string content;
    std::array<char, 65536> buffer{};
    off_t at = 0;
    for (;;) {
      const ssize_t count = pread(descriptor_, buffer.data(), buffer.size(), at);
      if (count <= 0) return content;
      content.append(buffer.data(), static_cast<std::size_t>(count));
      at += count;
    }
  }

 private:
  int descriptor_;
};

// Starts `gnuplot -d` (without anybody's settings): 0 or an errno.
int Start(const MemoryFile& in, const MemoryFile& out, const MemoryFile& errors, pid_t& child) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  std::string name = "gnuplot", defaults = "-d", standard_input = "-";
  std::array<char*, 4> arguments = {name.data(), defaults.data(), standard_input.data(), nullptr};
  const int error =
      posix_spawnp(&child, name.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

std::string Terminal(PlotFormat format) {
  const std::string size = absl::StrCat(" size ", kPlotWidth, ",", kPlotHeight);
  // cairo counts letters in points of 96 pixels an inch; its marks are smaller.
  const std::string font = absl::StrCat(
      " font '",
      format == PlotFormat::kSvg ? "DejaVu Sans,Helvetica,Arial,sans-serif" : "DejaVu Sans", ",",
      kLetterSize, "' background rgb 'white'");
  return format == PlotFormat::kSvg
             ? absl::StrCat("set terminal svg", size, font, "\nmark = 0.65\n")
             : absl::StrCat("set terminal pngcairo", size, font, " fontscale 0.75\nmark = 1\n");
}

// The lines in which gnuplot says what is wrong, as one.
std::string Complaint(const std::string& errors) {
  std::string text = errors;
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&text);
  return text.empty() ? "it says nothing" : text;
}

}  // namespace

absl::StatusOr<PlotFormat> FormatOf(const std::string& flag, const std::string& path) {
  if (absl::EndsWith(path, ".svg")) return PlotFormat::kSvg;
  if (absl::EndsWith(path, ".png")) return PlotFormat::kPng;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", path, ": plots are written as .svg or .png"));
}

absl::StatusOr<std::string> DrawPlot(const std::string& script, PlotFormat format) {
  const MemoryFile in("script"), out("image"), errors("errors");
  if (in.descriptor() < 0 || out.descriptor() < 0 || errors.descriptor() < 0 ||
      !in.Fill(absl::StrCat(Terminal(format), script))) {
    return SystemError("keep the script in memory", errno);
  }
  pid_t child = -1;
  if (const int error = Start(in, out, errors, child); error == ENOENT) {
    return absl::FailedPreconditionError(
        "--plot: gnuplot is not installed (Debian's package gnuplot-nox); --plot-script writes its "
        "input without it");
  } else if (error != 0) {
    return SystemError("start gnuplot", error);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return SystemError("wait for gnuplot", errno);
  }
  std::string image = out.Content();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || image.empty()) {
    return absl::InternalError(
        absl::StrCat("--plot: gnuplot stopped: ", Complaint(errors.Content())));
  }
  return image;
}

}  // namespace optimus::sweep
