#pragma once
// The status board of one node: a file in memory with a slot for each of its ranks. A rank writes
// its own slot and reads all others, also those of ranks that are stopped or dead: nobody has to
// answer. The file has no name any more once all have mapped it, so nothing is left behind however
// the ranks end.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace optimus::executor {

enum class RankState : std::uint32_t {
  kAbsent,
  kRunning,
  kAsked,      // has got SIGTERM, and finds out whether something else is the cause
  kHung,       // waits for somebody to report that nothing moves
  kReporting,  // is about to say why the run ends
  kEnding,     // ends on purpose; whoever has to say why does
  kLeft,       // done
};

struct BoardEntry {
  std::int32_t rank = -1;  // global
  std::int32_t pid = 0;
  std::int64_t start_time = 0;  // StartTimeOf(pid), so that a reused pid is not taken for the rank
  RankState state = RankState::kAbsent;
  std::string text;
};

class Board {
 public:
  // Longer texts are cut.
  static constexpr std::size_t kTextBytes = 1024;

  // Makes or opens the file of that name, with room for `slots`. UNAVAILABLE names the folder.
  static absl::StatusOr<std::unique_ptr<Board>> Open(const std::string& name, int slots);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // Takes the name away; others may have done so already.
  void Unlink();
  int slots() const { return slots_; }

  // The caller's own slot. Join writes "starts".
  void Join(int slot, std::int32_t rank);
  void Write(int slot, const std::string& text);
  void SetState(int slot, RankState state);
  // Of all that want to say why the run ends, one may: whose slot that is. The first to ask has it
  // from then on.
  int ClaimToSpeak(int slot);

  // Any slot. The text of a rank that was stopped or killed while it wrote may be a mixture of two.
  BoardEntry Read(int slot) const;
  RankState state(int slot) const;

 private:
  struct Slot;
  Board(std::string path, Slot* memory, int slots);

  const std::string path_;
  Slot* const memory_;
  const int slots_;
};

}  // namespace optimus::executor
