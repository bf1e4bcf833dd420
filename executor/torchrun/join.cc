#include "executor/torchrun/join.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "executor/runtime/rank_numbers.h"
#include "executor/runtime/this_host.h"

namespace optimus::executor {
namespace {

constexpr std::size_t kLargestHello = 4096;
constexpr absl::Duration kRetry = absl::Milliseconds(100);
constexpr int kPollMilliseconds = 50;

std::string Hello(const TorchrunEnvironment& environment) {
  return absl::StrCat("optimus ", environment.rank, " ", environment.size, " ", HostName(), " ",
                      environment.job);
}

struct Newcomer {
  int rank = -1;
  std::string host;
};

// Who says hello, or why it does not belong here.
absl::StatusOr<Newcomer> Read(const std::string& hello, const TorchrunEnvironment& environment) {
  const std::vector<std::string> parts = absl::StrSplit(hello, absl::MaxSplits(' ', 4));
  int rank = 0;
  int size = 0;
  if (parts.size() != 5 || parts[0] != "optimus" || !absl::SimpleAtoi(parts[1], &rank) ||
      !absl::SimpleAtoi(parts[2], &size)) {
    return absl::InvalidArgumentError("this port belongs to a rank 0 of optimus");
  }
  if (parts[4] != environment.job) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank 0 belongs to job '", environment.job, "', not '", parts[4],
                     "'; hint: set OPTIMUS_PORT or --master-port to tell them apart"));
  }
  if (size != environment.size || rank <= 0 || rank >= size) {
    return absl::InvalidArgumentError(absl::StrCat("rank 0 has WORLD_SIZE ", environment.size,
                                                   ", this is rank ", rank, " of ", size));
  }
  return Newcomer{rank, parts[3]};
}

class Host {
 public:
  Host(const TorchrunEnvironment& environment, int listening)
      : environment_(environment), listening_(listening) {
    joined_.connections.resize(static_cast<std::size_t>(environment.size));
    joined_.hosts.resize(static_cast<std::size_t>(environment.size));
    joined_.hosts[0] = HostName();
    joined_.machine_of_rank_0 = ThisMachine();
  }
  ~Host() { close(listening_); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  absl::StatusOr<Joined> Run(absl::Time deadline) {
    while (!Missing().empty()) {
      if (absl::Now() > deadline) return GiveUp();
      Sleep();
      Accept();
      Greet();
      DropTheDead();
    }
    for (const auto& connection : joined_.connections) {
      if (connection == nullptr) continue;
      connection->Send(FrameKind::kWelcome,
                       absl::StrCat(joined_.hosts[0], "\n", joined_.machine_of_rank_0));
      connection->Pump();
    }
    return std::move(joined_);
  }

 private:
  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (int rank = 1; rank < environment_.size; ++rank) {
      if (joined_.connections[static_cast<std::size_t>(rank)] == nullptr) missing.push_back(rank);
    }
    return missing;
  }

  // Those that are there hear why.
  absl::Status GiveUp() {
    const std::string why =
        absl::StrCat(ListRanks(Missing()), " did not come to rank 0 (port ", environment_.port,
                     "); hint: do all nodes reach ", environment_.address, "?");
    for (const auto& connection : joined_.connections) {
      if (connection == nullptr) continue;
      connection->Send(FrameKind::kRefused, why);
      connection->Pump();
    }
    return absl::DeadlineExceededError(absl::StrCat("torchrun: ", why));
  }

  void Sleep() {
    std::vector<pollfd> sockets = {{listening_, POLLIN, 0}};
    for (const auto& stranger : strangers_) sockets.push_back({stranger->socket(), POLLIN, 0});
    poll(sockets.data(), sockets.size(), kPollMilliseconds);
  }

