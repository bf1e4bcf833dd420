#pragma once
// What ranks are at: read off the board for this node, asked by notes for other nodes.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "executor/runtime/world.h"
#include "executor/watch/neighbours.h"
#include "executor/watch/notes.h"
#include "executor/watch/report.h"

namespace optimus::executor {

class Inquiry {
 public:
  // Both outlive it.
  Inquiry(World& world, Neighbours& neighbours) : world_(world), neighbours_(neighbours) {}

  // A rank of this node, off the board: its text, or "stopped (SIGSTOP); TEXT", "gone; it was at
  // TEXT".
  std::string TextOf(int local_rank);
  // Answers kAsk and keeps kAnswer; other notes are the caller's.
  void Handle(int from, const WatchNote& note);
  // Asks all ranks of other nodes, and for those that do not answer, a rank of their node that did.
  // `poll` is called meanwhile and passes notes to Handle. Waits as long as `patience` for each of
  // the two.
  void AskOthers(absl::Duration patience, const std::function<void()>& poll);
  // ReportLines of all ranks, or of this node's; after AskOthers.
  std::vector<std::string> AllLines();
  std::vector<std::string> LocalLines();

 private:
  std::vector<int> Missing() const;
  // A rank of the same node that has answered, else -1.
  int WhoKnows(int rank) const;
  void WaitForAnswers(absl::Duration patience, const std::function<void()>& poll) const;
  RankText Of(int rank, std::string text) const;

  World& world_;
  Neighbours& neighbours_;
  std::map<int, std::string> answers_;  // of other nodes, by rank
};

}  // namespace optimus::executor
