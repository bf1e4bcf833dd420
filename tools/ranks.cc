#include "tools/ranks.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/launched.h"
#include "tools/printable.h"
#include "tools/unjoined.h"

namespace optimus::tools {
namespace {

// Planning takes what it takes: only a rank that is gone ends the wait for it.
constexpr absl::Duration kAsLongAsItTakes = absl::Hours(10000);
// A barrier that nobody comes to is the watchdog's to report first: it says what every rank is at.
constexpr absl::Duration kAfterWatchdog = absl::Seconds(10);
// Between the first that a launcher does to end the ranks and SIGTERM.
constexpr absl::Duration kLauncherPatience = absl::Milliseconds(50);
// Watchdogs of all ranks find each other.
constexpr absl::Duration kMeeting = absl::Minutes(5);

// A status, or bytes, on the wire: the code as one character, then the text.
std::string Pack(const absl::Status& status, const std::string& bytes) {
  const char code = static_cast<char>('A' + static_cast<int>(status.code()));
  return std::string(1, code) + (status.ok() ? bytes : std::string(status.message()));
}

absl::StatusOr<std::string> Unpack(const std::string& packed) {
  if (packed.empty()) return absl::InternalError("an empty message between ranks");
  const auto code = static_cast<absl::StatusCode>(packed.front() - 'A');
  if (code == absl::StatusCode::kOk) return packed.substr(1);
  return absl::Status(code, packed.substr(1));
}

// "a (8 ranks), b (8 ranks)", in order of the first rank.
std::string HostsText(const std::vector<std::string>& by_rank) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& host : by_rank) {
    if (counts.empty() || counts.back().first != host) counts.emplace_back(host, 0);
    ++counts.back().second;
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " (", entry.second, entry.second == 1 ? " rank)" : " ranks)");
  });
}

// Reports of the watchdog, and errors of operations, name the ranks that they are about.
bool NamesRank(const absl::Status& error) {
  return absl::IsDeadlineExceeded(error) || absl::IsAborted(error) || absl::IsCancelled(error) ||
         absl::StartsWith(error.message(), "rank ");
}

// A report of many lines stays one: line by line, without control characters.
std::string ErrorText(const std::string& prefix, const absl::Status& status) {
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(status.message(), "\n"), '\n');
  std::string text = ErrorLine(absl::Status(status.code(), absl::StrCat(prefix, lines.front())));
  for (std::size_t i = 1; i < lines.size(); ++i) absl::StrAppend(&text, Printable(lines[i]), "\n");
  return text;
}

void PrintError(const std::string& prefix, const absl::Status& status) {
  std::fputs(ErrorText(prefix, status).c_str(), stderr);
  std::fflush(stderr);
}

