#pragma once
// For tests: ranks that are forked processes, with a World in memory that they share. Nothing of it
// blocks for good when a process is killed: what one writes and another reads goes through rings of
// one writer and one reader.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "executor/runtime/world.h"
#include "executor/watch/processes.h"

namespace optimus::executor::testing {

inline constexpr int kMostRanks = 8;

// Text that one process writes once and others read when it is there.
struct SharedText {
  std::atomic<std::uint32_t> written;  // how often
  std::uint32_t length;
  std::array<char, 16384> bytes;

  void Write(const std::string& text) {
    length = static_cast<std::uint32_t>(std::min(text.size(), bytes.size()));
    std::memcpy(bytes.data(), text.data(), length);
    ++written;
  }
  std::string Read() const { return {bytes.data(), length}; }
};

struct NoteRing {
  static constexpr std::uint32_t kNotes = 16;
  std::atomic<std::uint32_t> put, taken;
  std::array<SharedText, kNotes> notes;
};

struct SharedState {
  std::array<std::array<NoteRing, kMostRanks>, kMostRanks> notes;  // by receiver, sender
  std::array<SharedText, kMostRanks> given;                        // to Gather, Broadcast, Barrier
  std::array<std::atomic<bool>, kMostRanks> ready, hang;
  std::array<std::atomic<int>, kMostRanks>
      codes;  // of the absl::Status a rank ended with; -1: none
  std::array<SharedText, kMostRanks> messages;
};

class SharedWorld : public World {
 public:
  SharedWorld(SharedState& state, int rank, int size, int ranks_per_node)
      : state_(state), rank_(rank), size_(size), per_node_(ranks_per_node) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return rank_ % per_node_; }
  int local_size() const override { return per_node_; }
  std::string host() const override { return absl::StrCat("node", rank_ / per_node_); }
  std::string launcher() const override { return "fork"; }
  void SetPatience(absl::Duration /*patience*/, std::function<absl::Status()> /*tick*/) override {}
  absl::Status Barrier() override { return Gather("").status(); }
  // Everybody sees everything; each round every rank gives one text.
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    return Exchange(mine);
  }
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override {
    return Exchange(from_rank_0)[0];
  }
  std::int64_t clock_offset_ns() const override { return 0; }
  void Post(int to, const std::string& text) override {
    NoteRing& ring = state_.notes[to][rank_];
    if (ring.put - ring.taken == NoteRing::kNotes) return;  // full: lost
    ring.notes[ring.put % NoteRing::kNotes].Write(text);
    ++ring.put;
  }
  std::optional<Note> Poll() override {
    for (int from = 0; from < size_; ++from) {
      NoteRing& ring = state_.notes[rank_][from];
      if (ring.put == ring.taken) continue;
      Note note{from, ring.notes[ring.taken % NoteRing::kNotes].Read()};
      ++ring.taken;
      return note;
    }
    return std::nullopt;
  }
  bool TakesNotesOfAnyThread() const override { return true; }
  [[noreturn]] void Abort(int exit_code) override { _exit(exit_code); }

 private:
  // A text is read by all before its rank gives the next one: two rounds, the second of nothing.
  std::vector<std::string> Exchange(const std::string& mine) {
    std::vector<std::string> all = Round(mine);
    Round("");
    return all;
  }
  std::vector<std::string> Round(const std::string& mine) {
    // The texts of a round lie in one place, so those of odd rounds overwrite nothing that counts.
    if (++round_ % 2 == 1) {
      state_.given[rank_].Write(mine);
    } else {
      ++state_.given[rank_].written;
    }
    std::vector<std::string> all;
    for (int rank = 0; rank < size_; ++rank) {
      while (state_.given[rank].written < round_) absl::SleepFor(absl::Milliseconds(1));
      all.push_back(state_.given[rank].Read());
    }
    return all;
  }

  SharedState& state_;
  const int rank_, size_, per_node_;
  std::uint32_t round_ = 0;
};

// Forks one process per rank. Those that still live are killed at the end.
class ForkedRanks {
 public:
  // `body` runs in the child; what it returns is kept for the parent.
  using Body = std::function<absl::Status(SharedWorld&, SharedState&)>;

  ForkedRanks(int size, int ranks_per_node, const Body& body) : pids_(size) {
    void* memory = mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    state_ = static_cast<SharedState*>(memory);
    for (std::atomic<int>& code : state_->codes) code = -1;
    for (int rank = 0; rank < size; ++rank) {
      pids_[rank] = fork();
      if (pids_[rank] != 0) continue;
      SharedWorld world(*state_, rank, size, ranks_per_node);
      const absl::Status result = body(world, *state_);
      state_->messages[rank].Write(std::string(result.message()));
      state_->codes[rank] = static_cast<int>(result.code());
      _exit(0);
    }
  }
  ~ForkedRanks() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    munmap(state_, sizeof(SharedState));
  }
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  SharedState& state() { return *state_; }
  void Signal(int rank, int signal) const { kill(pids_[rank], signal); }
  // Returns when it has stopped.
  bool Stop(int rank) const {
    Signal(rank, SIGSTOP);
    return WaitFor([&] { return IsStopped(pids_[rank]); });
  }

  // False: it has not come within a minute.
  static bool WaitFor(const std::function<bool()>& condition) {
    const absl::Time end = absl::Now() + absl::Minutes(1);
    while (!condition()) {
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }
  bool WaitUntilReady() {
    return WaitFor([this] {
      for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
        if (!state_->ready[rank]) return false;
      }
      return true;
    });
  }
  // What a rank returned. It must have ended by itself.
  absl::Status ResultOf(int rank) {
    if (!WaitFor([&] { return state_->codes[rank] >= 0; })) {
      return absl::UnknownError(absl::StrCat("rank ", rank, " does not end"));
    }
    return {static_cast<absl::StatusCode>(state_->codes[rank].load()),
            state_->messages[rank].Read()};
  }

 private:
  std::vector<pid_t> pids_;
  SharedState* state_ = nullptr;
};

}  // namespace optimus::executor::testing
