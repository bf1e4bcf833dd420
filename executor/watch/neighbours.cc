#include "executor/watch/neighbours.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

std::string RandomRunId() {
  std::random_device random;  // the system's: two runs that start at once must not meet
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

std::string BoardName(const std::string& run, const std::string& host) {
  std::string name = absl::StrCat("optimus-", run, "-", host.substr(0, 64));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-'; }, '_');
  return name;
}

// What each rank tells rank 0: local rank, host, and why it has no board. One field a line.
std::string Introduction(const World& world, const absl::Status& board) {
  return absl::StrCat(world.local_rank(), "\n", world.host(), "\n", board.message());
}

// What rank 0 tells all: the error, or a line "local rank, blank, host" for each rank.
constexpr char kErrorMark = '!';

std::string Reply(const std::vector<std::string>& introductions) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < introductions.size(); ++rank) {
    const std::vector<std::string> fields = absl::StrSplit(introductions[rank], '\n');
    if (fields.size() < 3) return absl::StrCat("!rank ", rank, ": a broken introduction");
    if (!fields[2].empty()) return absl::StrCat("!rank ", rank, ": ", fields[2]);
    lines.push_back(absl::StrCat(fields[0], " ", fields[1]));
  }
  return absl::StrJoin(lines, "\n");
}

absl::StatusOr<std::vector<RankHost>> ParseReply(const std::string& reply) {
  if (!reply.empty() && reply[0] == kErrorMark) return absl::UnavailableError(reply.substr(1));
  std::vector<RankHost> ranks;
  for (const auto& line : absl::StrSplit(reply, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    RankHost rank;
    if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &rank.local_rank)) {
      return absl::InternalError(absl::StrCat("status board: a broken list of ranks: ", line));
    }
    rank.host = fields[1];
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace

std::vector<RankHost> NumberNodes(std::vector<RankHost> ranks) {
  // By host and local rank, how many there were: the how-many-th node of that name it is on.
  std::map<std::pair<std::string, int>, int> seen;
  std::map<std::pair<std::string, int>, int> nodes;
  for (RankHost& rank : ranks) {
    const int copy = seen[{rank.host, rank.local_rank}]++;
    const int next = static_cast<int>(nodes.size());
    rank.node = nodes.try_emplace({rank.host, copy}, next).first->second;
  }
  return ranks;
}

absl::StatusOr<std::unique_ptr<Neighbours>> Neighbours::Meet(World& world) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string run,
                           world.Broadcast(world.rank() == 0 ? RandomRunId() : ""));
  absl::StatusOr<std::unique_ptr<Board>> board =
      Board::Open(BoardName(run, world.host()), world.local_size());
  if (board.ok()) (*board)->Join(world.local_rank(), world.rank());
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> introductions,
                           world.Gather(Introduction(world, board.status())));
  // Rank 0 answers when all are on their boards.
  OPTIMUS_ASSIGN_OR_RETURN(const std::string reply,
                           world.Broadcast(world.rank() == 0 ? Reply(introductions) : ""));
  if (board.ok()) (*board)->Unlink();
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<RankHost> ranks, ParseReply(reply));
  std::unique_ptr<Neighbours> neighbours(
      new Neighbours(world, NumberNodes(std::move(ranks)), *std::move(board)));
  OPTIMUS_RETURN_IF_ERROR(neighbours->Check());
  return neighbours;
}

Neighbours::Neighbours(World& world, std::vector<RankHost> hosts, std::unique_ptr<Board> board)
    : rank_(world.rank()),
      hosts_(std::move(hosts)),
      board_(std::move(board)),
      own_slot_(world.local_rank()) {
  for (int rank = 0; rank < size(); ++rank) {
    if (IsLocal(rank)) local_ranks_.push_back(rank);
  }
  std::vector<ProcessId> processes;
  for (int slot = 0; slot < board_->slots(); ++slot) {
    const BoardEntry entry = board_->Read(slot);
    processes.push_back({entry.pid, entry.start_time});
  }
  processes_ = std::make_unique<Processes>(std::move(processes));
}

int Neighbours::ClaimToSpeak() { return board_->Read(board_->ClaimToSpeak(own_slot_)).rank; }

absl::Status Neighbours::Check() const {
  for (const int rank : local_ranks_) {
    const int slot = hosts_[rank].local_rank;
    const bool on_board = slot < board_->slots() && board_->Read(slot).rank == rank;
    // It may have ended already, but then it has said so.
    if (on_board && !(IsGone(rank) && state(rank) == RankState::kRunning)) continue;
    return absl::UnavailableError(absl::StrCat(
        "rank ", rank, " is on host ", host(rank), " like rank ", rank_, ", but ",
        on_board ? "its process is not there" : "not on its status board",
        "; hint: ranks of a node need one /dev/shm and one set of process ids between them"));
  }
  return absl::OkStatus();
}

}  // namespace optimus::executor
