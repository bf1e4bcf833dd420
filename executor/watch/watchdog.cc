#include "executor/watch/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "executor/runtime/rank_numbers.h"
#include "executor/watch/inquiry.h"
#include "executor/watch/neighbours.h"
#include "executor/watch/notes.h"
#include "executor/watch/report.h"

namespace optimus::executor {
namespace {

constexpr absl::Duration kBetweenPolls = absl::Milliseconds(10);
// Of the time between two Ticks, so much at most counts as hanging: a process that was stopped for
// an hour has not hung.
constexpr absl::Duration kLongestTick = absl::Seconds(1);
// For the answers of other nodes, twice; for rank 0 to say that it reports a hang.
constexpr absl::Duration kAnswerPatience = absl::Milliseconds(1500);
constexpr absl::Duration kReporterPatience = absl::Seconds(2);
// From SIGTERM to deciding why: whatever is the cause may become known only after the signal.
// Short: launchers send SIGKILL soon after.
constexpr absl::Duration kCausePatience = absl::Milliseconds(300);
// A rank that has nothing to say waits so long for the one that has to end the run.
constexpr absl::Duration kGrace = absl::Seconds(8);

// Of a thread that ticks, no two Ticks are so far apart, unless the machine is very busy. Launchers
// send SIGKILL one second after SIGTERM.
constexpr absl::Duration kAway = absl::Milliseconds(200);
// Looking whether ranks are stopped takes a file of each.
constexpr absl::Duration kShortestLook = absl::Milliseconds(100);
constexpr absl::Duration kLongestLook = absl::Seconds(1);

}  // namespace

class Watchdog::Impl {
 public:
  Impl(World& world, std::unique_ptr<Neighbours> neighbours, absl::Duration timeout)
      : world_(world),
        timeout_(timeout),
        neighbours_(std::move(neighbours)),
        inquiry_(world, *neighbours_) {}
  ~Impl() {
    if (neighbours_->state() == RankState::kRunning) neighbours_->SetState(RankState::kLeft);
  }

  void Follow(std::string phase, std::function<std::string()> current,
              std::function<std::int64_t()> progress);
  bool Failing();
  std::string DescribeAll();
  absl::Status Tick();
  absl::Status StandIn();

 private:
  // What stops the run, found by a look at everything.
  struct Cause {
    std::vector<int> dead;            // local ranks that are gone without having said why
    std::optional<int> other_speaks;  // a local rank that says why, or has said it
  };
  Cause Look();
  absl::Status LookAtAll();
  void WriteBoard();
  bool CanUseNotes() const { return !standing_in_ || world_.TakesNotesOfAnyThread(); }
  void Post(int to, const WatchNote& note);
  void ReadNotes();
  bool HasHung();
  // Why outside a step nothing will move any more, or nothing.
  std::string OutsideAStep();
  std::string StoppedTooLong(absl::Duration passed);
  std::string SilentTooLong(absl::Duration passed);

  absl::Status OnCause(const Cause& cause);
  absl::Status OnDeath(const std::vector<int>& dead);
  absl::Status OnTermination();
  absl::Status OnHang(const std::string& reason);
  absl::Status ReportDeath(const std::vector<int>& dead);
  absl::Status ReportTermination();
  absl::Status ReportHang(const std::string& reason);
  std::vector<int> LocalRanksAsked() const;
  std::string Unmoved() const;
  // Unless another rank of the node was quicker.
  absl::Status Speak(absl::StatusCode code, absl::FunctionRef<std::string()> report);
  absl::Status End(absl::StatusCode code, const std::string& report);
  // Gives the speaker (-1: somebody on another node) time to speak, and ends without a word.
  absl::Status Silent(absl::StatusCode code, int speaker);
  void GiveTimeTo(int speaker);
  bool CanSpeak(int local_rank);

