#pragma once
// Where results go: checks of what a run reads and writes, standard output, progress.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace optimus::tools {

// Writes all of `text` to standard output. UNAVAILABLE if it is closed or full.
absl::Status WriteStdout(const std::string& text);

// One line on standard error beside exit code 2: what is outside the limit that was asked for.
void SayCheckFailed(const std::string& what);

// Said before any work: whether `path` can become a file, or `directory` a folder with files.
absl::Status CheckWritableFile(const std::string& flag, const std::string& path);
// Weaker, for a file in a folder that is made later: only that its name is no folder or too long.
absl::Status CheckReplaceable(const std::string& flag, const std::string& path);
absl::Status CheckWritableDirectory(const std::string& flag, const std::string& directory);

// A file that a run reads or writes, and what names it: "--trace", "FILE", "hardware.profile".
struct NamedFile {
  std::string origin, path;
};

// "wrote a.svg, b.csv"; empty where nothing was to be written.
std::string WroteText(const std::vector<NamedFile>& files);

// Refuses, naming both, an output that is an input, that is standard output, or that two flags
// write, whatever links and spellings lead to it. Devices and pipes may be shared.
absl::Status CheckOverwrites(const std::vector<NamedFile>& inputs,
                             const std::vector<NamedFile>& outputs);

// A file name made of `name`: letters, digits, '.', '-' and '_'; everything else becomes '_'.
std::string FileName(const std::string& name);

// Of Progress, for runs that may take hours.
constexpr absl::Duration kLogEvery = absl::Minutes(1);

// One line on standard error that is replaced by the next and wiped at the end. Where standard
// error is no terminal: nothing, or for runs of hours, whose standard error becomes a log, a line
// of its own every `log_every`.
class Progress {
 public:
  explicit Progress(absl::Duration log_every = absl::InfiniteDuration());
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Show(const std::string& text);
  void Clear();
  // A line that stays. Nothing where `text` is empty.
  void Say(const std::string& text);

 private:
  void Log(const std::string& text);
  bool terminal_ = false;
  bool shown_ = false;
  absl::Duration log_every_;
  absl::Time logged_;
};

}  // namespace optimus::tools
