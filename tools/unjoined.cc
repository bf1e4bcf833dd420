#include "tools/unjoined.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "executor/runtime/rank_numbers.h"
#include "executor/torchrun/environment.h"
#include "executor/watch/processes.h"
#include "executor/watch/siblings.h"
#include "executor/watch/termination.h"
#include "tools/launched.h"

namespace optimus::tools {
namespace {

using executor::Sibling;
using Siblings = std::optional<std::vector<Sibling>>;

// Launchers end the other ranks within a second after one has ended with an error.
constexpr absl::Duration kLauncherEndsUs = absl::Milliseconds(1300);
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);
// Starting many ranks on few cores takes long; nobody is missed before.
constexpr absl::Duration kLeastJoining = absl::Seconds(30);
constexpr absl::Duration kEnding = absl::Seconds(10);

int NumberIn(const char* variable) {
  int number = 0;
  const auto text = executor::ProcessEnvironment()(variable);
  return text.has_value() && absl::SimpleAtoi(*text, &number) ? number : 0;
}

Siblings OfThisNode() {
  const std::string variable = RankVariable();
  return variable.empty() ? std::nullopt : executor::FindSiblings(variable);
}

// Where all ranks are on this node, those that are not among `siblings`.
std::vector<int> Missing(const std::vector<Sibling>& siblings) {
  const int ranks = ThisLauncher().ranks;
  const bool one_node =
      NumberIn("OMPI_COMM_WORLD_LOCAL_SIZE") == ranks || NumberIn("SLURM_STEP_NUM_NODES") == 1;
  std::vector<int> missing;
  for (int rank = 0; one_node && rank < ranks; ++rank) {
    const bool there = std::any_of(siblings.begin(), siblings.end(),
                                   [rank](const Sibling& each) { return each.rank == rank; });
    if (!there) missing.push_back(rank);
  }
  return missing;
}

// Why ranks of this node will not do what they should: "rank 1 is stopped (SIGSTOP)"; empty: no
// reason is known. Those that have ended: only where that is wrong.
enum class Until { kJoined, kEnded };
std::string WhoIsAmiss(const Siblings& siblings, Until until) {
  if (!siblings.has_value()) return "";
  std::vector<std::string> reasons;
  std::vector<int> stopped;
  for (const Sibling& sibling : *siblings) {
    if (sibling.stopped) {
      stopped.push_back(sibling.rank);
    } else if (!sibling.same_program) {
      reasons.push_back(
          absl::StrCat("rank ", sibling.rank, " is the program '", sibling.program, "'"));
    }
  }
  const auto say = [&reasons](const std::vector<int>& ranks, const char* one, const char* many) {
    if (!ranks.empty())
      reasons.push_back(absl::StrCat(executor::RanksText(ranks), ranks.size() == 1 ? one : many));
  };
  say(stopped, " is stopped (SIGSTOP)", " are stopped (SIGSTOP)");
  if (until == Until::kJoined) say(Missing(*siblings), " has ended", " have ended");
  return absl::StrJoin(reasons, ", ");
}

// Whether another rank says what is to be said: the lowest of this node that can, or somebody on
// the node of rank 0. It gets the time to.
bool AnotherSpeaks(const Siblings& siblings, absl::Duration patience) {
  const auto speaker = siblings.has_value() ? executor::WhoSpeaksInstead(*siblings) : std::nullopt;
  const auto is_first = [](const Sibling& each) { return each.rank == 0; };
  const bool with_first =
      siblings.has_value()
          ? std::any_of(siblings->begin(), siblings->end(), is_first) || !Missing(*siblings).empty()
          : LaunchedRank() == 0;
  if (!speaker.has_value() && with_first) return false;
  const absl::Time end = absl::Now() + patience;
  while (absl::Now() < end) {
    if (speaker.has_value() && executor::ParentOf(speaker->pid) != getppid()) return true;  // ended
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

// Whether a lower rank was started with the same arguments, and so finds the same error.
bool LowerRankSaysTheSame(const Siblings& siblings) {
  if (!siblings.has_value()) return false;
  const auto self = std::find_if(siblings->begin(), siblings->end(),
                                 [](const Sibling& each) { return each.pid == getpid(); });
  return self != siblings->end() &&
         std::any_of(siblings->begin(), self, [&self](const Sibling& lower) {
           return lower.same_program && lower.arguments == self->arguments;
         });
}

constexpr char kWhileJoining[] = "before all ranks had joined";

// It may have gone to this rank alone: then nobody ends the lowest one.
absl::Status Stop() {
  const Siblings siblings = OfThisNode();
  const std::vector<int> missing = siblings.has_value() ? Missing(*siblings) : std::vector<int>();
  if (AnotherSpeaks(siblings, kLauncherEndsUs)) return absl::CancelledError("");
  TellOthersThatAllIsSaid();
  if (!missing.empty()) {
    return absl::AbortedError(absl::StrCat(executor::RanksText(missing),
                                           missing.size() == 1 ? " is" : " are",
                                           " gone (killed or crashed) ", kWhileJoining));
  }
  if (!IsLaunched()) return absl::CancelledError("asked to stop (SIGTERM)");
  return absl::CancelledError(
      absl::StrCat("rank ", LaunchedRank(), " was asked to stop (SIGTERM) ", kWhileJoining));
}

absl::Status TooLate(Until until, absl::Duration waited) {
  const Siblings siblings = OfThisNode();
  // Where nothing is wrong here, somebody of another node may know more.
  const std::string who = WhoIsAmiss(siblings, until);
  if (AnotherSpeaks(siblings, who.empty() ? 2 * kLauncherEndsUs : kLauncherEndsUs)) {
    return absl::DeadlineExceededError("");
  }
  TellOthersThatAllIsSaid();
  const executor::Launcher launcher = ThisLauncher();
  return absl::DeadlineExceededError(absl::StrCat(
      "the ", launcher.ranks > 0 ? absl::StrCat(launcher.ranks, " ") : "", "ranks that ",
      launcher.name, " started have not all ", until == Until::kJoined ? "joined" : "ended",
      " after ", absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(100))), ": ",
      who.empty() ? "those of this node are there, more is not known" : who,
      "; hint: every rank must be this program and must reach the others; raise --timeout if that "
      "takes long"));
}

// A limit, and what is to be done about a signal.
class Limit {
 public:
  explicit Limit(absl::Duration timeout) : timeout_(timeout) {}
  absl::Duration passed() const { return absl::Now() - begin_; }
  bool over() const { return passed() > timeout_; }
  // Not at every call: it takes files of every process.
  bool IsTimeToLook() {
    if (!over() || absl::Now() < next_look_) return false;
    next_look_ = absl::Now() + absl::Seconds(1);
    return true;
  }
  // A signal that nobody else has taken.
  bool TakesSignal(absl::Duration patience) {
    if (!executor::HasTerminationSignal()) {
      signalled_.reset();
      return false;
    }
    if (!signalled_.has_value()) signalled_ = absl::Now();
    return absl::Now() - *signalled_ >= patience && executor::TakeTerminationSignal();
  }