  World& world_;
  const absl::Duration timeout_;
  const std::unique_ptr<Neighbours> neighbours_;
  std::mutex mutex_;  // of all that follows: the thread that ticks, or the one that stands in
  bool standing_in_ = false;
  Inquiry inquiry_;
  std::string phase_ = "starts";
  std::function<std::string()> current_;
  std::function<std::int64_t()> progress_;
  std::int64_t last_progress_ = -1;
  absl::Duration stalled_ = absl::ZeroDuration();
  absl::Time last_tick_ = absl::Now();
  std::map<int, absl::Duration> stopped_;         // by local rank, for how long
  absl::Duration silent_ = absl::ZeroDuration();  // rank 0, since it answered
  absl::Time last_look_ = absl::Now();            // at these
  // What notes have said; rank 0 only, but for the second.
  std::string hang_elsewhere_;  // why a rank wants it reported
  bool rank_0_reports_ = false;
  bool ending_elsewhere_ = false;     // a rank of another node has said why the run ends
  std::vector<int> asked_elsewhere_;  // ranks of nodes that have all got SIGTERM
  std::optional<absl::StatusCode> ended_;
  std::string report_;  // of the end; empty where another rank speaks
  absl::Time end_time_;
};

void Watchdog::Impl::Follow(std::string phase, std::function<std::string()> current,
                            std::function<std::int64_t()> progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = std::move(phase);
  current_ = std::move(current);
  progress_ = std::move(progress);
  stalled_ = absl::ZeroDuration();
  last_progress_ = -1;
  neighbours_->Write(phase_);
}

bool Watchdog::Impl::Failing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  standing_in_ = false;
  const int speaker = neighbours_->ClaimToSpeak();
  neighbours_->SetState(RankState::kEnding);
  if (speaker != neighbours_->rank()) {
    GiveTimeTo(speaker);
    return false;
  }
  if (!neighbours_->IsLocal(0)) Post(0, {NoteKind::kEnding});
  return true;
}

std::string Watchdog::Impl::DescribeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  standing_in_ = false;
  inquiry_.AskOthers(kAnswerPatience, [this] { ReadNotes(); });
  return absl::StrJoin(inquiry_.AllLines(), "\n");
}

absl::Status Watchdog::Impl::Tick() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ended_.has_value()) return {*ended_, ""};
  standing_in_ = false;
  WriteBoard();
  OPTIMUS_RETURN_IF_ERROR(LookAtAll());
  if (HasHung()) return OnHang(Unmoved());
  return absl::OkStatus();
}

absl::Status Watchdog::Impl::StandIn() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return absl::OkStatus();
  const absl::Time now = absl::Now();
  if (ended_.has_value()) {
    return now - end_time_ < kAway ? absl::OkStatus() : absl::Status(*ended_, report_);
  }
  if (now - last_tick_ < kAway) return absl::OkStatus();
  standing_in_ = true;
  return LookAtAll();
}

absl::Status Watchdog::Impl::LookAtAll() {
  ReadNotes();
  const Cause cause = Look();
  if (cause.other_speaks.has_value() || !cause.dead.empty()) return OnCause(cause);
  if (ending_elsewhere_) return Silent(absl::StatusCode::kAborted, -1);
  if (TakeTerminationSignal()) return OnTermination();
  if (!asked_elsewhere_.empty()) return ReportTermination();
  if (!hang_elsewhere_.empty()) return ReportHang(hang_elsewhere_);
  const std::string reason = OutsideAStep();
  return reason.empty() ? absl::OkStatus() : OnHang(reason);
}

void Watchdog::Impl::WriteBoard() {
  const std::string current = current_ == nullptr ? "" : current_();
  neighbours_->Write(current.empty() ? phase_ : absl::StrCat(phase_, ": ", current));
}

void Watchdog::Impl::Post(int to, const WatchNote& note) {
  if (CanUseNotes()) world_.Post(to, Format(note));
}

