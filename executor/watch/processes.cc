#include "executor/watch/processes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace optimus::executor {
namespace {

// /proc/PID/stat from field 3 (the state) on: field 2, the name, may hold anything but ends with
// the last ')'.
std::vector<std::string> StatFields(std::int32_t pid) {
  const std::string text = ProcessFile(pid, "stat");
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(text.substr(name_end + 2), ' ');
}

constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 4 - 3;
constexpr std::size_t kStartTime = 22 - 3;

std::int64_t ParseStartTime(const std::vector<std::string>& fields) {
  std::int64_t time = 0;
  return absl::SimpleAtoi(fields[kStartTime], &time) ? time : 0;
}

bool IsDefunct(const std::vector<std::string>& fields) {
  return fields[kState] == "Z" || fields[kState] == "X";
}

bool HasEnded(const ProcessId& process) {
  const std::vector<std::string> fields = StatFields(process.pid);
  if (fields.size() <= kStartTime) return true;
  return IsDefunct(fields) || ParseStartTime(fields) != process.start_time;
}

int OpenPidFile(std::int32_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  return -1;
#endif
}

}  // namespace

std::string ProcessFile(std::int32_t pid, const char* file) {
  std::ifstream stream(absl::StrCat("/proc/", pid, "/", file));
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

std::optional<std::int64_t> StartTimeOf(std::int32_t pid) {
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.size() <= kStartTime) return std::nullopt;
  return ParseStartTime(fields);
}

std::int32_t ParentOf(std::int32_t pid) {
  const std::vector<std::string> fields = StatFields(pid);
  std::int32_t parent = 0;
  if (fields.size() <= kParent || IsDefunct(fields)) return 0;
  return absl::SimpleAtoi(fields[kParent], &parent) ? parent : 0;
}

bool IsStopped(std::int32_t pid) {
  const std::vector<std::string> fields = StatFields(pid);
  return !fields.empty() && (fields[kState] == "T" || fields[kState] == "t");
}

Processes::Processes(std::vector<ProcessId> processes)
    : processes_(std::move(processes)), gone_(processes_.size()) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    files_.push_back({OpenPidFile(processes_[i].pid), POLLIN, 0});
    gone_[i] = HasEnded(processes_[i]);  // the pidfd may be of a successor
    if (files_[i].fd < 0) all_have_files_ = false;
  }
}

Processes::~Processes() {
  for (const pollfd& file : files_) {
    if (file.fd >= 0) close(file.fd);
  }
}

void Processes::Refresh() {
  if (poll(files_.data(), files_.size(), 0) > 0) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].fd >= 0 && files_[i].revents != 0) gone_[i] = true;
    }
  }
  if (!all_have_files_) LookIntoProc();
}

void Processes::LookIntoProc() {
  const absl::Time now = absl::Now();
  if (now < next_look_) return;
  next_look_ = now + absl::Seconds(1);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].fd < 0 && !gone_[i]) gone_[i] = HasEnded(processes_[i]);
  }
}

}  // namespace optimus::executor