// By the guard, which must not wait for a main thread that is in the middle of printing.
[[noreturn]] void EndProcess(const absl::Status& error) {
  const std::string text = error.message().empty() ? "" : ErrorText("", error);
  if (!text.empty()) (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(ExitCode(error));
}

// For the wait of ranks that torchrun started: it can say for whom.
absl::Status CheckTermination() {
  if (!executor::TakeTerminationSignal()) return absl::OkStatus();
  return absl::CancelledError("asked to stop (SIGTERM)");
}

executor::JoinOptions OptionsOfJoining(absl::Duration timeout, const Arguments& arguments) {
  executor::JoinOptions options;
  if (IsGiven("--timeout", arguments)) options.patience = timeout;
  options.tick = CheckTermination;
  options.say = [](const std::string& text) {
    std::fputs(absl::StrCat("optimus: ", Printable(text), "\n").c_str(), stderr);
    std::fflush(stderr);
  };
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ranks>> Ranks::Join(executor::BackendKind kind,
                                                   absl::Duration timeout, Arguments& arguments) {
  executor::HoldTerminationSignals();
  std::unique_ptr<Ranks> ranks(new Ranks);
  ranks->guard_ = std::make_unique<executor::Guard>(EndProcess);
  ranks->guard_->SetDuty(WhileJoining(timeout, /*known_limit=*/IsByTorchrun()));
  const executor::JoinOptions options = OptionsOfJoining(timeout, arguments);
  absl::StatusOr<std::unique_ptr<executor::World>> world =
      executor::JoinWorld(kind, arguments.count, arguments.values, options);
  if (!world.ok()) {
    // What this build or backend cannot do is the same at all ranks.
    const bool own = IsByTorchrun() && !absl::IsUnimplemented(world.status());
    return own ? OwnError(world.status()) : world.status();
  }
  ranks->world_ = std::move(*world);
  if (const absl::Status status = ranks->Setup(timeout); !status.ok()) ranks->EndAll(status);
  return ranks;
}

Ranks::~Ranks() {
  // The watchdog goes before the world does.
  if (!world_) return;
  guard_->SetDuty(WhileLeaving(timeout_));
  world_->SetPatience(timeout_, nullptr);
}

absl::Status Ranks::Setup(absl::Duration timeout) {
  timeout_ = timeout + kAfterWatchdog;
  world_->SetPatience(kMeeting, nullptr);
  OPTIMUS_ASSIGN_OR_RETURN(watchdog_, executor::Watchdog::Create(*world_, timeout));
  guard_->SetDuty([this] { return watchdog_->StandIn(); });
  watchdog_->Follow(first() ? "reads its input and plans" : "waits for rank 0's plan", nullptr,
                    nullptr);
  SetPatience(timeout_);
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, world_->Gather(world_->host()));
  hosts_ = HostsText(hosts);
  return absl::OkStatus();
}

void Ranks::SetPatience(absl::Duration patience) {
  world_->SetPatience(patience, [this] { return watchdog_->Tick(); });
}

absl::StatusOr<std::string> Ranks::FromFirst(
    const std::function<absl::StatusOr<std::string>()>& make) {
  agreed_ = false;
  std::string packed;
  if (first()) {
    const absl::StatusOr<std::string> made = make();
    // A launcher that ends the ranks closes the files that they read first.
    if (!made.ok()) {
      absl::SleepFor(kLauncherPatience);
      OPTIMUS_RETURN_IF_ERROR(watchdog_->Tick());
    }
    packed = Pack(made.status(), made.ok() ? *made : "");
  }
  SetPatience(kAsLongAsItTakes);
  absl::StatusOr<std::string> shared = world_->Broadcast(packed);
  SetPatience(timeout_);
  if (!shared.ok()) return shared.status();
  absl::StatusOr<std::string> bytes = Unpack(*shared);
  agreed_ = !bytes.ok();
  return bytes;
}

absl::Status Ranks::Agree(const absl::Status& mine) {
  agreed_ = false;
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> all, world_->Gather(Pack(mine, "")));
  return FromFirst([&]() -> absl::StatusOr<std::string> {
           for (std::size_t rank = 0; rank < all.size(); ++rank) {
             const absl::Status status = Unpack(all[rank]).status();
             if (status.ok()) continue;
             if (rank == 0 || NamesRank(status)) return status;
             return absl::Status(status.code(),
                                 absl::StrCat("rank ", rank, ": ", status.message()));
           }
           return "";
         })
      .status();
}

void Ranks::EndAll(const absl::Status& error) {
  // Not while the guard is about to end the process: then this never returns.
  guard_->SetDuty(WhileEnding());
  // An error without a word is the watchdog's, where another rank speaks and was given the time.
  const bool mine = !error.message().empty() && (!watchdog_ || watchdog_->Failing());
  if (mine) {
    PrintError(NamesRank(error) ? "" : absl::StrCat("rank ", world_->rank(), ": "),
               WithAllRanks(error));
  }
  world_->Abort(ExitCode(error));
  std::abort();  // not reached: GCC 12 does not see that a virtual function never returns
}

// Who waited too long says what the others are at; reports of the watchdog do so already.
absl::Status Ranks::WithAllRanks(const absl::Status& error) {
  const bool reported = absl::StrContains(error.message(), "\n");
  if (!watchdog_ || reported || !absl::IsDeadlineExceeded(error)) return error;
  return {error.code(),
          absl::StrCat(error.message(), "; every rank is at:\n", watchdog_->DescribeAll())};
}

int Ranks::End(const absl::StatusOr<int>& result) {
  if (!result.ok()) {
    if (!agreed_) EndAll(result.status());
    if (first()) PrintError("", result.status());
  }
  // Whoever ends with an error gets the others killed: not before it is printed. After a success, a
  // rank that is gone by now is one more thing to say.
  if (const absl::Status waited = world_->Barrier(); !waited.ok()) {
    EndAll(result.ok() ? waited : absl::Status(result.status().code(), ""));
  }
  return result.ok() ? *result : ExitCode(result.status());
}

}  // namespace optimus::tools