void Watchdog::Impl::ReadNotes() {
  if (!CanUseNotes()) return;
  while (const std::optional<World::Note> received = world_.Poll()) {
    const std::optional<WatchNote> note = ParseNote(received->text);
    if (!note.has_value()) continue;
    inquiry_.Handle(received->from, *note);
    if (note->kind == NoteKind::kHang) {
      hang_elsewhere_ = note->text;
      Post(received->from, {NoteKind::kReporting});
    }
    if (note->kind == NoteKind::kAnswer && note->rank == 0) silent_ = absl::ZeroDuration();
    if (note->kind == NoteKind::kAsked) asked_elsewhere_.push_back(received->from);
    if (note->kind == NoteKind::kReporting) rank_0_reports_ = true;
    if (note->kind == NoteKind::kEnding) ending_elsewhere_ = true;
  }
}

bool Watchdog::Impl::HasHung() {
  const absl::Time now = absl::Now();
  const absl::Duration passed = std::clamp(now - last_tick_, absl::ZeroDuration(), kLongestTick);
  last_tick_ = now;
  if (progress_ == nullptr) return false;
  const std::int64_t progress = progress_();
  stalled_ = progress == last_progress_ ? stalled_ + passed : absl::ZeroDuration();
  last_progress_ = progress;
  return stalled_ >= timeout_;
}

// Time passes only while somebody looks, as with operations. In a step, those that wait find out.
std::string Watchdog::Impl::OutsideAStep() {
  const absl::Duration period = std::clamp(timeout_ / 4, kShortestLook, kLongestLook);
  const absl::Time now = absl::Now();
  if (now - last_look_ < period) return "";
  const absl::Duration passed = std::min(now - last_look_, 2 * period);
  last_look_ = now;
  if (progress_ != nullptr) {
    stopped_.clear();
    silent_ = absl::ZeroDuration();
    return "";
  }
  const std::string stopped = StoppedTooLong(passed);
  return stopped.empty() ? SilentTooLong(passed) : stopped;
}

std::string Watchdog::Impl::StoppedTooLong(absl::Duration passed) {
  std::vector<int> too_long;
  for (const int rank : neighbours_->local_ranks()) {
    const bool stopped = rank != neighbours_->rank() &&
                         neighbours_->state(rank) == RankState::kRunning &&
                         neighbours_->IsStopped(rank);
    if (!stopped) {
      stopped_.erase(rank);
      continue;
    }
    const auto [entry, is_new] = stopped_.try_emplace(rank, absl::ZeroDuration());
    if (!is_new) entry->second += passed;
    if (entry->second >= timeout_) too_long.push_back(rank);
  }
  if (too_long.empty()) return "";
  return absl::StrCat(RanksText(too_long), too_long.size() == 1 ? " is" : " are",
                      " stopped (SIGSTOP), for ", absl::FormatDuration(timeout_),
                      "; hint: kill -CONT lets a process go on");
}

// What rank 0 of another node is at cannot be seen here, but it answers also while it is busy, if
// its guard can.
std::string Watchdog::Impl::SilentTooLong(absl::Duration passed) {
  const bool asks = !neighbours_->IsLocal(0) && world_.TakesNotesOfAnyThread() &&
                    neighbours_->rank() == neighbours_->local_ranks().front();
  if (!asks) return "";
  silent_ += passed;
  Post(0, {NoteKind::kAsk, 0});
  const absl::Duration patience = std::max(timeout_, kReporterPatience);
  if (silent_ < patience) return "";
  return absl::StrCat("rank 0 has not answered rank ", neighbours_->rank(), " for ",
                      absl::FormatDuration(patience), "; hint: is its node reachable?");
}

Watchdog::Impl::Cause Watchdog::Impl::Look() {
  Cause cause;
  neighbours_->Refresh();
  for (const int rank : neighbours_->local_ranks()) {
    if (rank == neighbours_->rank()) continue;
    // Gone first: it cannot change its state any more.
    const bool gone = neighbours_->IsGone(rank);
    switch (neighbours_->state(rank)) {
      case RankState::kReporting:
      case RankState::kEnding:
        cause.other_speaks = rank;
        break;
      case RankState::kHung:
        if (gone) cause.other_speaks = rank;
        break;
      case RankState::kAbsent:
      case RankState::kAsked:
      case RankState::kRunning:
        if (gone) cause.dead.push_back(rank);
        break;
      case RankState::kLeft:
        break;
    }
  }
  return cause;
}

