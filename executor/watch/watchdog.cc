#include "executor/watch/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
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

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void HoldTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

bool TakeTerminationSignal() {
  const sigset_t signals = TerminationSignals();
  const timespec now{0, 0};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

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
  void Failing();
  absl::Status Tick();

 private:
  // What stops the run, found by a look at everything.
  struct Cause {
    std::vector<int> dead;            // local ranks that are gone without having said why
    std::optional<int> other_speaks;  // a local rank that says why, or has said it
  };
  Cause Look();
  void WriteBoard();
  void ReadNotes();
  bool HasHung();

  absl::Status OnCause(const Cause& cause);
  absl::Status OnDeath(const std::vector<int>& dead);
  absl::Status OnTermination();
  absl::Status OnHang();
  absl::Status ReportDeath(const std::vector<int>& dead);
  absl::Status ReportHang();
  std::string Hint() const;
  absl::Status Spoken(absl::StatusCode code, const std::string& report);
  // Gives the speaker (-1: somebody on another node) time to speak, and ends without a word.
  absl::Status Silent(absl::StatusCode code, int speaker);
  bool CanSpeak(int local_rank);

  World& world_;
  const absl::Duration timeout_;
  const std::unique_ptr<Neighbours> neighbours_;
  Inquiry inquiry_;
  std::string phase_ = "starts";
  std::function<std::string()> current_;
  std::function<std::int64_t()> progress_;
  std::int64_t last_progress_ = -1;
  absl::Duration stalled_ = absl::ZeroDuration();
  absl::Time last_tick_ = absl::Now();
  // What notes have said.
  std::vector<int> asked_to_report_;  // ranks that hang; rank 0 only
  bool rank_0_reports_ = false;
  bool ending_elsewhere_ = false;  // a rank of another node has said why the run ends
  std::optional<absl::StatusCode> ended_;
};

void Watchdog::Impl::Follow(std::string phase, std::function<std::string()> current,
                            std::function<std::int64_t()> progress) {
  phase_ = std::move(phase);
  current_ = std::move(current);
  progress_ = std::move(progress);
  stalled_ = absl::ZeroDuration();
  last_progress_ = -1;
  neighbours_->Write(phase_);
}

void Watchdog::Impl::Failing() {
  neighbours_->SetState(RankState::kEnding);
  if (!neighbours_->IsLocal(0)) world_.Post(0, Format({NoteKind::kEnding}));
}

absl::Status Watchdog::Impl::Tick() {
  if (ended_.has_value()) return {*ended_, ""};
  WriteBoard();
  ReadNotes();
  const Cause cause = Look();
  if (cause.other_speaks.has_value() || !cause.dead.empty()) return OnCause(cause);
  if (ending_elsewhere_) return Silent(absl::StatusCode::kAborted, -1);
  if (TakeTerminationSignal()) return OnTermination();
  if (!asked_to_report_.empty()) return ReportHang();
  if (HasHung()) return OnHang();
  return absl::OkStatus();
}

void Watchdog::Impl::WriteBoard() {
  const std::string current = current_ == nullptr ? "" : current_();
  neighbours_->Write(current.empty() ? phase_ : absl::StrCat(phase_, ": ", current));
}

void Watchdog::Impl::ReadNotes() {
  while (const std::optional<World::Note> received = world_.Poll()) {
    const std::optional<WatchNote> note = ParseNote(received->text);
    if (!note.has_value()) continue;
    inquiry_.Handle(received->from, *note);
    if (note->kind == NoteKind::kHang) {
      asked_to_report_.push_back(received->from);
      world_.Post(received->from, Format({NoteKind::kReporting}));
    }
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
  neighbours_->SetState(RankState::kReporting);
  std::vector<std::string> lines;
  lines.reserve(dead.size());
  for (const int rank : dead) {
    lines.push_back(absl::StrCat("rank ", rank, " (", neighbours_->host(rank),
                                 ") is gone (killed or crashed); it was at ",
                                 neighbours_->Read(rank).text));
  }
  if (!neighbours_->IsLocal(0)) world_.Post(0, Format({NoteKind::kEnding}));
  return Spoken(absl::StatusCode::kAborted, absl::StrJoin(lines, "\n"));
}

absl::Status Watchdog::Impl::OnTermination() {
  const absl::Time end = absl::Now() + kCausePatience;
  while (absl::Now() < end) {
    ReadNotes();
    const Cause cause = Look();
    if (cause.other_speaks.has_value() || !cause.dead.empty()) return OnCause(cause);
    if (ending_elsewhere_) return Silent(absl::StatusCode::kCancelled, -1);
    absl::SleepFor(kBetweenPolls);
  }
  if (neighbours_->rank() != 0) {
    return Silent(absl::StatusCode::kCancelled, neighbours_->IsLocal(0) ? 0 : -1);
  }
  neighbours_->SetState(RankState::kReporting);
  return Spoken(absl::StatusCode::kCancelled,
                absl::StrCat("asked to stop (SIGTERM); the ranks of this node are at:\n",
                             absl::StrJoin(inquiry_.LocalLines(), "\n")));
}

// Rank 0 speaks for all if it can; else the first of a node's ranks to find out that it cannot.
absl::Status Watchdog::Impl::OnHang() {
  if (neighbours_->rank() == 0) return ReportHang();
  neighbours_->SetState(RankState::kHung);
  world_.Post(0, Format({NoteKind::kHang}));
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
  return ReportHang();
}

std::string Watchdog::Impl::Hint() const {
  return SlownessHint(static_cast<int>(neighbours_->local_ranks().size()),
                      static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

absl::Status Watchdog::Impl::ReportHang() {
  neighbours_->SetState(RankState::kReporting);
  inquiry_.AskOthers(kAnswerPatience, [this] { ReadNotes(); });
  return Spoken(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("no operation has ended for ", absl::FormatDuration(timeout_), "; ", Hint(),
                   "; every rank is at:\n", absl::StrJoin(inquiry_.AllLines(), "\n")));
}

absl::Status Watchdog::Impl::Spoken(absl::StatusCode code, const std::string& report) {
  ended_ = code;
  return {code, report};
}

absl::Status Watchdog::Impl::Silent(absl::StatusCode code, int speaker) {
  const absl::Time end = absl::Now() + kGrace;
  while (absl::Now() < end) {
    neighbours_->Refresh();
    if (speaker >= 0 && neighbours_->IsGone(speaker)) break;
    ReadNotes();
    absl::SleepFor(kBetweenPolls);
  }
  neighbours_->SetState(RankState::kEnding);
  ended_ = code;
  return {code, ""};
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
void Watchdog::Failing() { impl_->Failing(); }
absl::Status Watchdog::Tick() { return impl_->Tick(); }

}  // namespace optimus::executor
