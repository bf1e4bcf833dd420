#include "executor/torchrun/torchrun_world.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "executor/runtime/rank_numbers.h"
#include "executor/runtime/this_host.h"
#include "executor/torchrun/join.h"

namespace optimus::executor {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kFlush = absl::Seconds(5);
constexpr absl::Duration kAbortFlush = absl::Milliseconds(300);
constexpr int kPings = 32;
// Notes to a rank that does not read them are lost beyond this.
constexpr std::size_t kLargestBacklog = 1 << 20;

// "12 text": a number in front of a note's text.
std::pair<int, std::string> SplitNumber(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  int number = -1;
  if (!absl::SimpleAtoi(parts.first, &number)) number = -1;
  return {number, parts.second};
}

class TorchrunWorld : public World {
 public:
  TorchrunWorld(TorchrunEnvironment environment, Joined joined, const JoinOptions& options)
      : environment_(std::move(environment)),
        joined_(std::move(joined)),
        patience_(options.patience),
        tick_(options.tick) {
    const auto size = static_cast<std::size_t>(environment_.size);
    barriers_.resize(size);
    gathered_.resize(size);
  }

  ~TorchrunWorld() override { Leave(); }

  int rank() const override { return environment_.rank; }
  int size() const override { return environment_.size; }
  int local_rank() const override { return environment_.local_rank; }
  int local_size() const override { return environment_.local_size; }
  std::string host() const override { return HostName(); }
  std::string launcher() const override { return "torchrun"; }
  std::int64_t clock_offset_ns() const override { return clock_offset_ns_; }

  void SetPatience(absl::Duration patience, std::function<absl::Status()> tick) override {
    patience_ = patience;
    tick_ = std::move(tick);
  }

  absl::Status Barrier() override;
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override;
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override;
  void Post(int to, const std::string& text) override;
  std::optional<Note> Poll() override;
  [[noreturn]] void Abort(int exit_code) override;

  // How far this host's clock is from rank 0's.
  absl::Status CompareClocks();

 private:
  Connection& ToRank(int rank) { return *joined_.connections[static_cast<std::size_t>(rank)]; }
  Connection& ToRank0() { return *joined_.connections[0]; }
  template <class Function>
  void ForEachConnection(const Function& function) {
    for (std::size_t i = 0; i < joined_.connections.size(); ++i) {
      if (joined_.connections[i] != nullptr) function(static_cast<int>(i), *joined_.connections[i]);
    }
  }

  void Pump();
  void Sleep(absl::Duration limit);
  void Flush(absl::Duration limit);
  void Leave();
  void Handle(int from, Frame frame);
  void HandleNote(int from, const std::string& text);
  [[noreturn]] void PassOnAbort(int from, const std::string& text);
  // Until `missing` names no rank any more. It says which ranks are still to be heard.
  absl::Status WaitFor(const std::string& what, absl::FunctionRef<std::vector<int>()> missing);
  absl::Status WaitForRank0(const std::string& what, absl::FunctionRef<bool()> heard);
  std::string Name(int rank) const;

  TorchrunEnvironment environment_;
  Joined joined_;
  absl::Duration patience_;
  std::function<absl::Status()> tick_;
  std::int64_t clock_offset_ns_ = 0;

  std::vector<int> barriers_;                      // at rank 0: by rank, how often it came
  std::vector<std::deque<std::string>> gathered_;  // at rank 0: by rank
  int releases_ = 0;
  std::deque<std::string> broadcast_, pongs_;
  std::deque<Note> notes_;
};

std::string TorchrunWorld::Name(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= joined_.hosts.size()) return absl::StrCat("rank ", rank);
  return absl::StrCat("rank ", rank, " (", joined_.hosts[index], ")");
}

void TorchrunWorld::Pump() {
  ForEachConnection([this](int rank, Connection& connection) {
    connection.Pump();
    while (std::optional<Frame> frame = connection.Take()) Handle(rank, std::move(*frame));
  });
}

void TorchrunWorld::Sleep(absl::Duration limit) {
  std::vector<pollfd> sockets;
  ForEachConnection([&sockets](int, Connection& connection) {
    if (!connection.open()) return;
    const int unsent = connection.unsent() > 0 ? POLLOUT : 0;
    sockets.push_back({connection.socket(), static_cast<short>(POLLIN | unsent), 0});
  });
  poll(sockets.data(), sockets.size(), static_cast<int>(absl::ToInt64Milliseconds(limit)));
}