// A rank that ends on purpose comes before one that is gone: it may be the one that ended it.
absl::Status Watchdog::Impl::OnCause(const Cause& cause) {
  if (cause.other_speaks.has_value()) {
    return Silent(absl::StatusCode::kAborted, *cause.other_speaks);
  }
  return OnDeath(cause.dead);
}

bool Watchdog::Impl::CanSpeak(int local_rank) {
  const RankState state = neighbours_->state(local_rank);
  if (state == RankState::kLeft || state == RankState::kAbsent) return false;
  return !neighbours_->IsGone(local_rank) && !neighbours_->IsStopped(local_rank);
}

absl::Status Watchdog::Impl::OnDeath(const std::vector<int>& dead) {
  for (const int rank : neighbours_->local_ranks()) {
    if (rank == neighbours_->rank()) return ReportDeath(dead);
    if (CanSpeak(rank)) return Silent(absl::StatusCode::kAborted, rank);
  }
  return ReportDeath(dead);
}

absl::Status Watchdog::Impl::ReportDeath(const std::vector<int>& dead) {
  return Speak(absl::StatusCode::kAborted, [&] {
    std::vector<std::string> lines;
    lines.reserve(dead.size());
    for (const int rank : dead) {
      lines.push_back(absl::StrCat("rank ", rank, " (", neighbours_->host(rank),
                                   ") is gone (killed or crashed); it was at ",
                                   neighbours_->Read(rank).text));
    }
    return absl::StrJoin(lines, "\n");
  });
}

std::vector<int> Watchdog::Impl::LocalRanksAsked() const {
  std::vector<int> asked;
  for (const int rank : neighbours_->local_ranks()) {
    if (neighbours_->state(rank) == RankState::kAsked) asked.push_back(rank);
  }
  return asked;
}

// The signal may have gone to all ranks, to those of a node, or to this one. The lowest of a node's
// that have it speaks; where all of a node have it, rank 0 may have it too, and speaks for all.
absl::Status Watchdog::Impl::OnTermination() {
  neighbours_->SetState(RankState::kAsked);
  const absl::Time end = absl::Now() + kCausePatience;
  while (absl::Now() < end) {
    ReadNotes();
    const Cause cause = Look();
    if (cause.other_speaks.has_value() || !cause.dead.empty()) return OnCause(cause);
    if (ending_elsewhere_) return Silent(absl::StatusCode::kCancelled, -1);
    absl::SleepFor(kBetweenPolls);
  }
  const std::vector<int> asked = LocalRanksAsked();
  if (!neighbours_->IsLocal(0) && asked.size() == neighbours_->local_ranks().size()) {
    Post(0, {NoteKind::kAsked});
    return Silent(absl::StatusCode::kCancelled, -1);
  }
  for (const int rank : asked) {
    if (rank == neighbours_->rank()) break;
    if (CanSpeak(rank)) return Silent(absl::StatusCode::kCancelled, rank);
  }
  return ReportTermination();
}

absl::Status Watchdog::Impl::ReportTermination() {
  std::vector<int> asked = LocalRanksAsked();
  const bool all = asked.size() == neighbours_->local_ranks().size();
  asked.insert(asked.end(), asked_elsewhere_.begin(), asked_elsewhere_.end());
  std::sort(asked.begin(), asked.end());
  return Speak(absl::StatusCode::kCancelled, [&] {
    return absl::StrCat(
        all ? "" : absl::StrCat(RanksText(asked), asked.size() == 1 ? " was " : " were "),
        "asked to stop (SIGTERM); the ranks of this node are at:\n",
        absl::StrJoin(inquiry_.LocalLines(), "\n"));
  });
}

