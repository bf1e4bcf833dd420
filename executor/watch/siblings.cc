#include "executor/watch/siblings.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "executor/watch/processes.h"
#include "executor/watch/termination.h"

namespace optimus::executor {
namespace {

namespace fs = std::filesystem;

// Texts that end with a zero each.
std::vector<std::string> Texts(const std::string& content) {
  std::vector<std::string> texts = absl::StrSplit(content, '\0');
  if (!texts.empty() && texts.back().empty()) texts.pop_back();
  return texts;
}

std::optional<int> RankOf(std::int32_t pid, const std::string& variable) {
  for (const std::string& text : Texts(ProcessFile(pid, "environ"))) {
    absl::string_view value = text;
    int rank = 0;
    if (absl::ConsumePrefix(&value, variable) && absl::ConsumePrefix(&value, "=") &&
        absl::SimpleAtoi(value, &rank)) {
      return rank;
    }
  }
  return std::nullopt;
}

std::string Executable(std::int32_t pid) {
  std::error_code failed;
  const fs::path path = fs::read_symlink(absl::StrCat("/proc/", pid, "/exe"), failed);
  return failed ? "" : path.string();
}

Sibling Describe(std::int32_t pid, int rank) {
  Sibling sibling;
  sibling.pid = pid;
  sibling.rank = rank;
  const std::string executable = Executable(pid);
  sibling.program = fs::path(executable).filename().string();
  sibling.same_program = !executable.empty() && executable == Executable(getpid());
  sibling.stopped = IsStopped(pid);
  sibling.arguments = Texts(ProcessFile(pid, "cmdline"));
  if (!sibling.arguments.empty()) sibling.arguments.erase(sibling.arguments.begin());
  return sibling;
}

// All of the machine. One that ends meanwhile has no parent.
std::vector<std::int32_t> ChildrenOf(std::int32_t parent) {
  std::vector<std::int32_t> children;
  std::error_code failed;
  for (fs::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::int32_t pid = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &pid) && ParentOf(pid) == parent) {
      children.push_back(pid);
    }
  }
  return children;
}

// Whoever does not ends at once, without a word, when the launcher sends SIGTERM.
bool HoldsTerminationSignals(std::int32_t pid) {
  constexpr absl::string_view kBlocked = "\nSigBlk:\t";  // then a mask, hexadecimal
  const std::string status = ProcessFile(pid, "status");
  const std::size_t at = status.find(kBlocked.data(), 0, kBlocked.size());
  if (at == std::string::npos) return false;
  const std::uint64_t mask = std::strtoull(status.c_str() + at + kBlocked.size(), nullptr, 16);
  return (mask >> static_cast<unsigned>(SIGTERM - 1) & 1U) != 0;
}

}  // namespace

std::optional<std::vector<Sibling>> FindSiblings(const std::string& variable) {
  const std::int32_t parent = getppid();
  if (!RankOf(getpid(), variable).has_value() || RankOf(parent, variable).has_value()) {
    return std::nullopt;
  }
  std::vector<Sibling> siblings;
  for (const std::int32_t pid : ChildrenOf(parent)) {
    const std::optional<int> rank = RankOf(pid, variable);
    if (rank.has_value()) siblings.push_back(Describe(pid, *rank));
  }
  std::sort(siblings.begin(), siblings.end(),
            [](const Sibling& a, const Sibling& b) { return a.rank < b.rank; });
  return siblings;
}

std::optional<Sibling> WhoSpeaksInstead(const std::vector<Sibling>& siblings) {
  for (const Sibling& sibling : siblings) {
    if (sibling.pid == getpid()) return std::nullopt;
    if (sibling.same_program && !sibling.stopped) return sibling;
  }
  return std::nullopt;
}

// Those that are just starting may hold signals back soon, and would then have something to say.
// One that is stopped ends with this signal as soon as the launcher lets it go on.
void TellSiblingsThatAllIsSaid(const std::string& variable) {
  constexpr absl::Duration kPatience = absl::Milliseconds(300);
  const absl::Time end = absl::Now() + kPatience;
  std::set<std::int32_t> told = {getpid()};
  bool all = false;
  while (!all) {
    all = true;
    for (const Sibling& sibling : FindSiblings(variable).value_or(std::vector<Sibling>())) {
      if (!sibling.same_program || told.count(sibling.pid) > 0) continue;
      if (sibling.stopped || HoldsTerminationSignals(sibling.pid)) {
        TellThatAllIsSaid(sibling.pid);
        told.insert(sibling.pid);
      } else {
        all = false;
      }
    }
    if (absl::Now() > end) return;
    if (!all) absl::SleepFor(absl::Milliseconds(30));
  }
}

}  // namespace optimus::executor
