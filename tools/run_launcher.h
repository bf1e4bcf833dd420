#pragma once
// Runs a launcher of ranks as a child of this process, so that somebody is left to say why it ended
// when the ranks were not quick enough, or the launcher did not pass on what they said.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optimus::tools {

// Looks for our errors in what comes in pieces.
class ErrorFinder {
 public:
  void Add(absl::string_view piece);
  bool found() const { return found_; }

 private:
  std::string tail_;  // what may be the begin of one
  bool found_ = false;
};

// Waits for its end; its standard error is passed on. SIGINT, SIGTERM and SIGHUP end it, and so
// does the end of this process. The exit code, if it is that of a run that came to its end (0, 2)
// or a rank has said why; else an error that says what is known. NOT_FOUND: the program cannot be
// started.
absl::StatusOr<int> RunLauncher(std::vector<std::string> words);

}  // namespace optimus::tools