  void Accept() {
    while (true) {
      const int socket = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket < 0) return;
      strangers_.push_back(std::make_unique<Connection>(socket));
      strangers_.back()->SetLargestFrame(kLargestHello);
    }
  }

  void Greet() {
    for (auto& stranger : strangers_) {
      stranger->Pump();
      const std::optional<Frame> frame = stranger->Take();
      if (frame && frame->kind == FrameKind::kHello) {
        Admit(std::move(stranger), frame->text);
      } else if (frame || !stranger->open()) {
        stranger.reset();
      }
    }
    strangers_.erase(std::remove(strangers_.begin(), strangers_.end(), nullptr), strangers_.end());
  }

  void Admit(std::unique_ptr<Connection> stranger, const std::string& hello) {
    absl::StatusOr<Newcomer> newcomer = Read(hello, environment_);
    if (newcomer.ok()) {
      auto& place = joined_.connections[static_cast<std::size_t>(newcomer->rank)];
      if (place == nullptr) {
        stranger->SetLargestFrame(std::size_t{1} << 30);
        place = std::move(stranger);
        joined_.hosts[static_cast<std::size_t>(newcomer->rank)] = newcomer->host;
        return;
      }
      newcomer = absl::InvalidArgumentError(
          absl::StrCat("rank ", newcomer->rank, " is there already (on ",
                       joined_.hosts[static_cast<std::size_t>(newcomer->rank)], ")"));
    }
    stranger->Send(FrameKind::kRefused, std::string(newcomer.status().message()));
    stranger->Pump();
  }

  // A rank that went away before all were there may come again.
  void DropTheDead() {
    for (auto& connection : joined_.connections) {
      if (connection == nullptr) continue;
      connection->Pump();
      if (!connection->open()) connection.reset();
    }
  }

  const TorchrunEnvironment& environment_;
  int listening_;
  Joined joined_;
  std::vector<std::unique_ptr<Connection>> strangers_;
};

// One attempt. Nothing but a refusal is final: rank 0 may not listen yet.
struct Attempt {
  std::unique_ptr<Connection> connection;
  std::string welcome;
  absl::Status error;
  bool final_answer = false;
};

Attempt Knock(const TorchrunEnvironment& environment, absl::Time deadline) {
  Attempt attempt;
  const absl::StatusOr<int> socket = ConnectOnce(environment.address, environment.port);
  if (!socket.ok()) {
    attempt.error = socket.status();
    return attempt;
  }
  attempt.connection = std::make_unique<Connection>(*socket);
  attempt.connection->Send(FrameKind::kHello, Hello(environment));
  attempt.error = absl::UnavailableError("rank 0 still waits for other ranks");
  while (absl::Now() < deadline) {
    attempt.connection->Pump();
    if (const std::optional<Frame> frame = attempt.connection->Take()) {
      attempt.final_answer = true;
      attempt.welcome = frame->text;
      attempt.error = frame->kind == FrameKind::kWelcome
                          ? absl::OkStatus()
                          : absl::FailedPreconditionError(frame->text);
      return attempt;
    }
    if (!attempt.connection->open()) {
      attempt.error = absl::UnavailableError("who listens there is no rank 0 of optimus");
      return attempt;
    }
    pollfd ready = {attempt.connection->socket(), POLLIN, 0};
    poll(&ready, 1, kPollMilliseconds);
  }
  return attempt;
}

absl::StatusOr<Joined> Visit(const TorchrunEnvironment& environment, absl::Time deadline) {
  const std::string what =
      absl::StrCat("torchrun: rank ", environment.rank, " cannot join rank 0 at ",
                   environment.address, ":", environment.port, ": ");
  while (true) {
    Attempt attempt = Knock(environment, deadline);
    if (attempt.error.ok()) {
      Joined joined;
      joined.connections.resize(1);
      joined.connections[0] = std::move(attempt.connection);
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(attempt.welcome, absl::MaxSplits('\n', 1));
      joined.hosts = {parts.first};
      joined.machine_of_rank_0 = parts.second;
      return joined;
    }
    if (attempt.final_answer) {
      return absl::FailedPreconditionError(absl::StrCat(what, attempt.error.message()));
    }
    if (absl::Now() + kRetry > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(what, attempt.error.message()));
    }
    absl::SleepFor(kRetry);
  }
}

}  // namespace

std::string ThisMachine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot.empty() ? HostName() : boot;
}

std::string ListRanks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankNumbers(ranks));
}

absl::StatusOr<Joined> JoinRanks(const TorchrunEnvironment& environment, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  if (environment.rank != 0) return Visit(environment, deadline);
  if (environment.size == 1) {
    Joined alone;
    alone.connections.resize(1);
    alone.hosts = {HostName()};
    return alone;
  }
  const absl::StatusOr<int> listening = Listen(environment.port);
  if (!listening.ok()) {
    return absl::UnavailableError(
        absl::StrCat("torchrun: rank 0: ", listening.status().message(),
                     "; hint: set OPTIMUS_PORT to a free port on every rank"));
  }
  return Host(environment, *listening).Run(deadline);
}

}  // namespace optimus::executor
