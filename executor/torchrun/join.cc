#include "executor/torchrun/join.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/functional/function_ref.h"
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

// A wait that ends, and is not silent.
class Wait {
 public:
  explicit Wait(const JoinOptions& options)
      : options_(options), begin_(absl::Now()), deadline_(begin_ + options.patience) {}

  absl::Time deadline() const { return deadline_; }
  bool over() const { return absl::Now() > deadline_; }
  std::string within() const {
    return absl::StrCat("within ", absl::FormatDuration(options_.patience));
  }

  // An error ends the wait. `what`: "rank 1 waits for rank 0 at ..."; `loud`: to be said by us.
  absl::Status Tick(bool loud, absl::FunctionRef<std::string()> what) {
    if (options_.tick) {
      const absl::Status status = options_.tick();
      if (!status.ok()) return {status.code(), absl::StrCat(status.message(), " while ", what())};
    }
    if (said_ || !loud || !options_.say || absl::Now() < begin_ + options_.silence)
      return absl::OkStatus();
    said_ = true;
    options_.say(
        absl::StrCat(what(), " (gives up after ", absl::FormatDuration(options_.patience), ")"));
    return absl::OkStatus();
  }

 private:
  const JoinOptions& options_;
  const absl::Time begin_, deadline_;
  bool said_ = false;
};

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

  absl::StatusOr<Joined> Run(const JoinOptions& options) {
    Wait wait(options);
    while (!Missing().empty()) {
      if (wait.over()) return GiveUp(TooLate(wait));
      const absl::Status status = wait.Tick(/*loud=*/true, [this] {
        return absl::StrCat("rank 0 waits for ", RanksText(Missing()), " of ", environment_.size,
                            " at port ", environment_.port);
      });
      if (!status.ok()) return GiveUp(status);
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

  absl::Status TooLate(const Wait& wait) const {
    return absl::DeadlineExceededError(
        absl::StrCat(RanksText(Missing()), " of ", environment_.size, " did not come to rank 0 ",
                     wait.within(), "; hint: were they started, and do their nodes reach ",
                     environment_.address, ":", environment_.port, "?"));
  }

  // Those that are there hear why.
  absl::Status GiveUp(const absl::Status& why) const {
    for (const auto& connection : joined_.connections) {
      if (connection == nullptr) continue;
      connection->Send(FrameKind::kRefused, std::string(why.message()));
      connection->Pump();
    }
    return why;
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
        place->Send(FrameKind::kAdmitted, "");
        place->Pump();
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

class Visitor {
 public:
  Visitor(const TorchrunEnvironment& environment, const JoinOptions& options)
      : environment_(environment), wait_(options) {}

  absl::StatusOr<Joined> Run() {
    while (true) {
      const absl::StatusOr<std::string> welcome = Knock();
      if (welcome.ok()) return Enter(*welcome);
      // Whoever listens may be about to leave the port to rank 0, which may come later.
      if (!absl::IsUnavailable(welcome.status())) return welcome.status();
      if (wait_.over()) return TooLate();
      trouble_ = std::string(welcome.status().message());
      OPTIMUS_RETURN_IF_ERROR(Tick());
      absl::SleepFor(kRetry);
    }
  }

 private:
  std::string Address() const {
    return absl::StrCat("rank 0 at ", environment_.address, ":", environment_.port);
  }

  // Once rank 0 knows this rank, it speaks for all that wait.
  absl::Status Tick() {
    return wait_.Tick(/*loud=*/!admitted_, [this] {
      return absl::StrCat("rank ", environment_.rank, " waits for ", Address(), ": ", trouble_);
    });
  }

  // `within`: " within 5s", or nothing.
  absl::Status CannotJoin(absl::StatusCode code, absl::string_view why,
                          const std::string& within = "") const {
    return {code, absl::StrCat("rank ", environment_.rank, " cannot join ", Address(), within, ": ",
                               why)};
  }

  absl::Status TooLate() const {
    return CannotJoin(
        absl::StatusCode::kDeadlineExceeded,
        absl::StrCat(trouble_,
                     admitted_ ? "" : "; hint: was rank 0 started, and is MASTER_ADDR its host?"),
        absl::StrCat(" ", wait_.within()));
  }

  Joined Enter(const std::string& welcome) {
    Joined joined;
    joined.connections.push_back(std::move(connection_));
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(welcome, absl::MaxSplits('\n', 1));
    joined.hosts = {parts.first};
    joined.machine_of_rank_0 = parts.second;
    return joined;
  }

  // One attempt: rank 0's welcome. UNAVAILABLE: rank 0 may not listen yet; all else is final.
  absl::StatusOr<std::string> Knock() {
    admitted_ = false;
    const absl::StatusOr<int> socket = ConnectOnce(environment_.address, environment_.port);
    if (absl::IsNotFound(socket.status())) {
      return CannotJoin(absl::StatusCode::kNotFound,
                        absl::StrCat(socket.status().message(),
                                     "; hint: MASTER_ADDR must be a host that this one knows"));
    }
    if (!socket.ok()) return socket.status();
    connection_ = std::make_unique<Connection>(*socket);
    connection_->Send(FrameKind::kHello, Hello(environment_));
    trouble_ = "who listens there does not answer";
    while (!wait_.over()) {
      connection_->Pump();
      if (const std::optional<Frame> frame = connection_->Take()) {
        if (frame->kind == FrameKind::kWelcome) return frame->text;
        if (frame->kind != FrameKind::kAdmitted) return Refused(frame->text);
        admitted_ = true;
        trouble_ = "rank 0 still waits for other ranks";
        continue;
      }
      if (!connection_->open()) {
        return absl::UnavailableError(admitted_ ? "rank 0 went away"
                                                : "who listens there is no rank 0 of optimus");
      }
      OPTIMUS_RETURN_IF_ERROR(Tick());
      pollfd ready = {connection_->socket(), POLLIN, 0};
      poll(&ready, 1, kPollMilliseconds);
    }
    return absl::UnavailableError(trouble_);
  }

  absl::Status Refused(const std::string& why) const {
    return CannotJoin(absl::StatusCode::kFailedPrecondition, why);
  }

  const TorchrunEnvironment& environment_;
  Wait wait_;
  std::unique_ptr<Connection> connection_;
  std::string trouble_ = "not tried yet";
  bool admitted_ = false;
};

}  // namespace

std::string ThisMachine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot.empty() ? HostName() : boot;
}

absl::StatusOr<Joined> JoinRanks(const TorchrunEnvironment& environment,
                                 const JoinOptions& options) {
  if (environment.rank != 0) return Visitor(environment, options).Run();
  if (environment.size == 1) {
    Joined alone;
    alone.connections.resize(1);
    alone.hosts = {HostName()};
    return alone;
  }
  const absl::StatusOr<int> listening = Listen(environment.port);
  if (!listening.ok()) {
    return absl::UnavailableError(
        absl::StrCat("rank 0: ", listening.status().message(),
                     "; hint: set OPTIMUS_PORT to a free port, the same on every rank"));
  }
  return Host(environment, *listening).Run(options);
}

}  // namespace optimus::executor