// Rank 0 speaks for all if it can; else the first of a node's ranks to find out that it cannot.
absl::Status Watchdog::Impl::OnHang(const std::string& reason) {
  if (neighbours_->rank() == 0) return ReportHang(reason);
  neighbours_->SetState(RankState::kHung);
  Post(0, {NoteKind::kHang, 0, reason});
  const absl::Time end = absl::Now() + kReporterPatience;
  while (absl::Now() < end && !(neighbours_->IsLocal(0) && !CanSpeak(0))) {
    ReadNotes();
    if (rank_0_reports_) {
      return Silent(absl::StatusCode::kDeadlineExceeded, neighbours_->IsLocal(0) ? 0 : -1);
    }
    const Cause cause = Look();
    if (cause.other_speaks.has_value()) {
      return Silent(absl::StatusCode::kDeadlineExceeded, *cause.other_speaks);
    }
    absl::SleepFor(kBetweenPolls);
  }
  for (const int rank : neighbours_->local_ranks()) {
    if (rank == neighbours_->rank()) break;
    if (CanSpeak(rank) && neighbours_->state(rank) != RankState::kRunning) {
      return Silent(absl::StatusCode::kDeadlineExceeded, rank);
    }
  }
  return ReportHang(reason);
}

std::string Watchdog::Impl::Unmoved() const {
  return absl::StrCat("no operation has ended for ", absl::FormatDuration(timeout_), "; ",
                      SlownessHint(static_cast<int>(neighbours_->local_ranks().size()),
                                   static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))));
}

absl::Status Watchdog::Impl::ReportHang(const std::string& reason) {
  return Speak(absl::StatusCode::kDeadlineExceeded, [&] {
    if (CanUseNotes()) inquiry_.AskOthers(kAnswerPatience, [this] { ReadNotes(); });
    return absl::StrCat(reason, "; every rank is at:\n", absl::StrJoin(inquiry_.AllLines(), "\n"));
  });
}

absl::Status Watchdog::Impl::Speak(absl::StatusCode code, absl::FunctionRef<std::string()> report) {
  const int speaker = neighbours_->ClaimToSpeak();
  if (speaker != neighbours_->rank()) return Silent(code, speaker);
  neighbours_->SetState(RankState::kReporting);
  if (!neighbours_->IsLocal(0)) Post(0, {NoteKind::kEnding});
  return End(code, report());
}

absl::Status Watchdog::Impl::End(absl::StatusCode code, const std::string& report) {
  ended_ = code;
  report_ = report;
  end_time_ = absl::Now();
  return {code, report};
}

void Watchdog::Impl::GiveTimeTo(int speaker) {
  const absl::Time end = absl::Now() + kGrace;
  while (absl::Now() < end) {
    neighbours_->Refresh();
    if (speaker >= 0 && neighbours_->IsGone(speaker)) break;
    ReadNotes();
    absl::SleepFor(kBetweenPolls);
  }
}

absl::Status Watchdog::Impl::Silent(absl::StatusCode code, int speaker) {
  GiveTimeTo(speaker);
  neighbours_->SetState(RankState::kEnding);
  return End(code, "");
}

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Create(World& world, absl::Duration timeout) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<Neighbours> neighbours, Neighbours::Meet(world));
  return std::unique_ptr<Watchdog>(
      new Watchdog(std::make_unique<Impl>(world, std::move(neighbours), timeout)));
}

Watchdog::Watchdog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Watchdog::~Watchdog() = default;

void Watchdog::Follow(std::string phase, std::function<std::string()> current,
                      std::function<std::int64_t()> progress) {
  impl_->Follow(std::move(phase), std::move(current), std::move(progress));
}
bool Watchdog::Failing() { return impl_->Failing(); }
std::string Watchdog::DescribeAll() { return impl_->DescribeAll(); }
absl::Status Watchdog::Tick() { return impl_->Tick(); }
absl::Status Watchdog::StandIn() { return impl_->StandIn(); }

}  // namespace optimus::executor
