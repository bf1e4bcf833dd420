#pragma once
// Where all ranks are, and the board and processes of those of this rank's node.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/runtime/world.h"
#include "executor/watch/board.h"
#include "executor/watch/processes.h"

namespace optimus::executor {

// Ranks with one host name are on one node, unless two of them have the same local rank there.
struct RankHost {
  std::string host;
  int local_rank = 0;
  int node = 0;  // counted from 0 in order of first ranks
};

// By rank; from what each says of itself.
std::vector<RankHost> NumberNodes(std::vector<RankHost> ranks);

class Neighbours {
 public:
  // Called by all ranks together; all fail together where one cannot open its board.
  static absl::StatusOr<std::unique_ptr<Neighbours>> Meet(World& world);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const { return hosts_[rank].host; }
  bool IsLocal(int rank) const { return hosts_[rank].node == hosts_[rank_].node; }
  bool SameNode(int a, int b) const { return hosts_[a].node == hosts_[b].node; }
  const std::vector<int>& local_ranks() const { return local_ranks_; }  // ascending

  // Of this rank.
  void Write(const std::string& text) { board_->Write(own_slot_, text); }
  void SetState(RankState state) { board_->SetState(own_slot_, state); }
  RankState state() const { return board_->state(own_slot_); }
  // The rank of this node that says why the run ends: this one, unless another was quicker.
  int ClaimToSpeak();

  // Of a local rank.
  BoardEntry Read(int rank) const { return board_->Read(hosts_[rank].local_rank); }
  RankState state(int rank) const { return board_->state(hosts_[rank].local_rank); }
  void Refresh() { processes_->Refresh(); }
  bool IsGone(int rank) const {  // as of the last Refresh
    return processes_->gone()[hosts_[rank].local_rank];
  }
  bool IsStopped(int rank) const { return optimus::executor::IsStopped(Read(rank).pid); }

 private:
  Neighbours(World& world, std::vector<RankHost> hosts, std::unique_ptr<Board> board);
  absl::Status Check() const;

  const int rank_;
  const std::vector<RankHost> hosts_;  // by rank
  const std::unique_ptr<Board> board_;
  const int own_slot_;
  std::vector<int> local_ranks_;
  std::unique_ptr<Processes> processes_;  // by slot
};

}  // namespace optimus::executor