void TorchrunWorld::Flush(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (absl::Now() < deadline) {
    bool left = false;
    ForEachConnection([&left](int, Connection& connection) {
      if (connection.open() && connection.unsent() > 0) connection.Pump();
      left = left || (connection.open() && connection.unsent() > 0);
    });
    if (!left) return;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// Both sides close once they have read everything.
void TorchrunWorld::Leave() {
  Flush(kFlush);
  ForEachConnection([](int, Connection& connection) { connection.FinishSending(); });
  const absl::Time deadline = absl::Now() + kFlush;
  bool left = true;
  while (left && absl::Now() < deadline) {
    Pump();
    left = false;
    ForEachConnection(
        [&left](int, const Connection& connection) { left = left || connection.open(); });
    if (left) Sleep(kTick);
  }
}

void TorchrunWorld::Handle(int from, Frame frame) {
  switch (frame.kind) {
    case FrameKind::kBarrier:
      ++barriers_[static_cast<std::size_t>(from)];
      return;
    case FrameKind::kGather:
      gathered_[static_cast<std::size_t>(from)].push_back(std::move(frame.text));
      return;
    case FrameKind::kPing:
      ToRank(from).Send(FrameKind::kPong, absl::StrCat(NowNs()));
      ToRank(from).Pump();
      return;
    case FrameKind::kRelease:
      ++releases_;
      return;
    case FrameKind::kBroadcast:
      broadcast_.push_back(std::move(frame.text));
      return;
    case FrameKind::kPong:
      pongs_.push_back(std::move(frame.text));
      return;
    case FrameKind::kNote:
      HandleNote(from, frame.text);
      return;
    case FrameKind::kAbort:
      PassOnAbort(from, frame.text);
    case FrameKind::kHello:
    case FrameKind::kAdmitted:
    case FrameKind::kWelcome:
    case FrameKind::kRefused:
      return;  // belong to joining
  }
}

void TorchrunWorld::HandleNote(int from, const std::string& text) {
  const auto [number, note] = SplitNumber(text);
  if (rank() != 0) {
    notes_.push_back({number, note});
  } else if (number == 0) {
    notes_.push_back({from, note});
  } else if (number > 0 && number < size() && ToRank(number).unsent() < kLargestBacklog) {
    ToRank(number).Send(FrameKind::kNote, absl::StrCat(from, " ", note));
    ToRank(number).Pump();
  }
}

void TorchrunWorld::PassOnAbort(int from, const std::string& text) {
  int exit_code = 1;
  if (!absl::SimpleAtoi(text, &exit_code)) exit_code = 1;
  ForEachConnection([&](int rank, Connection& connection) {
    if (this->rank() == 0 && rank != from) connection.Send(FrameKind::kAbort, text);
  });
  Flush(kAbortFlush);
  _exit(exit_code);
}

absl::Status TorchrunWorld::WaitFor(const std::string& what,
                                    absl::FunctionRef<std::vector<int>()> missing) {
  const absl::Time deadline = absl::Now() + patience_;
  absl::Time next_tick = absl::Now() + kTick;
  while (true) {
    Pump();
    const std::vector<int> ranks = missing();
    if (ranks.empty()) return absl::OkStatus();
    for (const int rank : ranks) {
      if (ToRank(rank).open()) continue;
      return absl::UnavailableError(absl::StrCat(what, ": ", Name(rank), " is gone"));
    }
    const absl::Time now = absl::Now();
    if (now > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(what, ": ", RanksText(ranks),
                                                      " did not answer within ",
                                                      absl::FormatDuration(patience_)));
    }
    if (now >= next_tick) {
      next_tick = now + kTick;
      if (tick_) OPTIMUS_RETURN_IF_ERROR(tick_());
    }
    Sleep(kTick);
  }
}

absl::Status TorchrunWorld::WaitForRank0(const std::string& what, absl::FunctionRef<bool()> heard) {
  return WaitFor(what, [&] { return heard() ? std::vector<int>() : std::vector<int>{0}; });
}

absl::Status TorchrunWorld::Barrier() {
  if (rank() != 0) {
    ToRank0().Send(FrameKind::kBarrier, "");
    OPTIMUS_RETURN_IF_ERROR(WaitForRank0("barrier", [this] { return releases_ > 0; }));
    --releases_;
    return absl::OkStatus();
  }
  OPTIMUS_RETURN_IF_ERROR(WaitFor("barrier", [this] {
    std::vector<int> missing;
    ForEachConnection([&](int rank, Connection&) {
      if (barriers_[static_cast<std::size_t>(rank)] == 0) missing.push_back(rank);
    });
    return missing;
  }));
  ForEachConnection([this](int rank, Connection& connection) {
    --barriers_[static_cast<std::size_t>(rank)];
    connection.Send(FrameKind::kRelease, "");
    connection.Pump();
  });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> TorchrunWorld::Gather(const std::string& mine) {
  if (rank() != 0) {
    ToRank0().Send(FrameKind::kGather, mine);
    // Out of our hands once it is written; rank 0 may come to it later.
    OPTIMUS_RETURN_IF_ERROR(WaitForRank0("gather", [this] { return ToRank0().unsent() == 0; }));
    return std::vector<std::string>();
  }
  OPTIMUS_RETURN_IF_ERROR(WaitFor("gather", [this] {
    std::vector<int> missing;
    ForEachConnection([&](int rank, Connection&) {
      if (gathered_[static_cast<std::size_t>(rank)].empty()) missing.push_back(rank);
    });
    return missing;
  }));
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[0] = mine;
  ForEachConnection([&](int rank, Connection&) {
    auto& queue = gathered_[static_cast<std::size_t>(rank)];
    all[static_cast<std::size_t>(rank)] = std::move(queue.front());
    queue.pop_front();
  });
  return all;
}

absl::StatusOr<std::string> TorchrunWorld::Broadcast(const std::string& from_rank_0) {
  if (rank() == 0) {
    ForEachConnection([&](int, Connection& connection) {
      connection.Send(FrameKind::kBroadcast, from_rank_0);
      connection.Pump();
    });
    OPTIMUS_RETURN_IF_ERROR(WaitFor("broadcast", [this] {
      std::vector<int> missing;
      ForEachConnection([&](int rank, Connection& connection) {
        if (connection.unsent() > 0) missing.push_back(rank);
      });
      return missing;
    }));
    return from_rank_0;
  }
  OPTIMUS_RETURN_IF_ERROR(WaitForRank0("broadcast", [this] { return !broadcast_.empty(); }));
  std::string text = std::move(broadcast_.front());
  broadcast_.pop_front();
  return text;
}

void TorchrunWorld::Post(int to, const std::string& text) {
  if (to == rank()) {
    notes_.push_back({to, text});
  } else if (rank() == 0) {
    HandleNote(0, absl::StrCat(to, " ", text));
  } else if (ToRank0().unsent() < kLargestBacklog) {
    ToRank0().Send(FrameKind::kNote, absl::StrCat(to, " ", text));
    ToRank0().Pump();
  }
}

std::optional<World::Note> TorchrunWorld::Poll() {
  Pump();
  if (notes_.empty()) return std::nullopt;
  Note note = std::move(notes_.front());
  notes_.pop_front();
  return note;
}

void TorchrunWorld::Abort(int exit_code) {
  ForEachConnection([&](int, Connection& connection) {
    connection.Send(FrameKind::kAbort, absl::StrCat(exit_code));
  });
  Flush(kAbortFlush);
  _exit(exit_code);
}

// The answer of the quickest round trip is the least uncertain one.
absl::Status TorchrunWorld::CompareClocks() {
  if (rank() == 0 || joined_.machine_of_rank_0 == ThisMachine()) return Barrier();
  std::int64_t quickest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kPings; ++i) {
    const std::int64_t sent = NowNs();
    ToRank0().Send(FrameKind::kPing, "");
    OPTIMUS_RETURN_IF_ERROR(WaitForRank0("clock", [this] { return !pongs_.empty(); }));
    const std::int64_t received = NowNs();
    std::int64_t theirs = 0;
    const bool number = absl::SimpleAtoi(pongs_.front(), &theirs);
    pongs_.pop_front();
    if (!number || received - sent >= quickest) continue;
    quickest = received - sent;
    clock_offset_ns_ = theirs - (sent + (received - sent) / 2);
  }
  return Barrier();
}

}  // namespace

absl::StatusOr<std::unique_ptr<World>> JoinTorchrunWorld(const TorchrunEnvironment& environment,
                                                         const JoinOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(Joined joined, JoinRanks(environment, options));
  auto world = std::make_unique<TorchrunWorld>(environment, std::move(joined), options);
  OPTIMUS_RETURN_IF_ERROR(world->CompareClocks());
  return world;
}

}  // namespace optimus::executor
