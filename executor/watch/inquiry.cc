#include "executor/watch/inquiry.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace optimus::executor {
namespace {

constexpr absl::Duration kBetweenPolls = absl::Milliseconds(10);

}  // namespace

std::string Inquiry::TextOf(int local_rank) {
  const BoardEntry entry = neighbours_.Read(local_rank);
  if (entry.state == RankState::kLeft) return "done";
  if (neighbours_.IsGone(local_rank)) return absl::StrCat("gone; it was at ", entry.text);
  if (neighbours_.IsStopped(local_rank)) return absl::StrCat("stopped (SIGSTOP); ", entry.text);
  return entry.text;
}

void Inquiry::Handle(int from, const WatchNote& note) {
  if (note.kind == NoteKind::kAnswer) answers_[note.rank] = note.text;
  if (note.kind != NoteKind::kAsk) return;
  if (note.rank < 0 || note.rank >= neighbours_.size() || !neighbours_.IsLocal(note.rank)) return;
  neighbours_.Refresh();
  world_.Post(from, Format({NoteKind::kAnswer, note.rank, TextOf(note.rank)}));
}

std::vector<int> Inquiry::Missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < neighbours_.size(); ++rank) {
    if (!neighbours_.IsLocal(rank) && !answers_.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

int Inquiry::WhoKnows(int rank) const {
  for (const auto& [other, text] : answers_) {
    if (neighbours_.SameNode(other, rank)) return other;
  }
  return -1;
}

void Inquiry::WaitForAnswers(absl::Duration patience, const std::function<void()>& poll) const {
  const absl::Time end = absl::Now() + patience;
  while (!Missing().empty() && absl::Now() < end) {
    poll();
    absl::SleepFor(kBetweenPolls);
  }
}

void Inquiry::AskOthers(absl::Duration patience, const std::function<void()>& poll) {
  answers_.clear();
  for (const int rank : Missing()) world_.Post(rank, Format({NoteKind::kAsk, rank}));
  WaitForAnswers(patience, poll);
  bool asked = false;
  for (const int rank : Missing()) {
    const int other = WhoKnows(rank);
    if (other < 0) continue;
    world_.Post(other, Format({NoteKind::kAsk, rank}));
    asked = true;
  }
  if (asked) WaitForAnswers(patience, poll);
}

RankText Inquiry::Of(int rank, std::string text) const {
  return {rank, neighbours_.host(rank), std::move(text)};
}

std::vector<std::string> Inquiry::AllLines() {
  std::vector<RankText> texts;
  texts.reserve(static_cast<std::size_t>(neighbours_.size()));
  for (int rank = 0; rank < neighbours_.size(); ++rank) {
    if (neighbours_.IsLocal(rank)) {
      texts.push_back(Of(rank, TextOf(rank)));
    } else {
      const auto answer = answers_.find(rank);
      texts.push_back(Of(rank, answer == answers_.end() ? "no answer" : answer->second));
    }
  }
  return ReportLines(texts);
}

std::vector<std::string> Inquiry::LocalLines() {
  std::vector<RankText> texts;
  texts.reserve(neighbours_.local_ranks().size());
  for (const int rank : neighbours_.local_ranks()) texts.push_back(Of(rank, TextOf(rank)));
  return ReportLines(texts);
}

}  // namespace optimus::executor