 private:
  const absl::Duration timeout_;
  const absl::Time begin_ = absl::Now();
  absl::Time next_look_ = absl::InfinitePast();
  std::optional<absl::Time> signalled_;
};

}  // namespace

bool IsMineToSay() {
  if (LaunchedRank() == 0) return true;
  const absl::Time end = absl::Now() + kLauncherEndsUs;
  bool said_by_another = false;
  while (absl::Now() < end) {
    said_by_another = said_by_another || LowerRankSaysTheSame(OfThisNode());
    absl::SleepFor(kBetweenLooks);
  }
  return !said_by_another && !executor::TakeTerminationSignal();
}

void TellOthersThatAllIsSaid() {
  const std::string variable = RankVariable();
  if (!variable.empty()) executor::TellSiblingsThatAllIsSaid(variable);
}

executor::Guard::Duty WhileJoining(absl::Duration timeout, bool known_limit) {
  const auto limit = std::make_shared<Limit>(timeout);
  const absl::Duration patience = known_limit ? absl::Milliseconds(300) : absl::ZeroDuration();
  return [limit, timeout, known_limit, patience]() -> absl::Status {
    if (limit->TakesSignal(patience)) return Stop();
    if (known_limit || !IsLaunched() || !limit->IsTimeToLook()) return absl::OkStatus();
    const bool late = limit->passed() > std::max(timeout, kLeastJoining);
    if (!late && WhoIsAmiss(OfThisNode(), Until::kJoined).empty()) return absl::OkStatus();
    return TooLate(Until::kJoined, limit->passed());
  };
}

executor::Guard::Duty WhileLeaving(absl::Duration timeout) {
  const auto limit = std::make_shared<Limit>(timeout);
  return [limit]() -> absl::Status {
    if (limit->TakesSignal(absl::ZeroDuration())) return absl::CancelledError("");
    return limit->over() && IsLaunched() ? TooLate(Until::kEnded, limit->passed())
                                         : absl::OkStatus();
  };
}

executor::Guard::Duty WhileEnding() {
  const auto limit = std::make_shared<Limit>(kEnding);
  return [limit]() -> absl::Status {
    const bool now = limit->TakesSignal(absl::ZeroDuration()) || limit->over();
    return now ? absl::CancelledError("") : absl::OkStatus();
  };
}

}  // namespace optimus::tools
